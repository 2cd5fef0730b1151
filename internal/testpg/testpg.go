// SPDX-License-Identifier: Apache-2.0

// Package testpg gives tests a throw-away PostgreSQL.
//
//	url := testpg.Start(t).NewDatabase(t)
//
// The first call of a test process finds PostgreSQL on the PATH or where Debian keeps it, installs it
// with apt-get if that is possible, makes a cluster in a temporary directory and starts it; the other
// calls share it. A test that needs it and cannot have it fails, and says what to install.
//
// The server is that of package pgserver: it is durable, listens on 127.0.0.1 only, trusts everybody who gets there except the user
// [Sworn], and is gone when the process ends, however it does.
package testpg

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/moraine-store/moraine/internal/pgserver"
)

// Server is a running PostgreSQL.
type Server struct {
	*pgserver.Server
	databases atomic.Int64
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
func (s *Server) URL() string { return s.Server.URL("postgres") }

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
	return s.Server.URL(name)
}

// Sworn is the one user who must prove who he is, with a password.
const Sworn = pgserver.Sworn

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
	require.NoError(tb, s.Restart())
}

// Kill ends the server and all its processes with SIGKILL, as a machine that fails would, and starts it again.
func (s *Server) Kill(tb testing.TB) {
	tb.Helper()
	file, err := os.ReadFile(filepath.Join(s.Directory(), "data", "postmaster.pid"))
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
	require.EventuallyWithT(tb, func(c *assert.CollectT) { assert.NoError(c, s.Restart()) }, time.Minute, 10*time.Millisecond)
}
