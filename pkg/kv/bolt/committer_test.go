// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

// hold occupies the committer until release is called; meanwhile writes gather.
func hold(t *testing.T, s *Store) (release func() error) {
	t.Helper()
	begun, end := make(chan struct{}), make(chan struct{})
	var g errgroup.Group
	g.Go(func() error {
		return s.committer.do(context.Background(), func(*bbolt.Tx) (bool, error) {
			close(begun)
			<-end
			return false, nil
		})
	})
	<-begun
	return func() error {
		close(end)
		return g.Wait()
	}
}

// gather starts calls one after the other, each when the one before it is waiting.
func gather(s *Store, calls ...func() error) (outcomes []error, wait func()) {
	outcomes = make([]error, len(calls))
	done := make(chan struct{})
	for i, call := range calls {
		go func() {
			outcomes[i] = call()
			done <- struct{}{}
		}()
		for s.committer.length() != i+1 {
			runtime.Gosched()
		}
	}
	return outcomes, func() {
		for range calls {
			<-done
		}
	}
}

func (c *committer) length() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting)
}

func transactions(t *testing.T, s *Store) (id int) {
	t.Helper()
	require.NoError(t, s.db.View(func(tx *bbolt.Tx) error {
		id = tx.ID()
		return nil
	}))
	return id
}

func TestWaitingWritesShareATransactionAndKeepTheirOutcomes(t *testing.T) {
	s, ctx := open(t, newPath(t), kv.OpenOptions{}), t.Context()
	a, b, v := []byte("a"), []byte("b"), []byte("v")
	require.NoError(t, s.Set(ctx, part, []byte("fence"), v))
	before := transactions(t, s)
	absent := kv.Absent
	release := hold(t, s)
	outcomes, wait := gather(s,
		func() error { return s.SetIf(ctx, part, a, v, kv.Absent) },
		func() error { return s.SetIf(ctx, part, a, []byte("w"), kv.Absent) },
		func() error { return s.Apply(ctx, part, []kv.Write{{Key: b, Value: v}, {Key: a, If: &absent}}, nil) },
		func() error { return s.SetIf(ctx, part, []byte("fence"), []byte("w"), kv.Equals(v)) },
		func() error {
			fence := &kv.Fence{Partition: part, Key: []byte("fence"), Predicate: kv.Equals(v)}
			return s.Apply(ctx, part, []kv.Write{{Key: b, Value: v}}, fence)
		},
		func() error { return s.Set(ctx, []byte("other"), b, v) },
		func() error { return s.DeleteIf(ctx, part, a, kv.Equals(v)) },
	)
	require.NoError(t, release())
	wait()
	for i, want := range []error{nil, kv.ErrPredicateFailed, kv.ErrPredicateFailed, nil, kv.ErrFenceFailed, nil, nil} {
		require.ErrorIs(t, outcomes[i], want, "call %d", i)
	}
	require.Equal(t, 1, transactions(t, s)-before)
	for _, key := range [][]byte{a, b} {
		_, err := s.Get(ctx, part, key)
		require.ErrorIs(t, err, kv.ErrNotFound)
	}
	_, err := s.Get(ctx, []byte("other"), b)
	require.NoError(t, err)
	require.EqualError(t, outcomes[2], "apply part/a: predicate failed")
	require.EqualError(t, outcomes[4], "apply part: fence failed")
}

func TestAWriteThatChangesNothingCommitsNothing(t *testing.T) {
	s, ctx := open(t, newPath(t), kv.OpenOptions{}), t.Context()
	before := transactions(t, s)
	require.NoError(t, s.Delete(ctx, part, []byte("k")))
	require.NoError(t, s.DeleteIf(ctx, part, []byte("k"), kv.Absent))
	require.NoError(t, s.DropPartition(ctx, part))
	require.NoError(t, s.Apply(ctx, part, nil, nil))
	require.ErrorIs(t, s.SetIf(ctx, part, []byte("k"), []byte("v"), kv.Present), kv.ErrPredicateFailed)
	require.Equal(t, before, transactions(t, s))
}

