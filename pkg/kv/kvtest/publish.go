// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

func publishes(t *testing.T, h Harness) {
	h.check(t, "all records land, in their partitions", publishAll)
	h.check(t, "the last record lands only if its predicate holds", publishRefused)
	h.check(t, "what cannot be written is refused, and nothing of it lands", publishBad)
	h.check(t, "who finds the last record finds the others", publishOrder)
	h.check(t, "the last record excludes what relies on it as a fence", publishFence)
}

func recordOf(partition, key, value string) kv.Record {
	return kv.Record{Partition: []byte(partition), Key: []byte(key), Value: []byte(value)}
}

func publishAll(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.Set(ctx, part, []byte("old"), []byte("1")))
	before := []kv.Record{recordOf("part", "old", "2"), recordOf("other", "k", "3"), recordOf("another", "k", ""), recordOf("part", "a", "4")}
	require.NoError(t, kv.Publish(ctx, s, before, recordOf("part", "last", "5"), kv.Absent))
	_, values := scanAll(t, s, part, kv.ScanOptions{})
	require.Equal(t, map[string]string{"old": "2", "a": "4", "last": "5"}, values)
	requireValue(t, s, []byte("other"), []byte("k"), "3")
	requireValue(t, s, []byte("another"), []byte("k"), "")
	require.NoError(t, kv.Publish(ctx, s, nil, recordOf("part", "last", "6"), kv.Equals([]byte("5"))))
	requireValue(t, s, part, []byte("last"), "6")
}

func publishRefused(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	require.NoError(t, s.SetIf(ctx, part, []byte("last"), []byte("1"), kv.Absent))
	before := []kv.Record{recordOf("other", "k", "2")}
	for _, p := range []kv.Predicate{kv.Absent, kv.Equals([]byte("2"))} {
		require.ErrorIs(t, kv.Publish(ctx, s, before, recordOf("part", "last", "3"), p), kv.ErrPredicateFailed)
		requireValue(t, s, part, []byte("last"), "1")
	}
	require.ErrorIs(t, kv.Publish(ctx, s, before, recordOf("part", "missing", "3"), kv.Present), kv.ErrPredicateFailed)
	requireMissing(t, s, part, []byte("missing"))
	require.NoError(t, kv.Publish(ctx, s, before, recordOf("part", "last", "3"), kv.Present))
	requireValue(t, s, []byte("other"), []byte("k"), "2")
}

func publishBad(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	good, last := recordOf("part", "k", "v"), recordOf("part", "last", "v")
	none := kv.Record{Partition: part, Key: []byte("no value")}
	large := kv.Record{Partition: part, Key: []byte("large"), Value: make([]byte, s.Limits().ValueBytes+1)}
	for _, c := range []struct {
		before []kv.Record
		last   kv.Record
		p      kv.Predicate
		want   error
	}{
		{[]kv.Record{good, good}, last, kv.Absent, kv.ErrDuplicateKey},
		{[]kv.Record{good, last}, last, kv.Absent, kv.ErrDuplicateKey},
		{[]kv.Record{good, none}, last, kv.Absent, kv.ErrMissingValue},
		{[]kv.Record{good, large}, last, kv.Absent, kv.ErrTooLarge},
		{[]kv.Record{good, {Partition: part, Value: []byte("v")}}, last, kv.Absent, kv.ErrMissingKey},
		{[]kv.Record{good}, none, kv.Absent, kv.ErrMissingValue},
		{[]kv.Record{good}, last, kv.Predicate{}, kv.ErrMissingPredicate},
	} {
		require.ErrorIs(t, kv.Publish(ctx, s, c.before, c.last, c.p), c.want)
	}
	keys, _ := scanAll(t, s, part, kv.ScanOptions{})
	require.Empty(t, keys)
}

// publishOrder lets readers look at the last record and then for what must have been there before it, while writers race to write both.
func publishOrder(t *testing.T, h Harness) {
	s := h.open(t)
	const writers, rounds = 4, 25
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var readers, g errgroup.Group
	for w := range writers {
		g.Go(func() error { return publishInTurn(ctx, s, w, rounds) })
		readers.Go(func() error {
			for ctx.Err() == nil {
				if err := lookBehind(s); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	cancel()
	require.NoError(t, readers.Wait())
	requireValue(t, s, part, []byte("last"), strconv.Itoa(writers*rounds))
}

// publishInTurn raises the last record rounds times, each with a record before it.
func publishInTurn(ctx context.Context, s kv.Store, writer, rounds int) error {
	for done := 0; done < rounds; {
		n, p, err := counted(ctx, s)
		if err != nil {
			return err
		}
		number := strconv.Itoa(n + 1)
		before := []kv.Record{recordOf("before", number, strconv.Itoa(writer)), recordOf("part", "at "+number, "")}
		err = kv.Publish(ctx, s, before, recordOf("part", "last", number), p)
		if err == nil {
			done++
		} else if !errors.Is(err, kv.ErrPredicateFailed) {
			return err
		}
	}
	return nil
}

// counted reads the number in the last record, and the predicate for its replacement.
func counted(ctx context.Context, s kv.Store) (int, kv.Predicate, error) {
	item, err := s.Get(ctx, part, []byte("last"))
	if errors.Is(err, kv.ErrNotFound) {
		return 0, kv.Absent, nil
	}
	if err != nil {
		return 0, kv.Predicate{}, err
	}
	n, err := strconv.Atoi(string(item.Value))
	return n, item.Predicate, err
}

func lookBehind(s kv.Store) error {
	ctx := context.Background()
	n, _, err := counted(ctx, s)
	if err != nil || n == 0 {
		return err
	}
	number := strconv.Itoa(n)
	for partition, key := range map[string]string{"before": number, "part": "at " + number} {
		if _, err := s.Get(ctx, []byte(partition), []byte(key)); err != nil {
			return fmt.Errorf("the last record says %d, and there is no %q in %q: %w", n, key, partition, err)
		}
	}
	return nil
}

// publishFence lets writers write under a fence that is published anew meanwhile: what was written under a state of it must be
// there when the next state is.
func publishFence(t *testing.T, h Harness) {
	s, ctx := h.open(t), t.Context()
	const rounds = 30
	require.NoError(t, s.SetIf(ctx, part, []byte("last"), []byte("0"), kv.Absent))
	for n := range rounds {
		state := strconv.Itoa(n)
		fence := &kv.Fence{Partition: part, Key: []byte("last"), Predicate: kv.Equals([]byte(state))}
		var g errgroup.Group
		for w := range 4 {
			g.Go(func() error {
				err := s.Apply(ctx, []byte("under "+state), []kv.Write{{Key: []byte{byte(w)}, Value: []byte("v")}}, fence)
				if errors.Is(err, kv.ErrFenceFailed) {
					return nil
				}
				return err
			})
		}
		var frozen []string
		g.Go(func() error {
			err := kv.Publish(ctx, s, []kv.Record{recordOf("before", state, "v")}, recordOf("part", "last", strconv.Itoa(n+1)), kv.Equals([]byte(state)))
			if err == nil {
				frozen, _ = scanAll(t, s, []byte("under "+state), kv.ScanOptions{})
			}
			return err
		})
		require.NoError(t, g.Wait())
		now, _ := scanAll(t, s, []byte("under "+state), kv.ScanOptions{})
		require.Equal(t, frozen, now, "written under a fence that no longer held")
	}
}
