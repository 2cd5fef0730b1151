// SPDX-License-Identifier: Apache-2.0

// Package pgserver runs a throw-away PostgreSQL: for tests (see package testpg) and for benchmarks.
//
// Start finds the programs on the PATH or where Debian keeps them, makes a cluster in a temporary
// directory and starts it.
//
// The server listens on 127.0.0.1 only, trusts everybody who gets there except the user [Sworn],
// and is as durable as any (fsync is on). It belongs to a small shell script that reads from a pipe of which this process
// holds the other end. When the server is closed, or the process ends, however it does, the pipe closes, and the script stops
// the server and removes the directory. A process that is killed leaves nothing behind.
package pgserver

import (
	"bufio"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Sworn is the one user who must prove who he is, with a password.
const Sworn = "sworn"

// Server is a running PostgreSQL.
type Server struct {
	bin       string // where its programs are
	directory string // the cluster, its socket and its log
	port      int
	user      *syscall.Credential // whom it runs as; nil for ourselves

	script *exec.Cmd
	alive  io.Closer // what the script watches
}

//go:embed serve.sh
var script string

// tries is how often another port is tried: a free one may be taken before the server gets it.
const tries = 5

// Start starts a server with its files below parent, "" for the usual place of temporary files. ErrNotInstalled says that there is no PostgreSQL.
func Start(parent string) (*Server, error) {
	bin := installed()
	if bin == "" {
		return nil, ErrNotInstalled
	}
	user, err := unprivileged()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		s := &Server{bin: bin, user: user}
		err := s.start(parent)
		if err == nil {
			return s, nil
		}
		if try == tries {
			return nil, err
		}
	}
}

func (s *Server) start(parent string) (err error) {
	if s.directory, err = s.MakeDirectory(parent); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	s.script = Command(s.user, "/bin/sh", "-c", script, "serve.sh", s.bin, s.directory, strconv.Itoa(s.port))
	// A keyboard's interrupt is for this process; the script goes by the pipe alone.
	s.script.SysProcAttr.Setsid = true
	alive, err := s.script.StdinPipe()
	if err != nil {
		return err
	}
	out, err := s.script.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.script.Start(); err != nil {
		return err
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if said == "ready\n" {
		s.alive = alive
		return nil
	}
	rest, _ := io.ReadAll(out) // what there is of an explanation
	return errors.Join(fmt.Errorf("%s%s", said, rest), err, s.script.Wait())
}

// Close stops the server, and returns when its directory is gone.
func (s *Server) Close() error {
	return errors.Join(s.alive.Close(), s.script.Wait())
}

// URL returns the URL of a database, which need not exist, for a user who may do anything.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Directory returns where the server keeps its files: the cluster in data, the log in log.
func (s *Server) Directory() string { return s.directory }

// User returns whom the server runs as, nil where that is whom this process runs as.
func (s *Server) User() *syscall.Credential { return s.user }

// Restart stops the server without letting it finish anything, and starts it again, which makes it recover. One that is gone is started.
func (s *Server) Restart() error {
	restart := Command(s.user, filepath.Join(s.bin, "pg_ctl"), "restart", "-w", "-s",
		"-m", "immediate", "-D", filepath.Join(s.directory, "data"), "-l", filepath.Join(s.directory, "log"))
	out, err := restart.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// MakeDirectory makes a directory below parent, "" for the usual place of temporary files, that belongs to whom the server runs
// as. Where that user cannot get at parent it is made in /tmp.
func (s *Server) MakeDirectory(parent string) (string, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if s.user != nil && !open(parent) {
		parent = "/tmp"
	}
	dir, err := os.MkdirTemp(parent, "pgserver-")
	if err != nil || s.user == nil {
		return dir, err
	}
	return dir, os.Chown(dir, int(s.user.Uid), int(s.user.Gid))
}

// Command returns a command that is run as a user, nil for whom this process runs as, without the settings for clients, such as
// PGHOST, that are not meant for this server.
func Command(user *syscall.Credential, name string, arguments ...string) *exec.Cmd {
	c := exec.Command(name, arguments...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PG") {
			c.Env = append(c.Env, v)
		}
	}
	return c
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
