// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/pgpool"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
)

func TestReadsGoOnAfterTheServerCrashed(t *testing.T) {
	server := testpg.Start(t)
	s, ctx := open(t, server.NewDatabase(t)), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("v")))
	it, err := s.Scan(ctx, part, kv.ScanOptions{})
	require.NoError(t, err)
	var conns []*pgxpool.Conn
	for range pgpool.MaxConns { // as many dead connections as there can be
		conn, err := s.pool.Acquire(ctx)
		require.NoError(t, err)
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Release()
	}
	server.Crash(t)
	item, err := s.Get(ctx, part, []byte("k"))
	require.NoError(t, err)
	require.Equal(t, "v", string(item.Value))
	require.True(t, it.Next())
	require.NoError(t, it.Close())
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("w")), "the dead connections are gone")
}

// writer overwrites keys of its own with numbers that grow, and remembers what it was told.
type writer struct {
	key          []byte
	attempted    int
	acknowledged int
	failed       int
}

func (w *writer) write(ctx context.Context, s *Store) {
	w.attempted++
	value := fmt.Appendf(nil, "%08d", w.attempted)
	var err error
	switch w.attempted % 3 {
	case 0:
		err = s.Set(ctx, part, w.key, value)
	case 1:
		err = s.Apply(ctx, part, []kv.Write{{Key: w.key, Value: value}, {Key: append(w.key, '2')}}, nil)
	default:
		p := kv.Present
		if w.acknowledged == 0 {
			p = kv.Absent
		}
		err = s.SetIf(ctx, part, w.key, value, p)
	}
	if err != nil {
		w.failed++
		return
	}
	w.acknowledged = w.attempted
}

// disturb lets writers write while something happens to the server, until each was told of success
// again afterwards, and checks that nobody was told of a success that was none.
func disturb(t *testing.T, s *Store, happens func()) (failed int) {
	writers := make([]*writer, 8)
	var over atomic.Bool
	var g errgroup.Group
	begun := make(chan struct{}, len(writers))
	for i := range writers {
		w := &writer{key: fmt.Appendf(nil, "writer-%d-", i)}
		writers[i] = w
		g.Go(func() error {
			for after := 0; after < 3; {
				last := over.Load()
				before := w.acknowledged
				w.write(t.Context(), s)
				if w.attempted == 5 {
					begun <- struct{}{}
				}
				if last && w.acknowledged > before {
					after++
				}
			}
			return nil
		})
	}
	for range writers {
		<-begun
	}
	happens()
	over.Store(true)
	require.NoError(t, g.Wait())
	for _, w := range writers {
		item, err := s.Get(t.Context(), part, w.key)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%08d", w.acknowledged), string(item.Value))
		failed += w.failed
	}
	return failed
}

func TestNoWriteIsAcknowledgedAndLostInACrash(t *testing.T) {
	server := testpg.Start(t)
	s := open(t, server.NewDatabase(t))
	disturb(t, s, func() { server.Crash(t) })
}

func TestNoWriteIsAcknowledgedAndLostWithItsConnection(t *testing.T) {
	server := testpg.Start(t)
	url := server.NewDatabase(t)
	s := open(t, url)
	killer := connect(t, url)
	disturb(t, s, func() {
		for range 20 {
			count(t, killer, `select count(pg_terminate_backend(pid)) from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and state = 'active'`)
		}
	})
}

// TestAWriteWhoseConnectionDiesFails ends a connection while the write waits on the server, where
// it has certainly been sent and not been performed: it must not be repeated.
func TestAWriteWhoseConnectionDiesFails(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	s, ctx := open(t, url), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("old")))
	present := kv.Present
	for name, write := range map[string]func() error{
		"Set":    func() error { return s.Set(ctx, part, []byte("k"), []byte("new")) },
		"Delete": func() error { return s.Delete(ctx, part, []byte("k")) },
		"SetIf":  func() error { return s.SetIf(ctx, part, []byte("k"), []byte("new"), kv.Present) },
		"Apply": func() error {
			return s.Apply(ctx, part, []kv.Write{{Key: []byte("k"), Value: []byte("new"), If: &present}, {Key: []byte("l")}}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			tx, err := connect(t, url).Begin(ctx)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, `select from moraine.kv where key = 'k' for update`)
			require.NoError(t, err)
			outcome := make(chan error, 1)
			go func() { outcome <- write() }()
			watcher := connect(t, url)
			eventually(t, watcher, 1, `select count(*) from pg_stat_activity where wait_event_type = 'Lock'`)
			count(t, watcher, `select count(pg_terminate_backend(pid)) from pg_stat_activity where wait_event_type = 'Lock'`)
			require.Error(t, <-outcome)
			require.NoError(t, tx.Rollback(ctx))
			item, err := s.Get(ctx, part, []byte("k"))
			require.NoError(t, err)
			require.Equal(t, "old", string(item.Value))
		})
	}
}

