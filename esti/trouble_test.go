// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moraine-store/moraine/pkg/kv"
)

// holding is a process that has a store open.
type holding struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// startHolding starts the program holder, and waits until it has the store open.
func startHolding(cmd *exec.Cmd) (*holding, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	h := &holding{cmd, stdin}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		return nil, errors.Join(err, h.end())
	}
	return h, nil
}

func (h *holding) end() error { return errors.Join(h.stdin.Close(), h.cmd.Wait()) }

// hold has another process open the store, until release or the end of the script.
func (s *script) hold(ts *testscript.TestScript, args []string) {
	h, err := startHolding(s.command(ts, append([]string{"holder"}, args...)))
	ts.Check(err)
	s.held = h
	ts.Defer(func() { s.release(ts, nil) })
}

func (s *script) release(ts *testscript.TestScript, _ []string) {
	if s.held != nil {
		h := s.held
		s.held = nil
		ts.Check(h.end())
	}
}

// schema makes the store one of another version.
func (s *script) schema(ts *testscript.TestScript, args []string) {
	store, err := s.engine.open(context.Background(), s.store, kv.OpenOptions{})
	ts.Check(err)
	err = store.Set(context.Background(), []byte(kv.SchemaPartition), []byte(kv.SchemaKey), []byte(args[0]))
	ts.Check(errors.Join(err, store.Close()))
}

// sql runs a statement in the database of the store.
func (s *script) sql(ts *testscript.TestScript, args []string) {
	conn, err := pgx.Connect(context.Background(), databaseOf(s.store))
	ts.Check(err)
	_, err = conn.Exec(context.Background(), args[0])
	ts.Check(errors.Join(err, conn.Close(context.Background())))
}

// databaseOf is the URL of the database that a store is in.
func databaseOf(store string) string {
	_, rest, _ := strings.Cut(store, ":")
	return "postgres:" + rest
}

// write makes a file, whose name and text are written as in a Go string.
func (s *script) write(ts *testscript.TestScript, args []string) {
	name, err := strconv.Unquote(`"` + args[0] + `"`)
	ts.Check(err)
	text, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	path := ts.MkAbs(name)
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, []byte(text), 0o644))
}

// files makes a number of files of one byte each.
func (s *script) files(ts *testscript.TestScript, args []string) {
	number, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.MkdirAll(ts.MkAbs(args[0]), 0o755))
	for i := range number {
		ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(args[0]), fmt.Sprintf("%04d", i)), []byte("x"), 0o644))
	}
}

func (s *script) socket(ts *testscript.TestScript, args []string) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: ts.MkAbs(args[0])})
	ts.Check(err)
	l.SetUnlinkOnClose(false)
	ts.Check(l.Close())
}

// rangeFile is the range file that a script damages, and what it is like when it is whole.
type rangeFile struct {
	path string
	text []byte
}

// damage does something to a range file, the same each time, or repairs it. It takes the largest, which holds entries.
func (s *script) damage(ts *testscript.TestScript, args []string) {
	if s.victim == nil {
		files, err := rangeFiles(filepath.Join(s.work, "store", "blocks"))
		ts.Check(err)
		s.victim = &files[0]
	}
	text := bytes.Clone(s.victim.text)
	switch args[0] {
	case "flip":
		text[10] ^= 0x10
	case "cut":
		text = text[:len(text)-10]
	case "empty":
		text = nil
	case "replace":
		text = bytes.Repeat([]byte("another file\n"), len(text)/13)
	case "remove":
		ts.Check(os.Remove(s.victim.path))
		return
	case "swap": // with another range file that is whole
		files, err := rangeFiles(filepath.Join(s.work, "store", "blocks"))
		ts.Check(err)
		other := slices.IndexFunc(files, func(f rangeFile) bool { return f.path != s.victim.path })
		text = files[other].text
	case "repair":
	default:
		ts.Fatalf("damage %s: no such damage", args[0])
	}
	ts.Check(os.WriteFile(s.victim.path, text, 0o600))
}

// rangeFiles returns the files in a directory, the largest first.
func rangeFiles(dir string) (files []rangeFile, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files = append(files, rangeFile{path, text})
		return err
	})
	slices.SortFunc(files, func(a, b rangeFile) int { return cmp.Compare(len(b.text), len(a.text)) })
	return files, err
}

// disk mounts a disk of its own at a directory, with room for so many bytes.
func (s *script) disk(ts *testscript.TestScript, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(mount(dir, args[1]))
	ts.Defer(func() { ts.Check(unmount(dir)) })
}

func mount(dir, bytes string) error {
	return tool("mount", "-t", "tmpfs", "-o", "size="+bytes, "tmpfs", dir)
}

func unmount(dir string) error { return tool("umount", dir) }

func tool(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, args, err, out)
	}
	return nil
}

// condition knows [mount]: whether this process may mount a disk.
func condition(name string) (bool, error) {
	if name != "mount" {
		return false, fmt.Errorf("unknown condition %s", name)
	}
	dir, err := os.MkdirTemp("", "moraine-mount")
	if err != nil {
		return false, err
	}
	mounted := mount(dir, "65536") == nil
	if mounted {
		err = unmount(dir)
	}
	return mounted, errors.Join(err, os.Remove(dir))
}
