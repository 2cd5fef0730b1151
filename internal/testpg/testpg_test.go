// SPDX-License-Identifier: Apache-2.0

package testpg

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func query(t *testing.T, url, sql string) (answer string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	err = conn.QueryRow(t.Context(), sql).Scan(&answer)
	require.NoError(t, errors.Join(err, conn.Close(t.Context())))
	return answer
}

func TestDatabasesAreSeparateAndGoWithTheirTest(t *testing.T) {
	s := Start(t)
	require.Same(t, s, Start(t))
	t.Run("databases", func(t *testing.T) {
		a, b := s.NewDatabase(t), s.NewDatabase(t)
		require.NotEqual(t, query(t, a, "select current_database()::text"), query(t, b, "select current_database()::text"))
	})
	require.Equal(t, "0", query(t, s.URL(), "select count(*)::text from pg_database where datname like 'test_%'"))
}

func TestServerIsDurableAndLocal(t *testing.T) {
	s := Start(t)
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "listen_addresses": "127.0.0.1",
	} {
		require.Equal(t, want, query(t, s.URL(), "show "+setting), setting)
	}
}

func TestServerRecoversFromACrash(t *testing.T) {
	s := Start(t)
	s.Exec(t, "create table kept as select 1")
	t.Cleanup(func() { s.Exec(t, "drop table kept") })
	before := query(t, s.URL(), "select pg_postmaster_start_time()::text")
	s.Crash(t)
	require.NotEqual(t, before, query(t, s.URL(), "select pg_postmaster_start_time()::text"))
	require.Equal(t, "1", query(t, s.URL(), "select count(*)::text from kept"))
}

func TestOneUserIsAskedForAPassword(t *testing.T) {
	s := Start(t)
	url := s.NewUser(t, s.NewDatabase(t), Sworn, "password 'secret'")
	_, err := pgx.Connect(t.Context(), url)
	require.ErrorContains(t, err, "password authentication failed")
	require.Equal(t, Sworn, query(t, strings.Replace(url, "sworn@", "sworn:secret@", 1), "select current_user::text"))
}

func TestADiskIsSmallAndGoesWithItsTest(t *testing.T) {
	s := Start(t)
	var dir string
	t.Run("disk", func(t *testing.T) {
		d, err := s.NewDisk(t, 16<<20, 1<<20)
		if err != nil {
			t.Logf("no disk here: %v", err)
			return
		}
		dir = filepath.Dir(d.ballast)
		var disk syscall.Statfs_t
		require.NoError(t, syscall.Statfs(dir, &disk))
		require.EqualValues(t, 16<<20, int64(disk.Blocks)*int64(disk.Bsize))
		require.Equal(t, "1", query(t, d.URL, "select count(*)::text from pg_tablespace where spcname like 'disk_%'"))
		d.Drop(t)
	})
	require.NoDirExists(t, dir)
}

// TestServerOfAnotherProcess is the process that TestServerEndsWithItsProcess kills.
func TestServerOfAnotherProcess(t *testing.T) {
	if os.Getenv("TESTPG_SERVE") == "" {
		return // by itself it says nothing
	}
	s := Start(t)
	disk := ""
	if d, err := s.NewDisk(t, 16<<20, 0); err == nil {
		disk = filepath.Dir(d.ballast)
	}
	fmt.Println("directories", s.Directory(), disk)
	select {}
}

func TestServerEndsWithItsProcess(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=^TestServerOfAnotherProcess$")
	c.Env = append(os.Environ(), "TESTPG_SERVE=1")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	said, found := strings.CutPrefix(strings.TrimSpace(said), "directories ")
	require.True(t, found, said)
	dirs := strings.Fields(said)

	pidFile, err := os.ReadFile(filepath.Join(dirs[0], "data", "postmaster.pid"))
	require.NoError(t, err)
	first, _, _ := strings.Cut(string(pidFile), "\n")
	pid, err := strconv.Atoi(first)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0), "the server is running")

	require.NoError(t, c.Process.Kill())
	require.Error(t, c.Wait())
	// Nobody tells when it is over, which is the point.
	require.Eventually(t, func() bool {
		for _, dir := range dirs {
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				return false
			}
		}
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}, 30*time.Second, 10*time.Millisecond)
}