// TestWritesThatWaitTravelTogether keeps all trips of a lane waiting for a lock while more arrives.
func TestWritesThatWaitTravelTogether(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	s, ctx := open(t, url), t.Context()
	var trips atomic.Int64
	run := s.groups.run
	s.groups.run = func(ctx context.Context, l lane, requests []*request) error {
		trips.Add(1)
		return run(ctx, l, requests)
	}
	conn, watcher := connect(t, url), connect(t, url)
	tx, err := conn.Begin(ctx)
	require.NoError(t, err)
	for i := range laneTrips {
		_, err = tx.Exec(ctx, setAll, [][]byte{part}, [][]byte{fmt.Appendf(nil, "locked-%d", i)}, [][]byte{{}})
		require.NoError(t, err)
	}
	var g errgroup.Group
	for i := range laneTrips {
		g.Go(func() error { return s.Set(ctx, part, fmt.Appendf(nil, "locked-%d", i), []byte("v")) })
		eventually(t, watcher, i+1, `select count(*) from pg_stat_activity where wait_event_type = 'Lock'`)
	}

	const more = 100
	withdrawn, cancel := context.WithCancel(ctx)
	for i := range more {
		g.Go(func() error { return s.Set(ctx, part, fmt.Appendf(nil, "key-%d", i%90), fmt.Appendf(nil, "%d", i)) })
	}
	gone := make(chan error, 1)
	go func() { gone <- s.Set(withdrawn, part, []byte("withdrawn"), []byte("v")) }()
	require.Eventually(t, func() bool {
		s.groups.mu.Lock()
		defer s.groups.mu.Unlock()
		return len(s.groups.lanes[lane{}].waiting) == more+1
	}, waitLong, waitStep)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)

	require.NoError(t, tx.Rollback(ctx))
	require.NoError(t, g.Wait())
	require.Equal(t, laneTrips+1, int(trips.Load()))
	require.Equal(t, laneTrips+90, count(t, watcher, `select count(*) from moraine.kv`))
}

// Each gets the value of its own key, or none, however they are put together.
func TestReadsThatWaitTravelTogether(t *testing.T) {
	s, ctx := open(t, testpg.Start(t).NewDatabase(t)), t.Context()
	const keys, more = 40, 250
	for i := range keys {
		require.NoError(t, s.Set(ctx, part, fmt.Appendf(nil, "key-%d", i), fmt.Appendf(nil, "%d", i)))
	}
	require.NoError(t, s.Set(ctx, part, []byte("key-0"), []byte{}))
	var trips atomic.Int64
	start := make(chan struct{})
	run := s.groups.run
	s.groups.run = func(ctx context.Context, l lane, requests []*request) error {
		trips.Add(1)
		<-start
		return run(ctx, l, requests)
	}
	var g errgroup.Group
	get := func(i int) {
		g.Go(func() error {
			item, err := s.Get(ctx, part, fmt.Appendf(nil, "key-%d", i))
			switch {
			case i >= keys && !errors.Is(err, kv.ErrNotFound):
				return fmt.Errorf("key %d, which is not there: %q, %w", i, item.Value, err)
			case i < keys && err != nil:
				return err
			case i == 0 && (item.Value == nil || len(item.Value) != 0), 0 < i && i < keys && string(item.Value) != strconv.Itoa(i):
				return fmt.Errorf("key %d: %q", i, item.Value)
			}
			return nil
		})
	}
	for i := range laneTrips {
		get(i)
		require.Eventually(t, func() bool { return trips.Load() == int64(i+1) }, waitLong, waitStep)
	}
	for i := range more {
		get(i % (2 * keys))
	}
	withdrawn, cancel := context.WithCancel(ctx)
	gone := make(chan error, 1)
	go func() {
		_, err := s.Get(withdrawn, part, []byte("key-1"))
		gone <- err
	}()
	waiting := func(n int) func() bool {
		return func() bool {
			s.groups.mu.Lock()
			defer s.groups.mu.Unlock()
			return len(s.groups.lanes[lane{kind: reads}].waiting) == n
		}
	}
	require.Eventually(t, waiting(more+1), waitLong, waitStep)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	close(start)
	require.NoError(t, g.Wait())
	require.Equal(t, laneTrips+(more+groupReads-1)/groupReads, int(trips.Load()))
}
