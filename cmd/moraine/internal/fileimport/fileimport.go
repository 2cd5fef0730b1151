// SPDX-License-Identifier: Apache-2.0

// Package fileimport turns the files of a directory into entries.
//
// An [Import] looks at the directory twice. The first walk counts, and finds what cannot become an entry before anything is staged. The second walk
// hashes files in parallel and stages entries in key order, in batches, with memory that depends neither on the number of files nor on their size.
//
// Links and special files are never followed or opened: they are reported and left out. What cannot be read is reported too, and makes the import
// fail in the end, although the rest is staged.
package fileimport

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// ErrIncomplete is returned when something could not become an entry.
var ErrIncomplete = errors.New("not everything could be imported")

// Import says what to import. All fields but Skip are required.
type Import struct {
	Dir    string
	Prefix string   // of every key; the rest is the slash-separated path below Dir
	Skip   []string // files and directories that are left out as if they were not there
	// Stage stores a batch of entries. Keys ascend, within a batch and from one to the next. It is called on the goroutine of Run.
	Stage func(ctx context.Context, entries []graveler.Entry) error

	// The following tell what happens, one call at a time except for Progress.

	Counted func(files int, bytes int64)     // what there is, when it is known
	Skipped func(path, what string)          // a link or special file, or something that Skip names
	Failed  func(path string, problem error) // what could not become an entry
	// Progress is called from several goroutines, with the number of bytes that were read.
	Progress func(bytes int)
}

// Report counts what an import did.
type Report struct {
	Files   int   // staged
	Bytes   int64 // their sizes together
	Skipped int   // links and special files
	Failed  int
}

// Run does the import. What it staged is in the report whatever error it returns: ErrIncomplete, or graveler.ErrTooLarge where a key is too long,
// in which case nothing was staged, or one that ended it.
func (im *Import) Run(ctx context.Context) (Report, error) {
	w, err := im.walker()
	if err != nil {
		return Report{}, err
	}
	if err := im.survey(ctx, w); err != nil {
		return Report{}, err
	}
	r := run{Import: im}
	err = r.stageAll(ctx, w)
	if err == nil && r.report.Failed > 0 {
		err = fmt.Errorf("%w: %d could not be read", ErrIncomplete, r.report.Failed)
	}
	return r.report, err
}

func (im *Import) walker() (*walker, error) {
	root, err := filepath.Abs(im.Dir)
	if err != nil {
		return nil, err
	}
	// The directory itself may be named by a link.
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	info, err := os.Stat(root)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s: not a directory", root)
	}
	w := &walker{root: root}
	for _, path := range im.Skip {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		w.skip = append(w.skip, info)
	}
	return w, nil
}

// survey counts the files, and refuses keys that are too long.
func (im *Import) survey(ctx context.Context, w *walker) error {
	files, bytes, refused := 0, int64(0), 0
	err := w.walk(ctx, func(f found) error {
		if f.problem != nil || f.special != "" {
			return nil // the second walk tells
		}
		if err := graveler.ValidateKey(graveler.Key(im.Prefix + f.rel)); err != nil {
			im.Failed(f.path, err)
			refused++
		}
		files++
		bytes += f.info.Size()
		return nil
	})
	if err != nil {
		return err
	}
	if refused > 0 {
		return fmt.Errorf("%w: the keys of %d files, nothing was staged", graveler.ErrTooLarge, refused)
	}
	im.Counted(files, bytes)
	return nil
}
