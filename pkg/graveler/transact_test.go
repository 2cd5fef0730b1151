// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// stagedKeys are the keys that the token of main holds, tombstones with a minus.
func stagedKeys(t *testing.T, f *fixture) []string {
	t.Helper()
	b, err := f.GetBranch(context.Background(), "lake", "main")
	require.NoError(t, err)
	keys := []string{}
	for _, e := range collect(t, f.ListStaged(context.Background(), "lake", "main", b.Token, graveler.DiffOptions{})) {
		if e.Value == nil {
			keys = append(keys, "-"+string(e.Key))
		} else {
			keys = append(keys, string(e.Key))
		}
	}
	return keys
}

func TestATransactionSeesWhatItHasChangedAndStagesNothingElse(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		for _, k := range []string{"committed", "gone", "read"} {
			f.set(t, k, "1")
		}
		f.commit(t, "base")
		f.set(t, "staged", "1")
		get := func(tx *graveler.Transaction, keys ...string) []string {
			values, err := tx.Get(ctx, keysOf(keys)...)
			require.NoError(t, err)
			texts := make([]string, len(values))
			for i, v := range values {
				if texts[i] = "-"; v != nil {
					texts[i] = string(v.Data)
				}
			}
			return texts
		}
		require.NoError(t, f.Transact(ctx, "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
			require.Equal(t, []string{"-", "1", "1", "1", "-"}, get(tx, "absent", "staged", "committed", "read", "absent"))
			tx.Set(key("absent"), value("2"))
			tx.Delete(key("committed"))
			tx.Delete(key("gone"))
			tx.Set(key("unread"), value("2"))
			tx.Delete(key("read not")) // not there, but nobody has looked
			require.Equal(t, []string{"2", "-", "-", "2", "1", "-"}, get(tx, "absent", "committed", "gone", "unread", "staged", "also absent"))
			tx.Delete(key("also absent"))
			var listed []string
			for l, err := range tx.List(ctx, graveler.ListOptions{}) {
				require.NoError(t, err)
				listed = append(listed, string(l.Key))
			}
			require.Equal(t, []string{"committed", "gone", "read", "staged"}, listed)
			return nil
		}))
		require.Equal(t, []string{"absent=2", "read=1", "staged=1", "unread=2"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
		require.Equal(t, []string{"absent", "-committed", "-gone", "-read not", "staged", "unread"}, stagedKeys(t, f))
	})
}

func TestAValueThatIsChangedInPlaceDoesNotChangeWhatItIsOf(t *testing.T) {
	f := newFixture(t)
	f.set(t, "a", "1")
	require.NoError(t, f.Transact(t.Context(), "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
		values, err := tx.Get(ctx, key("a"))
		require.NoError(t, err)
		clear(values[0].Data)
		again, err := tx.Get(ctx, key("a"))
		require.NoError(t, err)
		require.Equal(t, "1", string(again[0].Data))
		tx.Set(key("b"), value("2"))
		return nil
	}))
	require.Equal(t, []string{"a=1", "b=2"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
}

func TestCallsOfATransaction(t *testing.T) {
	f := newFixture(t)
	f.set(t, "committed", "1")
	f.commit(t, "base")
	f.set(t, "a", "1")
	f.set(t, "b", "1")
	stop := errors.New("no")
	run := func(keys []string, change func(tx *graveler.Transaction) error) map[string]int {
		f.kv.Reset()
		err := f.Transact(t.Context(), "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
			if _, err := tx.Get(ctx, keysOf(keys)...); err != nil {
				return err
			}
			return change(tx)
		})
		if err != nil {
			require.ErrorIs(t, err, stop)
		}
		return f.kv.Counts()
	}
	nothing := func(*graveler.Transaction) error { return nil }
	refused := func(*graveler.Transaction) error { return stop }
	require.Equal(t, map[string]int{"Get": 1}, run(nil, nothing), "the record")
	require.Equal(t, map[string]int{"Get": 2}, run([]string{"a"}, nothing), "the token, and the record")
	require.Equal(t, map[string]int{"Get": 2}, run([]string{"a"}, refused))
	require.Equal(t, map[string]int{"Get": 5}, run([]string{"committed", "absent"}, refused), "the token twice for each, and the record")
	require.Equal(t, map[string]int{"Get": 4}, run([]string{"a", "absent"}, refused))
	require.Equal(t, map[string]int{"Get": 3, "Apply": 1}, run([]string{"a", "b"}, refused))
	require.Equal(t, map[string]int{"Get": 2, "Apply": 1}, run([]string{"a", "committed"}, func(tx *graveler.Transaction) error {
		tx.Set(key("c"), value("1"))
		return nil
	}))
	require.Equal(t, []string{"a", "b", "c"}, stagedKeys(t, f))
}

