// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
)

func atKey(format string, n int) []byte { return fmt.Appendf(nil, format, n) }

// Each of them has a verdict of its own, and one that fails takes nothing of the others with it.
func TestBatchesThatWaitTravelTogether(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	s, ctx := open(t, url), t.Context()
	require.NoError(t, s.SetIf(ctx, fenced.Partition, fenced.Key, []byte("old"), kv.Absent))
	var trips atomic.Int64
	start := make(chan struct{})
	run := s.groups.run
	s.groups.run = func(ctx context.Context, l lane, requests []*request) error {
		if l.kind == batches {
			trips.Add(1)
			<-start
		}
		return run(ctx, l, requests)
	}
	isAbsent, isPresent, isOld := kv.Absent, kv.Present, kv.Equals([]byte("old"))
	var g errgroup.Group
	batch := func(fails []byte, writes ...kv.Write) {
		g.Go(func() error {
			err := s.Apply(ctx, part, writes, &fenced)
			if fails == nil {
				return err
			}
			if !errors.Is(err, kv.ErrPredicateFailed) || !strings.Contains(err.Error(), string(fails)) {
				return fmt.Errorf("batch of %q, of which %q is to fail: %w", writes[0].Key, fails, err)
			}
			return nil
		})
	}
	for i := range laneTrips {
		batch(nil, kv.Write{Key: atKey("first-%d", i), Value: []byte("new"), If: &isAbsent})
		require.Eventually(t, func() bool { return trips.Load() == int64(i+1) }, waitLong, waitStep)
	}
	const each = 20
	for i := range each {
		for _, kept := range []string{"replaced-%d", "deleted-%d", "checked-%d"} {
			require.NoError(t, s.Set(ctx, part, atKey(kept, i), []byte("old")))
		}
	}
	for i := range each {
		batch(nil, kv.Write{Key: atKey("made-%d", i), Value: []byte("new"), If: &isAbsent})
		batch(nil, kv.Write{Key: atKey("replaced-%d", i), Value: []byte("new"), If: &isOld}, kv.Write{Key: atKey("deleted-%d", i)})
		batch(atKey("missing-%d", i), kv.Write{Key: atKey("never-%d", i), Value: []byte("new"), If: &isAbsent}, kv.Write{Key: atKey("missing-%d", i), Value: []byte("new"), If: &isPresent})
		batch(atKey("checked-%d", i), kv.Write{Key: atKey("checked-%d", i), If: &isAbsent}, kv.Write{Key: atKey("neither-%d", i), Value: []byte("new")})
	}
	require.Eventually(t, func() bool {
		s.groups.mu.Lock()
		defer s.groups.mu.Unlock()
		return len(s.groups.lanes[lane{batches, string(part), laneFenceOf(&fenced)}].waiting) == 4*each
	}, waitLong, waitStep)
	close(start)
	require.NoError(t, g.Wait())
	require.Equal(t, laneTrips+1, int(trips.Load()))

	conn := connect(t, url)
	for like, value := range map[string]string{"first-%": "new", "made-%": "new", "replaced-%": "new", "checked-%": "old"} {
		want := map[bool]int{true: laneTrips, false: each}[like == "first-%"]
		require.Equal(t, want, count(t, conn, `select count(*) from moraine.kv where convert_from(key, 'utf8') like $1 and value = $2`, like, []byte(value)), like)
	}
	require.Equal(t, laneTrips+3*each, count(t, conn, `select count(*) from moraine.kv where partition_key = $1`, part), "what failed has left nothing")
}

// Money goes between accounts in batches that many send at the same time, from two stores, on conditions of what they have read.
// None may see half of another, and what was refused must not count.
func TestBatchesAreDoneAsAWholeHoweverTheyTravel(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	stores := []*Store{open(t, url), open(t, url)}
	const accounts, each, clerks, transfers = 12, 100, 32, 20
	for i := range accounts {
		require.NoError(t, stores[0].Set(t.Context(), part, atKey("account-%d", i), []byte(strconv.Itoa(each))))
	}
	transfer := func(ctx context.Context, s *Store, clerk, done int) error {
		from, to := rand.N(accounts), rand.N(accounts-1)
		if to >= from {
			to++
		}
		writes := make([]kv.Write, 2)
		for i, account := range []int{from, to} {
			item, err := s.Get(ctx, part, atKey("account-%d", account))
			if err != nil {
				return err
			}
			money, err := strconv.Atoi(string(item.Value))
			if err != nil {
				return err
			}
			writes[i] = kv.Write{Key: atKey("account-%d", account), Value: []byte(strconv.Itoa(money - 1 + 2*i)), If: &item.Predicate}
		}
		condition := kv.Absent
		if done > 0 {
			condition = kv.Equals([]byte(strconv.Itoa(done)))
		}
		return s.Apply(ctx, part, append(writes, kv.Write{Key: atKey("clerk-%d", clerk), Value: []byte(strconv.Itoa(done + 1)), If: &condition}), nil)
	}
	g, ctx := errgroup.WithContext(t.Context())
	for clerk := range clerks {
		g.Go(func() error {
			for done := 0; done < transfers; {
				err := transfer(ctx, stores[clerk%2], clerk, done)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, kv.ErrPredicateFailed):
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	conn := connect(t, url)
	sum := func(like string) int {
		return count(t, conn, `select sum(convert_from(value, 'utf8')::int) from moraine.kv where convert_from(key, 'utf8') like $1`, like)
	}
	require.Equal(t, accounts*each, sum("account-%"))
	require.Equal(t, clerks*transfers, sum("clerk-%"))
	require.Zero(t, count(t, conn, `select count(*) from moraine.kv where value is null`))
}
