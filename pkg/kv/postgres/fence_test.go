// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
)

func open(t testing.TB, url string) *Store {
	t.Helper()
	s, err := Open(context.Background(), url, kv.OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.(*Store)
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(context.Background(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

func count(t testing.TB, conn *pgx.Conn, sql string, arguments ...any) (n int) {
	t.Helper()
	require.NoError(t, conn.QueryRow(context.Background(), sql, arguments...).Scan(&n))
	return n
}

// How long a test waits for the state that it needs before it gives up, and how often it looks.
const (
	waitLong = 30 * time.Second
	waitStep = 5 * time.Millisecond
)

// eventually waits for something that only the server knows.
func eventually(t testing.TB, conn *pgx.Conn, want int, sql string) {
	t.Helper()
	require.Eventually(t, func() bool { return count(t, conn, sql) == want }, waitLong, waitStep, sql)
}

var (
	part   = []byte("part")
	fenced = kv.Fence{Partition: []byte("records"), Key: []byte("branch"), Predicate: kv.Equals([]byte("old"))}
)

// everyApply has one batch for each way in which Apply goes about it.
func everyApply() map[string][]kv.Write {
	isAbsent := kv.Absent
	return map[string][]kv.Write{
		"no writes":  nil,
		"sets":       {{Key: []byte("a"), Value: []byte("v")}, {Key: []byte("b"), Value: []byte("v")}},
		"one if":     {{Key: []byte("c"), Value: []byte("v"), If: &isAbsent}},
		"one delete": {{Key: []byte("kept")}},
		"mixed":      {{Key: []byte("d"), Value: []byte("v")}, {Key: []byte("kept 2")}, {Key: []byte("e"), Value: []byte("v"), If: &isAbsent}},
	}
}

// TestApplyWaitsForAChangeOfItsFence holds the transaction of a SetIf open, as a slow commit does.
func TestApplyWaitsForAChangeOfItsFence(t *testing.T) {
	server := testpg.Start(t)
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			url := server.NewDatabase(t)
			s, ctx := open(t, url), t.Context()
			require.NoError(t, s.SetIf(ctx, fenced.Partition, fenced.Key, []byte("old"), kv.Absent))
			require.NoError(t, s.Set(ctx, part, []byte("kept"), []byte("1")))
			require.NoError(t, s.Set(ctx, part, []byte("kept 2"), []byte("1")))

			changer, watcher := connect(t, url), connect(t, url)
			tx, err := changer.Begin(ctx)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, lockExclusive, lockOf(fenced.Partition, fenced.Key))
			require.NoError(t, err)
			w := kv.Write{Key: fenced.Key, Value: []byte("new"), If: &fenced.Predicate}
			q := conditional(fenced.Partition, w, nil)
			_, err = tx.Exec(ctx, q.sql, q.arguments...)
			require.NoError(t, err)

			outcomes := make(map[string]chan error)
			for name, writes := range everyApply() {
				outcome := make(chan error, 1)
				outcomes[name] = outcome
				go func() { outcome <- s.Apply(ctx, part, writes, &fenced) }()
			}
			// Those that come later may wait for a trip to share.
			eventually(t, watcher, 1, fmt.Sprintf(
				`select (count(*) >= %d)::int from pg_locks where locktype = 'advisory' and not granted`, len(outcomes)-1))
			require.NoError(t, s.Set(ctx, part, []byte("other"), []byte("v")), "what does not rely on the fence goes on")

			_, err = tx.Exec(ctx, end)
			require.NoError(t, err)
			for name, outcome := range outcomes {
				if end == "commit" {
					require.ErrorIs(t, <-outcome, kv.ErrFenceFailed, name)
				} else {
					require.NoError(t, <-outcome, name)
				}
			}
			want := map[string]int{"commit": 2 + 1, "rollback": 5 + 1}[end]
			require.Equal(t, want, count(t, watcher, `select count(*) from moraine.kv where partition_key = $1`, part))
		})
	}
}

func TestAChangeWaitsForThoseWhoRelyOnTheFence(t *testing.T) {
	server := testpg.Start(t)
	for name, change := range map[string]func(ctx context.Context, s *Store) error{
		"SetIf": func(ctx context.Context, s *Store) error {
			return s.SetIf(ctx, fenced.Partition, fenced.Key, []byte("new"), fenced.Predicate)
		},
		"Publish": func(ctx context.Context, s *Store) error {
			before := []kv.Record{{Partition: []byte("before"), Key: []byte("b"), Value: []byte("v")}, {Partition: fenced.Partition, Key: []byte("a"), Value: []byte("v")}}
			return s.Publish(ctx, before, kv.Record{Partition: fenced.Partition, Key: fenced.Key, Value: []byte("new")}, fenced.Predicate)
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := server.NewDatabase(t)
			s, ctx := open(t, url), t.Context()
			require.NoError(t, s.SetIf(ctx, fenced.Partition, fenced.Key, []byte("old"), kv.Absent))
			tx, err := connect(t, url).Begin(ctx)
			require.NoError(t, err)
			_, err = tx.Exec(ctx, lockShared, lockOf(fenced.Partition, fenced.Key))
			require.NoError(t, err)
			require.NoError(t, s.Apply(ctx, part, everyApply()["sets"], &fenced), "fences are shared")

			outcome := make(chan error, 1)
			go func() { outcome <- change(ctx, s) }()
			watcher := connect(t, url)
			eventually(t, watcher, 1, `select count(*) from pg_locks where locktype = 'advisory' and not granted`)
			require.Zero(t, count(t, watcher, `select count(*) from moraine.kv where partition_key = $1`, []byte("before")))
			require.NoError(t, tx.Commit(ctx))
			require.NoError(t, <-outcome)
			require.ErrorIs(t, s.Apply(ctx, part, everyApply()["sets"], &fenced), kv.ErrFenceFailed)
		})
	}
}