func TestATransactionIsNoLargerThanAWriteOfTheStore(t *testing.T) {
	f := newFixture(t)
	limits := f.config.Staging.Limits()
	many := func(n int) (keys []graveler.Key) {
		for i := range n {
			keys = append(keys, key(fmt.Sprintf("k%05d", i)))
		}
		return keys
	}
	run := func(read, set []graveler.Key, v graveler.Value) error {
		return f.Transact(t.Context(), "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
			if _, err := tx.Get(ctx, read...); err != nil {
				return err
			}
			for _, k := range set {
				tx.Set(k, v)
			}
			return nil
		})
	}
	all := many(limits.Writes + 1)
	require.ErrorIs(t, run(nil, all, value("1")), graveler.ErrTooLarge)
	require.ErrorIs(t, run(all[1:], all[:1], value("1")), graveler.ErrTooLarge)
	heavy := value("1")
	heavy.Data = make([]byte, 200<<10)
	require.ErrorIs(t, run(nil, all[:limits.Bytes/len(heavy.Data)+1], heavy), graveler.ErrTooLarge)
	require.Empty(t, stagedKeys(t, f))
	require.NoError(t, run(all[:900], all[:10], value("1")))
	require.NoError(t, run(all[1:limits.Writes], all[:1], value("1")))
	require.Len(t, stagedKeys(t, f), 10)
}

func TestATransactionThatFailsStagesNothing(t *testing.T) {
	stop := errors.New("no")
	damaged := &failingGets{}
	f := newFixture(t, func(c *graveler.Config) { damaged.Staging, c.Staging = c.Staging, damaged })
	for name, c := range map[string]struct {
		is     error
		change func(ctx context.Context, tx *graveler.Transaction) error
	}{
		"its own error": {stop, func(context.Context, *graveler.Transaction) error { return stop }},
		"a bad key":     {graveler.ErrInvalidName, func(_ context.Context, tx *graveler.Transaction) error { tx.Set(nil, value("1")); return nil }},
		"a bad delete": {graveler.ErrTooLarge, func(_ context.Context, tx *graveler.Transaction) error {
			tx.Delete(make(graveler.Key, 2000))
			return nil
		}},
		"a bad value": {graveler.ErrInvalidValue, func(_ context.Context, tx *graveler.Transaction) error {
			tx.Set(key("k"), graveler.Value{})
			return nil
		}},
		"a bad read, of which it takes no notice": {graveler.ErrInvalidName, func(ctx context.Context, tx *graveler.Transaction) error {
			_, err := tx.Get(ctx, key("a"), nil)
			require.Error(t, err)
			_, err = tx.Get(ctx, key("a"))
			require.Error(t, err)
			return nil
		}},
		"a read that failed, of which it takes no notice": {errUnreadable, func(ctx context.Context, tx *graveler.Transaction) error {
			_, err := tx.Get(ctx, key("broken"))
			require.ErrorIs(t, err, errUnreadable)
			return nil
		}},
	} {
		err := f.Transact(t.Context(), "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
			tx.Set(key("good"), value("1"))
			return c.change(ctx, tx)
		})
		require.ErrorIs(t, err, c.is, name)
		require.Empty(t, stagedKeys(t, f), name)
	}
	nothing := func(context.Context, *graveler.Transaction) error { return nil }
	require.ErrorIs(t, f.Transact(t.Context(), "lake", "none", nothing), graveler.ErrBranchNotFound)
	require.ErrorIs(t, f.Transact(t.Context(), "lake", "a..b", nothing), graveler.ErrInvalidName)
	require.ErrorIs(t, f.Transact(t.Context(), "none", "main", nothing), graveler.ErrRepositoryNotFound)
}

var errUnreadable = errors.New("broken")

// failingGets fails to read the key "broken".
type failingGets struct{ graveler.Staging }

func (s *failingGets) Get(ctx context.Context, token graveler.StagingToken, k graveler.Key) (graveler.Staged, error) {
	if string(k) == "broken" {
		return graveler.Staged{}, errUnreadable
	}
	return s.Staging.Get(ctx, token, k)
}

// hookedGets calls before each read of a staged entry.
type hookedGets struct {
	graveler.Staging
	before func()
}

func (s *hookedGets) Get(ctx context.Context, token graveler.StagingToken, k graveler.Key) (graveler.Staged, error) {
	if s.before != nil {
		s.before()
	}
	return s.Staging.Get(ctx, token, k)
}

