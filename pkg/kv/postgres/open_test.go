// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
)

var engines = kv.Engines{"postgres": Open}

// TestOpenOfAnotherProcess is one of the processes that TestManyProcessesCreateTheTablesAtOnce starts.
func TestOpenOfAnotherProcess(t *testing.T) {
	url := os.Getenv("MORAINE_TEST_OPEN")
	if url == "" {
		return // by itself it says nothing
	}
	s, err := kv.Open(t.Context(), url, engines, kv.OpenOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Set(t.Context(), part, fmt.Append(nil, os.Getpid()), []byte("v")))
	require.NoError(t, s.Close())
}

func TestManyProcessesCreateTheTablesAtOnce(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	const processes = 10
	var g errgroup.Group
	for range processes {
		g.Go(func() error {
			c := exec.Command(os.Args[0], "-test.run=^TestOpenOfAnotherProcess$")
			c.Env = append(os.Environ(), "MORAINE_TEST_OPEN="+url)
			if out, err := c.CombinedOutput(); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, processes, count(t, connect(t, url), `select count(*) from moraine.kv where partition_key = $1`, part))
}

func TestOpenReadOnlyCreatesNothing(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	_, err := kv.Open(t.Context(), url, engines, kv.OpenOptions{ReadOnly: true})
	require.ErrorIs(t, err, kv.ErrNotAStore)
	require.Zero(t, count(t, connect(t, url), `select count(*) from pg_namespace where nspname = 'moraine'`))
}

func TestOpenLeavesOtherTablesAlone(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), `create table kv as select 1 as x`)
	require.NoError(t, err)
	s := open(t, url)
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	require.Equal(t, 1, count(t, conn, `select count(*) from kv`))
}

func TestOpenRefusesWhatIsNotItsOwn(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	conn := connect(t, url)
	_, err := conn.Exec(t.Context(), `create schema moraine create table kv (x int)`)
	require.NoError(t, err)
	_, err = kv.Open(t.Context(), url, engines, kv.OpenOptions{})
	require.ErrorIs(t, err, kv.ErrNotAStore)
	require.Zero(t, count(t, conn, `select count(*) from pg_class where relname = 'layout'`), "nothing was left")
}

func TestOpenRefusesNewerTables(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	require.NoError(t, open(t, url).Close())
	_, err := connect(t, url).Exec(t.Context(), `insert into moraine.layout values (999)`)
	require.NoError(t, err)
	for _, o := range []kv.OpenOptions{{}, {ReadOnly: true}} {
		_, err = kv.Open(t.Context(), url, engines, o)
		require.ErrorIs(t, err, kv.ErrSchemaNewer)
		require.ErrorContains(t, err, "999")
	}
}

func TestUserWithoutRightsToCreateOpensWhatExists(t *testing.T) {
	server := testpg.Start(t)
	url := server.NewDatabase(t)
	require.NoError(t, open(t, url).Close())
	conn := connect(t, url)
	for _, sql := range []string{
		`create user worker`, `grant usage on schema moraine to worker`,
		`grant select on moraine.layout to worker`, `grant select, insert, update, delete on moraine.kv to worker`,
	} {
		_, err := conn.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		_, err := conn.Exec(context.Background(), `drop owned by worker; drop user worker`)
		require.NoError(t, err)
	})
	s := open(t, strings.Replace(url, "postgres@", "worker@", 1))
	require.NoError(t, s.SetIf(t.Context(), part, []byte("k"), []byte("v"), kv.Absent))
	require.NoError(t, s.Close())
}

func alterDatabase(t *testing.T, conn *pgx.Conn, setting string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), `alter database `+conn.Config().Database+` set `+setting)
	require.NoError(t, err)
}

// TestSettingsOfTheDatabaseDoNotMatter sets what would break the promises.
func TestSettingsOfTheDatabaseDoNotMatter(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	conn := connect(t, url)
	for _, setting := range []string{
		"default_transaction_isolation to 'repeatable read'", "statement_timeout to 1", "lock_timeout to 1",
		"synchronous_commit to off",
	} {
		alterDatabase(t, conn, setting)
	}
	s := open(t, url)
	c, err := s.pool.Acquire(t.Context())
	require.NoError(t, err)
	defer c.Release()
	for name, want := range map[string]string{
		"default_transaction_isolation": "read committed", "statement_timeout": "0", "lock_timeout": "0",
		"synchronous_commit": "on", "application_name": "moraine",
	} {
		var got string
		require.NoError(t, c.QueryRow(t.Context(), "show "+name).Scan(&got))
		require.Equal(t, want, got, name)
	}
}

func TestErrorsOfOpenAreClearAndHideCredentials(t *testing.T) {
	server := testpg.Start(t)
	url := server.NewDatabase(t)
	conn := connect(t, url)
	alterDatabase(t, conn, "default_transaction_read_only to on")
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())

	withPassword := strings.Replace(url, "postgres@", "postgres:hush-hush@", 1)
	for name, c := range map[string]struct{ url, says string }{
		"read-only":        {withPassword, "accepts no writes"},
		"unreachable":      {"postgres://me:hush-hush@" + closed.Addr().String() + "/db", "connection refused"},
		"no such user":     {strings.Replace(url, "postgres@", "nobody-here:hush-hush@", 1), "nobody-here"},
		"no such database": {strings.Replace(withPassword, "/test_", "/nothing_", 1), "does not exist"},
		"malformed port":   {"postgres://me:hush-hush@host:port/db", "malformed"},
		"malformed user":   {"postgres://me:hush-hush/?#@host/db", ""},
		"malformed pool":   {"postgres://me@host/db?password=hush-hush&pool_max_conns=many", "malformed"},
		"no slashes":       {"postgres:db", "malformed"},
	} {
		_, err := kv.Open(t.Context(), c.url, engines, kv.OpenOptions{})
		require.Error(t, err, name)
		require.ErrorContains(t, err, c.says, name)
		require.NotContains(t, err.Error(), "hush-hush", name)
		require.NotContains(t, fmt.Sprintf("%+v %#v", err, err), "hush-hush", name)
	}
}

func TestReadOnlyStoreMayUseAReadOnlyServer(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	require.NoError(t, open(t, url).Set(t.Context(), part, []byte("k"), []byte("v")))
	alterDatabase(t, connect(t, url), "default_transaction_read_only to on")
	s, err := kv.Open(t.Context(), url, engines, kv.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	_, err = s.Get(t.Context(), part, []byte("k"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
