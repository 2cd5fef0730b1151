// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
)

// The variables that tell this program, run again by the test below, to be a writer or a committer on a store.
const (
	workerRole  = "MORAINE_TEST_WORKER"
	workerStore = "MORAINE_TEST_STORE"
	workerFiles = "MORAINE_TEST_FILES"
)

func onPostgres(url, dir string) moraine.Options {
	return moraine.Options{Store: url, Engines: kv.Engines{"postgres": postgres.Open}, Blocks: "file:" + dir}
}

// worker runs until its standard input ends, and prints a line for each acknowledgement. What fails is tried again: its outcome is unknown.
func worker(role string) (err error) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, err := moraine.Open(ctx, onPostgres(os.Getenv(workerStore), os.Getenv(workerFiles)))
	if err != nil {
		return err
	}
	var group errgroup.Group
	if role == "commit" {
		group.Go(func() error { commitOn(ctx, s); return nil })
	} else {
		for w := range 16 {
			group.Go(func() error { writeOn(ctx, s, w); return nil })
		}
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	stop()
	return errors.Join(err, group.Wait(), s.Close())
}

func writeOn(ctx context.Context, s *moraine.Store, w int) {
	for i := 0; ctx.Err() == nil; i++ {
		k := fmt.Sprintf("w%02d/%d", w, i%30)
		for ctx.Err() == nil {
			if err := s.Set(ctx, "lake", "main", graveler.Key(k), entryValue(fmt.Sprint(i))); err == nil {
				fmt.Printf("staged %s %d\n", k, i)
				break
			}
		}
	}
}

func commitOn(ctx context.Context, s *moraine.Store) {
	for i := 0; ctx.Err() == nil; i++ {
		res, err := s.Commit(ctx, "lake", "main", graveler.CommitParams{Message: fmt.Sprint(i)})
		if err == nil {
			fmt.Printf("committed %s x\n", res.Commit.ID)
		}
	}
}

// PostgreSQL is killed and started again twenty times while one process stages from sixteen goroutines and another commits.
// Everything that was acknowledged is there, in order.
func TestPostgresKilledUnderLoadLosesNothing(t *testing.T) {
	ctx := context.Background()
	server := testpg.Start(t)
	url, files := server.NewDatabase(t), t.TempDir()
	s := open(t, onPostgres(url, files))
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)

	acknowledged := acknowledgements{staged: map[string]string{}, arrived: make(chan struct{}, 1)}
	var stops []func()
	for _, role := range []string{"write", "commit"} {
		stops = append(stops, acknowledged.start(t, role, url, files))
	}
	for range 20 {
		acknowledged.await(t, 200)
		server.Kill(t)
	}
	acknowledged.await(t, 200)
	for _, stop := range stops {
		stop()
	}
	t.Logf("%d acknowledged writes, %d acknowledged commits", acknowledged.writes, len(acknowledged.commits))

	before := contents(t, s)
	for k, text := range acknowledged.staged {
		// A write that was under way when the process was told to stop may have taken place.
		require.True(t, number(t, before[k]) >= number(t, text), "%s: acknowledged %s, found %s", k, text, before[k])
	}
	require.NoError(t, s.Close())
	server.Kill(t)
	s = open(t, onPostgres(url, files))
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, before, contents(t, s))
	for _, id := range acknowledged.commits {
		_, err := s.ResolveRef(ctx, "lake", id)
		require.NoError(t, err)
	}
}

// contents reads everything there is: what the branch shows, each commit's entries, and the log, which must link up with the history.
func contents(t *testing.T, s *moraine.Store) map[string]string {
	ctx := context.Background()
	all := map[string]string{}
	read := func(ref, prefix string) {
		for e, err := range s.List(ctx, "lake", ref, graveler.ListOptions{}) {
			require.NoError(t, err)
			all[prefix+string(e.Key)] = string(e.Value.Data)
		}
	}
	read("main", "")
	var history []graveler.CommitID
	for c, err := range s.Log(ctx, "lake", "main", graveler.LogOptions{}) {
		require.NoError(t, err)
		history = append(history, c.ID)
		read(string(c.ID), string(c.ID)+":")
	}
	n, last := len(history), int64(0)
	for m, err := range s.BranchLog(ctx, "lake", "main", 0) {
		require.NoError(t, err)
		require.Greater(t, m.Time, last)
		last = m.Time
		n--
		require.Equal(t, history[n], m.New)
	}
	require.Zero(t, n)
	return all
}

func number(t *testing.T, text string) (n int) {
	_, err := fmt.Sscan(text, &n)
	require.NoError(t, err, text)
	return n
}

// acknowledgements collects what workers print.
type acknowledgements struct {
	mu      sync.Mutex
	staged  map[string]string
	commits []string
	writes  int
	arrived chan struct{}
}

// start runs a worker and returns the function that stops it and waits for it.
func (a *acknowledgements) start(t *testing.T, role, url, files string) (stop func()) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerRole+"="+role, workerStore+"="+url, workerFiles+"="+files)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	read := make(chan error, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			a.note(strings.Fields(lines.Text()))
		}
		read <- lines.Err()
	}()
	return func() {
		require.NoError(t, in.Close())
		require.NoError(t, <-read)
		require.NoError(t, cmd.Wait())
	}
}

func (a *acknowledgements) note(f []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch f[0] {
	case "staged":
		a.staged[f[1]] = f[2]
		a.writes++
	case "committed":
		a.commits = append(a.commits, f[1])
	}
	select {
	case a.arrived <- struct{}{}:
	default:
	}
}

// await returns when n more writes have been acknowledged.
func (a *acknowledgements) await(t *testing.T, n int) {
	count := func() int { a.mu.Lock(); defer a.mu.Unlock(); return a.writes }
	for until := count() + n; count() < until; {
		select {
		case <-a.arrived:
		case <-t.Context().Done():
			t.Fatal("no acknowledgements")
		}
	}
}
