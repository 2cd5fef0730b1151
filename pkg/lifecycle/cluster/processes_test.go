// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

// The variables that tell this program, run again by the test below, to be a worker on a store.
const (
	processStore = "MORAINE_TEST_STORE"
	processFiles = "MORAINE_TEST_FILES"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(processStore); url != "" {
		if err := process(url, os.Getenv(processFiles)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func openStore(ctx context.Context, url, files string) (*moraine.Store, kv.Store, error) {
	records, err := kv.Open(ctx, url, kv.Engines{"postgres": postgres.Open}, kv.OpenOptions{})
	if err != nil {
		return nil, nil, err
	}
	s, err := moraine.Open(ctx, moraine.Options{KV: records, Blocks: "file:" + files})
	return s, records, err
}

// processPass is what a process prints of a pass.
type processPass struct {
	Shards  []int
	Removed int
}

// process makes one pass after another until its standard input ends, on days of a second.
func process(url, files string) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s, records, err := openStore(ctx, url, files)
	if err != nil {
		return err
	}
	w, err := cluster.New(cluster.Config{Store: records, LeaseFor: 3 * time.Second, RenewEvery: time.Second})
	if err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		stop()
		ended <- err
	}()
	out := json.NewEncoder(os.Stdout)
	for ctx.Err() == nil && err == nil {
		var r *dailyrun.Report
		r, err = dailyrun.Run(ctx, dailyrun.Config{Store: s.Graveler, Records: records, Holder: w, Limiter: w.Limiter(), Day: time.Second, DayBoundary: lifecycle.Exact})
		if errors.Is(err, context.Canceled) {
			err = nil
		}
		if r == nil || err != nil {
			break
		}
		var p processPass
		for _, shard := range r.Shards {
			p.Shards = append(p.Shards, shard.Shard)
		}
		for d, n := range r.Outcomes {
			if d.Outcome == lifecycle.Done {
				p.Removed += n
			}
		}
		err = out.Encode(p)
	}
	stop()
	return errors.Join(err, <-ended, w.Close(context.Background()), s.Close(), records.Close())
}

// processOf is a process under test.
type processOf struct {
	cmd    *exec.Cmd
	in     io.Closer
	passes chan processPass
}

func startProcess(t *testing.T, url, files string) *processOf {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), processStore+"="+url, processFiles+"="+files)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	p := &processOf{cmd, in, make(chan processPass, 1<<16)}
	go func() {
		defer close(p.passes)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var one processPass
			if json.Unmarshal(lines.Bytes(), &one) == nil { // a line may be cut off by a kill
				p.passes <- one
			}
		}
	}()
	return p
}

// until returns when a pass is as wanted, and how much was removed until then.
func (p *processOf) until(t *testing.T, wanted func(one processPass, removed int) bool) (removed int) {
	end := time.After(time.Minute)
	for {
		select {
		case one, more := <-p.passes:
			require.True(t, more, "the process has ended")
			if removed += one.Removed; wanted(one, removed) {
				return removed
			}
		case <-end:
			require.FailNow(t, "no such pass")
		}
	}
}

// Two processes share the shards, and each object goes once. When one is killed, the other one takes its shards and does what
// that one would have done.
func TestTwoProcessesShareTheWorkThroughPostgreSQL(t *testing.T) {
	url, files := testpg.Start(t).NewDatabase(t), t.TempDir()
	s, records, err := openStore(t.Context(), url, files)
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(s.Close(), records.Close())) }()
	c, err := catalog.New(catalog.Config{Store: s})
	require.NoError(t, err)
	require.NoError(t, c.CreateBucket(t.Context(), "lake", catalog.CreateBucketParams{}))
	rules, err := lifecycle.ParseJSON([]byte(`{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"Prefix":"due/"},"Expiration":{"Days":2}}]}`))
	require.NoError(t, err)
	require.NoError(t, dailyrun.SetConfiguration(t.Context(), s, "lake", rules))
	const some = 64
	puts := 0
	put := func() {
		puts++
		for n := range some {
			for _, kind := range []string{"due", "kept"} {
				key := fmt.Sprintf("%s/%d/%02d", kind, puts, n)
				_, err := c.Put(t.Context(), catalog.Bucket{Repository: "lake"}, key, catalog.Object{PhysicalAddress: key}, catalog.Conditions{})
				require.NoError(t, err)
			}
		}
		_, err := s.Commit(t.Context(), "lake", "main", graveler.CommitParams{Committer: "user"})
		require.NoError(t, err)
	}

	a, b := startProcess(t, url, files), startProcess(t, url, files)
	holds := func(n int) func(processPass, int) bool {
		return func(one processPass, _ int) bool { return len(one.Shards) == n }
	}
	a.until(t, holds(8))
	b.until(t, holds(8))
	put()
	removedA := a.until(t, func(_ processPass, removed int) bool { return removed > 0 })
	removedB := b.until(t, func(_ processPass, removed int) bool { return removed > 0 })
	require.Equal(t, some, removedA+removedB, "what is due together goes with one pass of each")

	require.NoError(t, a.cmd.Process.Kill())
	require.Error(t, a.cmd.Wait())
	put()
	require.Equal(t, some, b.until(t, func(_ processPass, removed int) bool { return removed == some }))
	b.until(t, holds(lifecycle.Shards))

	again := startProcess(t, url, files)
	again.until(t, holds(8))
	for _, p := range []*processOf{b, again} {
		require.NoError(t, p.in.Close())
		require.NoError(t, p.cmd.Wait())
	}
	branch, err := s.GetBranch(t.Context(), "lake", "main")
	require.NoError(t, err)
	removed := map[string]int{}
	for m, err := range s.MoveLog(t.Context(), "lake", graveler.LogName{Branch: "main", UID: branch.UID}, 0, math.MaxInt64) {
		require.NoError(t, err)
		if m.Op != graveler.OpLifecycle {
			continue
		}
		for d, err := range s.DiffTrees(t.Context(), "lake", m.OldTree, m.NewTree, graveler.DiffOptions{}) {
			require.NoError(t, err)
			require.Nil(t, d.Right)
			removed[string(d.Key)]++
		}
	}
	require.Len(t, removed, 2*some)
	for key, n := range removed {
		require.Equal(t, 1, n, key)
		require.True(t, strings.HasPrefix(key, "due/"))
	}
}
