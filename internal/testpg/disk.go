// SPDX-License-Identifier: Apache-2.0

package testpg

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/pgserver"
)

//go:embed disk.sh
var diskScript string

// Disk is a small one that holds a database and nothing else of the server, not its log.
type Disk struct {
	URL     string // of the database
	ballast string
}

// NewDisk makes an empty database on a disk of so many bytes, of which ballast takes a part. An empty
// database takes some 8 MB. Both are gone when the test ends, however it does. It fails where mounting
// is impossible, as for everybody but root.
func (s *Server) NewDisk(tb testing.TB, bytes, ballast int) (*Disk, error) {
	tb.Helper()
	user := s.User()
	if user == nil {
		return nil, errors.New("only root may mount a disk")
	}
	dir, err := s.MakeDirectory("")
	if err != nil {
		return nil, err
	}
	if err := mount(tb, dir, fmt.Sprintf("size=%d,mode=700,uid=%d,gid=%d", bytes, user.Uid, user.Gid)); err != nil {
		return nil, err
	}
	tables := filepath.Join(dir, "tables")
	require.NoError(tb, os.Mkdir(tables, 0o700))
	require.NoError(tb, os.Chown(tables, int(user.Uid), int(user.Gid)))
	name := fmt.Sprintf("disk_%d", s.databases.Add(1))
	s.Exec(tb, "create tablespace "+name+" location '"+tables+"'")
	tb.Cleanup(func() { s.Exec(tb, "drop tablespace "+name) })
	d := &Disk{s.newDatabase(tb, name), filepath.Join(dir, "ballast")}
	require.NoError(tb, os.WriteFile(d.ballast, make([]byte, ballast), 0o600))
	return d, nil
}

// Drop throws the ballast off.
func (d *Disk) Drop(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, os.Remove(d.ballast))
}

// mount leaves the disk to a script that watches a pipe of ours, as serve.sh does.
func mount(tb testing.TB, dir, options string) error {
	tb.Helper()
	keep := pgserver.Command(nil, "/bin/sh", "-c", diskScript, "disk.sh", dir, options)
	keep.SysProcAttr.Setsid = true
	alive, err := keep.StdinPipe()
	require.NoError(tb, err)
	out, err := keep.StdoutPipe()
	require.NoError(tb, err)
	keep.Stderr = keep.Stdout
	require.NoError(tb, keep.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	if said == "ready\n" {
		tb.Cleanup(func() { require.NoError(tb, errors.Join(alive.Close(), keep.Wait())) })
		return nil
	}
	rest, _ := io.ReadAll(out) // what there is of an explanation
	return errors.Join(fmt.Errorf("mount: %s%s", said, rest), err, alive.Close(), keep.Wait())
}
