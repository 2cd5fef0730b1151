// SPDX-License-Identifier: Apache-2.0

// Package testpg gives tests a throw-away PostgreSQL.
//
//	url := testpg.Start(t).NewDatabase(t)
//
// The first call of a test process finds PostgreSQL on the PATH or where Debian keeps it, installs it
// with apt-get if that is possible, makes a cluster in a temporary directory and starts it; the other
// calls share it. A test that needs it and cannot have it fails, and says what to install.
//
// The server listens on 127.0.0.1 only, trusts everybody who gets there except the user [Sworn],
// and is as durable as any (fsync is on). It belongs to a small shell script that reads from a pipe of which this process
// holds the other end. When the process ends, however it does, the pipe closes, and the script stops
// the server and removes the directory. A test run that is killed leaves nothing behind.
package testpg

import (
	"bufio"
	"context"
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
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Server is a running PostgreSQL.
type Server struct {
	bin       string // where its programs are
	directory string // the cluster, its socket and its log
	port      int
	user      *syscall.Credential // whom it runs as; nil for ourselves
	databases atomic.Int64

	alive io.Closer // what the script watches; held open for as long as this process lives
}

// Start returns the server of this process, which it starts if nobody has yet.
func Start(tb testing.TB) *Server {
	tb.Helper()
	s, err := shared()
	if err != nil {
		tb.Fatalf("throw-away PostgreSQL: %v", err)
	}
	return s
}

// shared is the one thing that outlives a test: starting a server for each would take minutes.
var shared = sync.OnceValues(start)

// URL returns the URL of the database that exists from the beginning, with a user who may do anything.
func (s *Server) URL() string { return s.url("postgres") }

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// NewDatabase makes an empty database that is dropped when the test ends, and returns its URL.
func (s *Server) NewDatabase(tb testing.TB) string {
	tb.Helper()
	return s.newDatabase(tb, "pg_default")
}

func (s *Server) newDatabase(tb testing.TB, tablespace string) string {
	tb.Helper()
	name := fmt.Sprintf("test_%d", s.databases.Add(1))
	s.Exec(tb, "create database "+name+" tablespace "+tablespace)
	tb.Cleanup(func() { s.Exec(tb, "drop database "+name+" with (force)") })
	return s.url(name)
}

// Sworn is the one user who must prove who he is, with a password.
const Sworn = "sworn"

// NewUser makes a user who may create schemas in a database, and returns the database's URL for him.
// The options are those of CREATE ROLE; without, he may do nothing else. When the test ends, the user
// is dropped with all that is his.
func (s *Server) NewUser(tb testing.TB, database, name, options string) string {
	tb.Helper()
	s.Exec(tb, "create role "+name+" login "+options)
	tb.Cleanup(func() { s.Exec(tb, "drop role "+name) })
	in, err := pgx.ParseConfig(database)
	require.NoError(tb, err)
	execIn(tb, database, "grant create on database "+in.Database+" to "+name)
	tb.Cleanup(func() { execIn(tb, database, "drop owned by "+name) })
	return strings.Replace(database, "//postgres@", "//"+name+"@", 1)
}

// Exec runs a statement in the database of URL.
func (s *Server) Exec(tb testing.TB, sql string) {
	tb.Helper()
	execIn(tb, s.URL(), sql)
}

func execIn(tb testing.TB, url, sql string) {
	tb.Helper()
	ctx := context.Background() // that of a test has ended when its cleanup runs
	conn, err := pgx.Connect(ctx, url)
	require.NoError(tb, err)
	_, err = conn.Exec(ctx, sql)
	require.NoError(tb, errors.Join(err, conn.Close(ctx)))
}

// Crash stops the server without letting it finish anything, and starts it again, which makes it
// recover from its log. It returns when the server accepts connections.
func (s *Server) Crash(tb testing.TB) {
	tb.Helper()
	require.NoError(tb, s.restart())
}

func (s *Server) restart() error {
	restart := command(s.user, filepath.Join(s.bin, "pg_ctl"), "restart", "-w", "-s",
		"-m", "immediate", "-D", filepath.Join(s.directory, "data"), "-l", filepath.Join(s.directory, "log"))
	out, err := restart.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// Kill ends the server and all its processes with SIGKILL, as a machine that fails would, and starts it again.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	file, err := os.ReadFile(filepath.Join(s.directory, "data", "postmaster.pid"))
	require.NoError(tb, err)
	first, _, _ := strings.Cut(string(file), "\n")
	postmaster, err := strconv.Atoi(first)
	require.NoError(tb, err)
	children, err := exec.Command("ps", "-o", "pid=", "--ppid", first).Output()
	require.NoError(tb, err)
	require.NoError(tb, syscall.Kill(postmaster, syscall.SIGKILL))
	for pid := range strings.FieldsSeq(string(children)) {
		child, err := strconv.Atoi(pid)
		require.NoError(tb, err)
		if err := syscall.Kill(child, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			require.NoError(tb, err)
		}
	}
	// Until the last process of the old server is gone, a new one refuses to start.
	require.EventuallyWithT(tb, func(c *assert.CollectT) { assert.NoError(c, s.restart()) }, time.Minute, 10*time.Millisecond)
}

//go:embed serve.sh
var script string

// tries is how often another port is tried: a free one may be taken before the server gets it.
const tries = 5

func start() (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	user, err := unprivileged()
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		s := &Server{bin: bin, user: user}
		err := s.start()
		if err == nil {
			return s, nil
		}
		if try == tries {
			return nil, err
		}
	}
}

func (s *Server) start() (err error) {
	if s.directory, err = directoryFor(s.user); err != nil {
		return err
	}
	if s.port, err = freePort(); err != nil {
		return err
	}
	serve := command(s.user, "/bin/sh", "-c", script, "serve.sh", s.bin, s.directory, strconv.Itoa(s.port))
	// A keyboard's interrupt is for the tests; the script goes by the pipe alone.
	serve.SysProcAttr.Setsid = true
	alive, err := serve.StdinPipe()
	if err != nil {
		return err
	}
	out, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if said == "ready\n" {
		s.alive = alive
		return nil
	}
	rest, _ := io.ReadAll(out) // what there is of an explanation
	return errors.Join(fmt.Errorf("%s%s", said, rest), err, serve.Wait())
}

func command(user *syscall.Credential, name string, arguments ...string) *exec.Cmd {
	c := exec.Command(name, arguments...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	// Settings for clients, such as PGHOST, are not meant for this server.
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