func TestAWaitingWriteIsWithdrawnWhenItsContextEnds(t *testing.T) {
	s := open(t, newPath(t), kv.OpenOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	release := hold(t, s)
	outcomes, wait := gather(s, func() error { return s.Set(ctx, part, []byte("k"), []byte("v")) })
	cancel()
	wait() // it returns although the committer is still busy
	require.ErrorIs(t, outcomes[0], context.Canceled)
	require.NoError(t, release())
	_, err := s.Get(t.Context(), part, []byte("k"))
	require.ErrorIs(t, err, kv.ErrNotFound)
}

func TestAWriteThatWasTakenUpHasItsRealOutcome(t *testing.T) {
	s := open(t, newPath(t), kv.OpenOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	err := s.committer.do(ctx, func(tx *bbolt.Tx) (bool, error) {
		cancel()
		b := &batch{partition: part, writes: []kv.Write{{Key: []byte("k"), Value: []byte("v")}}}
		return b.run(tx)
	})
	require.NoError(t, err)
	_, err = s.Get(t.Context(), part, []byte("k"))
	require.NoError(t, err)
}

func TestCloseCommitsWhatWaits(t *testing.T) {
	path := newPath(t)
	s := open(t, path, kv.OpenOptions{})
	release := hold(t, s)
	outcomes, wait := gather(s, func() error { return s.Set(t.Context(), part, []byte("k"), []byte("v")) })
	var g errgroup.Group
	g.Go(s.Close)
	g.Go(s.Close)
	for {
		s.committer.mu.Lock()
		closed := s.committer.closed
		s.committer.mu.Unlock()
		if closed {
			break
		}
		runtime.Gosched()
	}
	require.ErrorIs(t, s.Set(t.Context(), part, []byte("late"), []byte("v")), kv.ErrClosed)
	require.NoError(t, release())
	wait()
	require.NoError(t, outcomes[0])
	require.NoError(t, g.Wait())
	s = open(t, path, kv.OpenOptions{})
	_, err := s.Get(t.Context(), part, []byte("k"))
	require.NoError(t, err)
}

func TestAFailedCommitFailsTheWholeGroupAndNothingElse(t *testing.T) {
	s, ctx := open(t, newPath(t), kv.OpenOptions{}), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("k"), []byte("v")))
	s.db.MaxSize = 1 // the file cannot grow any more, as on a full disk
	large := make([]byte, kv.MaxValueBytes)
	release := hold(t, s)
	outcomes, wait := gather(s,
		func() error { return s.Set(ctx, part, []byte("large"), large) },
		func() error { return s.SetIf(ctx, part, []byte("large"), large, kv.Absent) },
	)
	require.NoError(t, release())
	wait()
	for _, err := range outcomes {
		require.ErrorIs(t, err, berrors.ErrMaxSizeReached)
		require.False(t, errors.Is(err, kv.ErrPredicateFailed), "the value that the second saw was not stored")
	}
	_, err := s.Get(ctx, part, []byte("k"))
	require.NoError(t, err)
	_, err = s.Get(ctx, part, []byte("large"))
	require.ErrorIs(t, err, kv.ErrNotFound)

	s.db.MaxSize = 0
	require.NoError(t, s.Set(ctx, part, []byte("large"), large))
	_, err = s.Get(ctx, part, []byte("large"))
	require.NoError(t, err)
}

func TestAfterDamageWritesFailAndReadsGoOn(t *testing.T) {
	s, err := Open(t.Context(), "bolt:"+newPath(t), kv.OpenOptions{})
	require.NoError(t, err)
	c := s.(*Store).committer
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	err = c.do(t.Context(), func(*bbolt.Tx) (bool, error) { panic("page 7 is not what it should be") })
	require.ErrorIs(t, err, errCorrupt)
	require.ErrorContains(t, err, "page 7")
	require.ErrorIs(t, s.Set(t.Context(), part, []byte("k"), []byte("w")), errCorrupt)
	_, err = s.Get(t.Context(), part, []byte("k"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestManyWritersAndReadersAndAScan(t *testing.T) {
	s, ctx := open(t, newPath(t), kv.OpenOptions{}), t.Context()
	var g errgroup.Group
	const writers, each = 32, 20
	for w := range writers {
		g.Go(func() error {
			for i := range each {
				key := fmt.Appendf(nil, "%d-%d", w, i)
				if err := s.Set(ctx, part, key, make([]byte, 1000)); err != nil {
					return err
				}
				if _, err := s.Get(ctx, part, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		it, err := s.Scan(ctx, part, kv.ScanOptions{BatchSize: 1})
		if err != nil {
			return err
		}
		for it.Next() {
			continue
		}
		return it.Close()
	})
	require.NoError(t, g.Wait())
}