// TestCallsGiveUpWaiting ends the context of calls that wait for a lock.
func TestCallsGiveUpWaiting(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	s := open(t, url)
	tx, err := connect(t, url).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), lockExclusive, lockOf(fenced.Partition, fenced.Key))
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	for range 3 * laneTrips {
		g.Go(func() error { return s.Apply(ctx, part, everyApply()["sets"], &fenced) })
	}
	watcher := connect(t, url)
	eventually(t, watcher, 1, `select (count(*) > 0)::int from pg_locks where locktype = 'advisory' and not granted`)
	cancel()
	require.ErrorIs(t, g.Wait(), context.Canceled)
	// The server is told, so nothing goes on waiting in our name.
	eventually(t, watcher, 0, `select count(*) from pg_locks where locktype = 'advisory' and not granted`)
	require.NoError(t, tx.Rollback(t.Context()))
	require.NoError(t, s.Close())
}

// TestBatchesOfTheSameKeysNeverDeadlock lets batches of every kind, single writes and groups meet on
// a few keys. A deadlock would be repeated and not be seen, but the server counts them.
func TestBatchesOfTheSameKeysNeverDeadlock(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	stores := []*Store{open(t, url), open(t, url)}
	conditions := []*kv.Predicate{nil, nil, new(kv.Absent), new(kv.Present), new(kv.Equals([]byte("x")))}
	values := [][]byte{nil, []byte("x"), []byte("y")}
	write := func() kv.Write {
		return kv.Write{Key: []byte{byte('a' + rand.N(6))}, Value: values[rand.N(3)], If: conditions[rand.N(5)]}
	}
	call := func(s *Store) error {
		w := write()
		switch rand.N(4) {
		case 0:
			if w.Value == nil {
				return s.Delete(t.Context(), part, w.Key)
			}
			return s.Set(t.Context(), part, w.Key, w.Value)
		case 1:
			return s.SetIf(t.Context(), part, w.Key, []byte("x"), kv.Present)
		case 2:
			return s.SetMany(t.Context(), part, []kv.Write{{Key: w.Key}, {Key: []byte("f"), Value: []byte("x")}, {Key: []byte("a"), Value: []byte("x")}})
		default:
			writes := []kv.Write{w}
			for range rand.N(6) {
				w := write()
				if !containsKey(writes, w.Key) {
					writes = append(writes, w)
				}
			}
			return s.Apply(t.Context(), part, writes, nil)
		}
	}
	var g errgroup.Group
	for n := range 12 {
		g.Go(func() error {
			for range 100 {
				if err := call(stores[n%2]); err != nil && !errors.Is(err, kv.ErrPredicateFailed) {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	for _, s := range stores {
		require.NoError(t, s.Close())
	}
	conn := connect(t, url)
	// A session counts at its end.
	eventually(t, conn, 1, `select count(*) from pg_stat_activity where datname = current_database()`)
	require.Zero(t, count(t, conn, `select count(*) from moraine.kv where value is null`), "a claim was left behind")
	require.Zero(t, count(t, conn, `select deadlocks from pg_stat_database where datname = current_database()`))
}

func containsKey(writes []kv.Write, key []byte) bool {
	for _, w := range writes {
		if string(w.Key) == string(key) {
			return true
		}
	}
	return false
}

// TestConditionsOnAbsentKeysExcludeEachOther has batches that each require the key of the other to
// be absent, of which no order lets two pass.
func TestConditionsOnAbsentKeysExcludeEachOther(t *testing.T) {
	s := open(t, testpg.Start(t).NewDatabase(t))
	isAbsent := kv.Absent
	for round := range 30 {
		keys := [][]byte{fmt.Appendf(nil, "%d-a", round), fmt.Appendf(nil, "%d-b", round)}
		errs := make([]error, 2)
		var g errgroup.Group
		for i := range keys {
			g.Go(func() error {
				errs[i] = s.Apply(t.Context(), part, []kv.Write{
					{Key: keys[i], Value: []byte("mine")}, {Key: keys[1-i], If: &isAbsent},
				}, nil)
				return nil
			})
		}
		require.NoError(t, g.Wait())
		if errs[0] == nil {
			require.ErrorIs(t, errs[1], kv.ErrPredicateFailed)
		} else {
			require.ErrorIs(t, errs[0], kv.ErrPredicateFailed)
			require.NoError(t, errs[1])
		}
	}
}
