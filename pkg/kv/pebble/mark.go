// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/moraine-store/moraine/pkg/kv"
)

// The file that marks a directory as ours. It says "layout 1", and while the store is being created
// "layout 1 new": only then may pebble make a database where it finds none. The layout's version is
// raised with everything that an older program could not read, pebble's own format included.
const (
	markName = "MORAINE"
	markTemp = "MORAINE.new"
	layout   = 1

	markLayout = "layout"
	markNew    = "new"
)

// state is what is in a directory.
type state int

const (
	nothing state = iota // or what a creation leaves that has just begun
	begun                // a store whose creation has not ended
	whole                // a store
)

// inspect looks at a directory and changes nothing. What is neither empty nor ours is kv.ErrNotAStore.
func inspect(fs vfs.FS, dir string) (state, error) {
	info, err := fs.Stat(dir)
	if err != nil {
		return nothing, err
	}
	if !info.IsDir() {
		return nothing, fmt.Errorf("%w: not a directory", kv.ErrNotAStore)
	}
	names, err := fs.List(dir)
	if err != nil {
		return nothing, err
	}
	found := nothing
	foreign := ""
	for _, name := range names {
		switch name {
		case markName:
			found = whole
		case markTemp, lockName:
		default:
			foreign = name
		}
	}
	if found == whole {
		return readMark(fs, fs.PathJoin(dir, markName))
	}
	if foreign != "" {
		return nothing, fmt.Errorf("%w: the directory holds %q and no %s", kv.ErrNotAStore, foreign, markName)
	}
	return nothing, nil
}

func readMark(fs vfs.FS, name string) (state, error) {
	f, err := fs.Open(name)
	if err != nil {
		return nothing, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 100))
	if err := errors.Join(err, f.Close()); err != nil {
		return nothing, err
	}
	return parseMark(string(text))
}

func parseMark(text string) (state, error) {
	words := strings.Fields(text)
	if len(words) < 2 || words[0] != markLayout {
		return nothing, fmt.Errorf("%w: %s does not name a layout", kv.ErrNotAStore, markName)
	}
	version, err := strconv.ParseUint(words[1], 10, 16)
	switch {
	case err != nil || version == 0:
		return nothing, fmt.Errorf("%w: %s does not name a layout", kv.ErrNotAStore, markName)
	case version > layout:
		return nothing, fmt.Errorf("%w: layout of the directory is %d, this program knows %d", kv.ErrSchemaNewer, version, layout)
	case len(words) == 2:
		return whole, nil
	case len(words) == 3 && words[2] == markNew:
		return begun, nil
	}
	return nothing, fmt.Errorf("%w: %s is damaged", kv.ErrNotAStore, markName)
}

// writeMark replaces the mark as a whole, durably.
func writeMark(fs vfs.FS, dir string, s state) error {
	text := fmt.Sprintf("%s %d\n", markLayout, layout)
	if s == begun {
		text = fmt.Sprintf("%s %d %s\n", markLayout, layout, markNew)
	}
	temp := fs.PathJoin(dir, markTemp)
	f, err := fs.Create(temp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text))
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := fs.Rename(temp, fs.PathJoin(dir, markName)); err != nil {
		return err
	}
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