// Of a and b one is there at any time. They change places, and back, between any two looks of a transaction, so that to each look
// they are what they were at the look before.
func TestWhatChangesAndChangesBackIsNotTakenForOneState(t *testing.T) {
	other := newFixture(t)
	for _, k := range []string{"a", "b"} {
		other.set(t, k, "1")
	}
	require.NoError(t, other.Delete(t.Context(), "lake", "main", key("b")))
	hooked := &hookedGets{Staging: other.config.Staging}
	f := &fixture{config: other.config}
	f.config.Staging = hooked
	g := f.another(t)

	gets, there := 0, true // a is
	hooked.before = func() {
		if gets++; gets == 1 || gets > 10 {
			return
		}
		from, to := key("a"), key("b")
		if !there {
			from, to = to, from
		}
		there = !there
		require.NoError(t, other.Transact(context.Background(), "lake", "main", func(_ context.Context, tx *graveler.Transaction) error {
			tx.Delete(from)
			tx.Set(to, value("1"))
			return nil
		}))
	}
	var found int
	require.NoError(t, g.Transact(t.Context(), "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
		found = 0
		for _, k := range []string{"a", "b"} {
			values, err := tx.Get(ctx, key(k))
			if err != nil {
				return err
			}
			if values[0] != nil {
				found++
			}
		}
		return nil
	}))
	require.Equal(t, 1, found)
	require.Greater(t, gets, 10)
}

// meetingGets lets each read wait until so many are under way.
type meetingGets struct {
	graveler.Staging
	meet *sync.WaitGroup
}

func (s *meetingGets) Get(ctx context.Context, token graveler.StagingToken, k graveler.Key) (graveler.Staged, error) {
	if s.meet != nil {
		s.meet.Done()
		s.meet.Wait()
	}
	return s.Staging.Get(ctx, token, k)
}

func TestTheKeysOfATransactionAreReadInParallel(t *testing.T) {
	meeting := &meetingGets{}
	f := newFixture(t, func(c *graveler.Config) { meeting.Staging, c.Staging = c.Staging, meeting })
	require.NoError(t, f.Transact(t.Context(), "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
		meeting.meet = &sync.WaitGroup{}
		meeting.meet.Add(8) // fewer than are allowed
		_, err := tx.Get(ctx, keysOf([]string{"1", "2", "3", "4", "5", "6", "7", "8"})...)
		meeting.meet = nil
		tx.Set(key("9"), value("9"))
		return err
	}))
}

// Two processes move amounts between accounts and look at all of them, while others commit and clean. The sum is always the same.
func TestTransactionsSeeAndLeaveTheSumAsItIs(t *testing.T) {
	eachProtocol(t, func(t *testing.T, f *fixture) {
		const accounts, each, movers, moves = 5, 100, 6, 15
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		var keys []graveler.Key
		for i := range accounts {
			keys = append(keys, key(fmt.Sprint("account", i)))
			f.set(t, fmt.Sprint("account", i), fmt.Sprint(each))
		}
		processes := []*graveler.Graveler{f.Graveler, f.another(t)}
		var upkeep, moving errgroup.Group
		upkeep.Go(func() error {
			for ctx.Err() == nil {
				if _, err := f.Commit(context.Background(), "lake", "main", graveler.CommitParams{}); err != nil && !errors.Is(err, graveler.ErrNoChanges) {
					return err
				}
				if _, err := f.Maintain(context.Background()); err != nil {
					return err
				}
			}
			return nil
		})
		sum := func(g *graveler.Graveler) (int, error) {
			total := 0
			err := g.Transact(ctx, "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
				amounts, err := amountsOf(ctx, tx, keys)
				total = 0
				for _, n := range amounts {
					total += n
				}
				return err
			})
			return total, err
		}
		var looks atomic.Int64
		for m := range movers {
			g := processes[m%2]
			moving.Go(func() error {
				for i := range moves {
					from, to := keys[(m+i)%accounts], keys[(m+2*i+1)%accounts]
					err := g.Transact(ctx, "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
						amounts, err := amountsOf(ctx, tx, []graveler.Key{from, to})
						if err != nil || string(from) == string(to) {
							return err
						}
						tx.Set(from, value(strconv.Itoa(amounts[0]-i)))
						tx.Set(to, value(strconv.Itoa(amounts[1]+i)))
						return nil
					})
					if err != nil {
						return err
					}
					total, err := sum(g)
					if err != nil || total != accounts*each {
						return fmt.Errorf("a sum of %d (%w)", total, err)
					}
					looks.Add(1)
				}
				return nil
			})
		}
		require.NoError(t, moving.Wait())
		stop()
		require.NoError(t, upkeep.Wait())
		require.EqualValues(t, movers*moves, looks.Load())
	})
}

func amountsOf(ctx context.Context, tx *graveler.Transaction, keys []graveler.Key) ([]int, error) {
	values, err := tx.Get(ctx, keys...)
	if err != nil {
		return nil, err
	}
	amounts := make([]int, len(values))
	for i, v := range values {
		if v == nil { // as an attempt may see it that does not count
			return nil, errors.New("an account is gone")
		}
		if amounts[i], err = strconv.Atoi(string(v.Data)); err != nil {
			return nil, err
		}
	}
	return amounts, nil
}
