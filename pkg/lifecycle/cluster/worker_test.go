// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

func TestAWorkerAloneHoldsAllShards(t *testing.T) {
	store, c := memStore(t), newClock()
	w := newWorker(t, store, c.Now)
	require.Empty(t, w.Shards(), "not before it is started")
	rounds(t, c, 3, w)
	require.Len(t, w.Shards(), 16)
	s := state(t, store, t)
	require.Len(t, s.Leases, 16)
	for shard, l := range s.Leases {
		require.Equal(t, shard, l.Shard)
		require.Equal(t, w.ID(), l.Worker)
		require.Equal(t, c.Now().Add(term-renew).UnixNano(), l.Until, "as of the last round")
		require.EqualValues(t, 3, l.Epoch)
		require.Equal(t, term, l.Term)
	}
	require.Len(t, s.Members, 1)
	require.Equal(t, w.ID(), s.Members[0].ID)
	require.Len(t, s.Members[0].Shards, 16)
}

func TestTwoAndThreeWorkersShareEvenly(t *testing.T) {
	store, c := memStore(t), newClock()
	a, b, d := newWorker(t, store, c.Now), newWorker(t, store, c.Now), newWorker(t, store, c.Now)
	rounds(t, c, 1, a)
	fair(t, a)
	rounds(t, c, 2, a, b)
	require.Equal(t, []int{16, 0}, shares(a, b), "b has said that it is there, and lives on, but just now")
	rounds(t, c, 1, a, b)
	require.Equal(t, []int{8, 8}, shares(a, b))
	kept := a.Held()
	rounds(t, c, 5, a, b)
	require.Equal(t, kept, a.Held(), "nothing moves without need")
	rounds(t, c, 3, a, b, d)
	fair(t, a, b, d)
	require.Equal(t, 6, slices.Max(shares(a, b, d)))
}

func TestTheShardsOfADeadWorkerMoveWhenItsLeasesAreOver(t *testing.T) {
	store, c := memStore(t), newClock()
	a, b := newWorker(t, store, c.Now), newWorker(t, store, c.Now)
	rounds(t, c, 3, a, b)
	fair(t, a, b)
	require.NoError(t, a.Round(t.Context())) // its last one
	require.NoError(t, b.Round(t.Context()))
	for range 2 {
		c.add(renew)
		require.NoError(t, b.Round(t.Context()))
		require.Equal(t, []int{8, 8}, shares(a, b))
	}
	c.add(renew)
	require.Empty(t, a.Held(), "it stops by itself")
	require.NoError(t, b.Round(t.Context()))
	require.Len(t, b.Held(), 16)
	require.Len(t, state(t, store, t).Members, 1, "the dead worker's record goes")

	require.NoError(t, a.Round(t.Context()), "it was not dead")
	rounds(t, c, 2, b, a)
	fair(t, a, b)
}

func TestAWorkerThatIsStoppedReleasesItsShardsAndMayComeBack(t *testing.T) {
	store, c := memStore(t), newClock()
	a, b := newWorker(t, store, c.Now), newWorker(t, store, c.Now)
	rounds(t, c, 3, a, b)
	require.NoError(t, a.Close(t.Context()))
	require.NoError(t, a.Close(t.Context()), "again")
	require.Empty(t, a.Shards())
	require.Len(t, state(t, store, t).Members, 1)
	require.Len(t, state(t, store, t).Leases, 8)
	rounds(t, c, 1, b)
	require.Len(t, b.Held(), 16, "at once")
	require.Error(t, a.Start(t.Context()), "a worker starts once")

	again := newWorker(t, store, c.Now)
	rounds(t, c, 3, b, again)
	fair(t, b, again)
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, again.Close(t.Context()))
	require.Equal(t, cluster.State{}, state(t, store, t), "nothing stays behind")
}

func TestMoreWorkersThanShards(t *testing.T) {
	store, c := memStore(t), newClock()
	var workers []*cluster.Worker
	for range 20 {
		workers = append(workers, newWorker(t, store, c.Now))
		rounds(t, c, 1, workers...)
	}
	rounds(t, c, 2, workers...)
	fair(t, workers...)
}

func TestWorkersThatTakeSomeShardsOnly(t *testing.T) {
	store, c := memStore(t), newClock()
	low, all := newWorker(t, store, c.Now, takes(3, 0, 1, 2)), newWorker(t, store, c.Now)
	rounds(t, c, 1, all, low)
	rounds(t, c, 3, all, low)
	require.Equal(t, []int{0, 1, 2, 3}, low.Held(), "the other takes what it does not")
	require.Len(t, all.Held(), 12)
	require.NoError(t, all.Close(t.Context()))
	rounds(t, c, 1, low)
	require.Len(t, low.Held(), 4)
}

// Clocks differ by up to what is allowed; nobody takes what another still holds.
func TestClocksThatDifferDoNoHarm(t *testing.T) {
	for _, skew := range []time.Duration{-5 * time.Minute, -time.Minute, time.Minute, 5 * time.Minute} {
		store, c := memStore(t), newClock()
		a := newWorker(t, store, c.Now)
		b := newWorker(t, store, c.off(skew))
		rounds(t, c, 6, a, b)
		fair(t, a, b)
		rounds(t, c, 1, a)
		b2 := newWorker(t, store, c.off(skew))
		for range 20 { // a goes on, b is dead, b2 has just been started
			require.NoError(t, a.Round(t.Context()))
			require.NoError(t, b2.Round(t.Context()))
			exclusive(t, a, b, b2)
			c.add(renew / 2)
			b.Lapse()
		}
		fair(t, a, b2)
	}
}

// A lease whose holder's clock was a day ahead is not for a day.
func TestADeadWorkerWhoseClockWasAheadIsNotWaitedFor(t *testing.T) {
	store, c := memStore(t), newClock()
	a := newWorker(t, store, c.off(24*time.Hour))
	rounds(t, c, 1, a)
	b := newWorker(t, store, c.Now)
	rounds(t, c, 3, b)
	require.Empty(t, b.Held())
	rounds(t, c, 1, b)
	require.Len(t, b.Held(), 16)
}

// A worker that has watched nobody takes at once what has been over for long: it may be a single pass that ends before it could wait.
func TestWhatIsLongOverIsTakenAtOnce(t *testing.T) {
	store, c := memStore(t), newClock()
	rounds(t, c, 1, newWorker(t, store, c.Now))
	c.add(term - renew + 5*time.Minute)
	early := newWorker(t, store, c.Now)
	require.NoError(t, early.Round(t.Context()))
	require.Empty(t, early.Held(), "the clocks may differ")
	require.NoError(t, early.Close(t.Context()))
	c.add(time.Nanosecond)
	late := newWorker(t, store, c.Now)
	require.NoError(t, late.Round(t.Context()))
	require.Len(t, late.Held(), 16)
}

// The holder's term counts, not the one of who looks.
func TestWorkersWithDifferentTerms(t *testing.T) {
	store, c := memStore(t), newClock()
	long := newWorker(t, store, c.Now, func(c *cluster.Config) { c.LeaseFor, c.RenewEvery = 30*time.Minute, 10*time.Minute })
	short := newWorker(t, store, c.Now)
	require.NoError(t, long.Round(t.Context()))
	for range 29 * 3 {
		require.NoError(t, short.Round(t.Context()))
		require.Empty(t, short.Held())
		c.add(renew)
	}
	require.Len(t, long.Held(), 16)
}

func TestWorkEndsWhenTheShardIsLost(t *testing.T) {
	store, c := memStore(t), newClock()
	a := newWorker(t, store, c.Now)
	rounds(t, c, 1, a)
	ctx, done, ok := a.Hold(t.Context(), 7)
	require.True(t, ok)
	require.NotContains(t, a.Shards(), 7, "it is worked on")
	_, _, ok = a.Hold(t.Context(), 7)
	require.False(t, ok)

	key := []byte("leases/shard-07")
	taken := []byte(fmt.Sprintf(`{"worker":"x","until_ns":%d,"epoch":1,"term_ns":%d}`, c.Now().Add(term).UnixNano(), term))
	require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), key, taken))
	require.NoError(t, ctx.Err())
	require.NoError(t, a.Round(t.Context()))
	require.ErrorIs(t, context.Cause(ctx), cluster.ErrLost)
	require.ErrorContains(t, context.Cause(ctx), "shard 7")
	require.Len(t, a.Held(), 15)

	require.NoError(t, store.Delete(t.Context(), []byte(cursor.Partition), key))
	require.NoError(t, a.Round(t.Context()))
	require.Len(t, a.Held(), 16)
	_, _, ok = a.Hold(t.Context(), 7)
	require.False(t, ok, "the work of before has not ended")
	done()
	done()
	_, done, ok = a.Hold(t.Context(), 7)
	require.True(t, ok)
	done()
}

func TestWorkEndsWhenALeaseCannotBeRenewed(t *testing.T) {
	store, c := memStore(t), newClock()
	var failing failingStore
	failing.Store = store
	a := newWorker(t, &failing, c.Now)
	require.NoError(t, a.Round(t.Context()))
	ctx, done, ok := a.Hold(t.Context(), 7)
	require.True(t, ok)
	defer done()
	failing.err = fmt.Errorf("no route to host")
	c.add(term - 1)
	require.ErrorContains(t, a.Round(t.Context()), "no route to host")
	require.ErrorContains(t, a.Err(), "no route to host")
	require.NoError(t, ctx.Err())
	c.add(1)
	require.Empty(t, a.Shards())
	_, _, ok = a.Hold(t.Context(), 8)
	require.False(t, ok)
	require.Error(t, a.Round(t.Context()))
	require.ErrorIs(t, context.Cause(ctx), cluster.ErrLost)

	failing.err = nil
	require.NoError(t, a.Round(t.Context()))
	require.NoError(t, a.Err())
	require.Len(t, a.Held(), 16)
}

// failingStore fails with err where there is one; where writes are to land all the same, it fails after them.
type failingStore struct {
	kv.Store
	err  error
	land bool
}

func (s *failingStore) Set(ctx context.Context, partition, key, value []byte) error {
	if s.err != nil && !s.land {
		return s.err
	}
	return s.Store.Set(ctx, partition, key, value)
}

func (s *failingStore) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	if s.err != nil && !s.land {
		return s.err
	}
	if err := s.Store.SetIf(ctx, partition, key, value, p); err != nil {
		return err
	}
	return s.err
}

func TestALeaseWhoseWritingHadNoKnownOutcomeIsTakenUpLater(t *testing.T) {
	store, c := memStore(t), newClock()
	failing := failingStore{Store: store, err: context.DeadlineExceeded, land: true}
	a := newWorker(t, &failing, c.Now)
	require.ErrorIs(t, a.Round(t.Context()), context.DeadlineExceeded)
	require.Empty(t, a.Held(), "nobody knows")
	require.Len(t, state(t, store, t).Leases, 16)
	failing.err = nil
	require.NoError(t, a.Round(t.Context()))
	require.Len(t, a.Held(), 16)
}

func TestAShardThatIsWorkedOnIsGivenBackWhenTheWorkHasEnded(t *testing.T) {
	store, c := memStore(t), newClock()
	a, b := newWorker(t, store, c.Now), newWorker(t, store, c.Now)
	rounds(t, c, 1, a)
	type working struct {
		ctx  context.Context
		done func()
	}
	work := map[int]working{}
	for _, shard := range a.Shards() {
		ctx, done, ok := a.Hold(t.Context(), shard)
		require.True(t, ok)
		work[shard] = working{ctx, done}
	}
	rounds(t, c, 5, a, b)
	require.Equal(t, []int{16, 0}, shares(a, b), "leases are renewed as long as somebody works")
	ended := 0
	for shard, w := range work {
		if w.ctx.Err() != nil {
			ended++
			require.ErrorIs(t, context.Cause(w.ctx), cluster.ErrGivenBack)
			require.GreaterOrEqual(t, shard, 8)
			w.done()
		}
	}
	require.Equal(t, 8, ended)
	rounds(t, c, 2, a, b)
	require.Equal(t, []int{8, 8}, shares(a, b))
	require.Empty(t, a.Shards())
	for _, w := range work {
		w.done()
	}
	require.Len(t, a.Shards(), 8)
}

func TestAShardThatIsNotWantedAnyMoreIsKept(t *testing.T) {
	store, c := memStore(t), newClock()
	a, b := newWorker(t, store, c.Now), newWorker(t, store, c.Now)
	rounds(t, c, 1, a)
	ctx, done, ok := a.Hold(t.Context(), 15)
	require.True(t, ok)
	require.NoError(t, b.Round(t.Context()))
	require.NoError(t, a.Round(t.Context()))
	require.NoError(t, ctx.Err(), "who is there for the first time may be gone by now")
	require.NoError(t, b.Round(t.Context()))
	require.NoError(t, a.Round(t.Context()))
	require.Error(t, ctx.Err())
	require.NoError(t, b.Close(t.Context()))
	require.NoError(t, a.Round(t.Context()))
	done()
	require.Len(t, a.Shards(), 16)
}

func TestAMalformedRecordIsAnErrorAndItsShardNobodys(t *testing.T) {
	good := fmt.Sprintf(`{"worker":"x","until_ns":1,"epoch":1,"term_ns":%d}`, term)
	leases := map[string]string{
		"empty": "", "null": "null", "cut": good[:len(good)-1], "trailing data": good + " ", "spaced": strings.Replace(good, ":", ": ", 1), "no fields": "{}",
		"unknown field": strings.Replace(good, "{", `{"x":1,`, 1), "field twice": strings.Replace(good, "{", `{"epoch":1,`, 1), "capitals": strings.Replace(good, "epoch", "Epoch", 1),
		"no worker": strings.Replace(good, `"x"`, `""`, 1), "worker with a slash": strings.Replace(good, `"x"`, `"a/b"`, 1), "negative time": strings.Replace(good, `s":1,`, `s":-1,`, 1),
		"epoch 0": strings.Replace(good, `h":1`, `h":0`, 1), "no term": strings.Replace(good, `"term_ns":6`, `"term_ns":-6`, 1), "endless term": strings.Replace(good, `"term_ns":6`, `"term_ns":996`, 1),
	}
	for name, value := range leases {
		store, c := memStore(t), newClock()
		require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte("leases/shard-05"), []byte(value)))
		a, b := newWorker(t, store, c.Now), newWorker(t, store, c.Now)
		for range 4 {
			for _, w := range []*cluster.Worker{a, b} {
				err := w.Round(t.Context())
				require.ErrorIs(t, err, cursor.ErrMalformed, name)
				require.ErrorContains(t, err, "leases/shard-05")
				require.NotContains(t, w.Held(), 5)
			}
			c.add(renew)
		}
		require.Equal(t, 15, len(a.Held())+len(b.Held()), name)
		_, err := cluster.ReadState(t.Context(), store)
		require.ErrorIs(t, err, cursor.ErrMalformed)
		require.ErrorIs(t, err, graveler.ErrCorrupt)
	}
	member := `{"until_ns":1,"epoch":1,"term_ns":1,"shards":[0,1]}`
	for name, record := range map[string][2]string{
		"member, no shards":     {"workers/x", strings.Replace(member, "0,1", "", 1)},
		"member, null":          {"workers/x", strings.Replace(member, "[0,1]", "null", 1)},
		"member, shard null":    {"workers/x", strings.Replace(member, "[0", "[null", 1)},
		"member, shard twice":   {"workers/x", strings.Replace(member, "0,1", "1,1", 1)},
		"member, endless shard": {"workers/x", strings.Replace(member, "0,1", "1,16", 1)},
		"member, other name":    {"workers/a/b", member},
		"lease of no shard":     {"leases/shard-16", good},
		"lease, short key":      {"leases/shard-5", good},
	} {
		store := memStore(t)
		require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte(record[0]), []byte(record[1])))
		s, err := cluster.ReadState(t.Context(), store)
		require.ErrorIs(t, err, cursor.ErrMalformed, name)
		require.ErrorContains(t, err, record[0])
		require.Equal(t, cluster.State{}, s)
		w := newWorker(t, store, newClock().Now)
		require.NoError(t, w.Start(t.Context()), "the rest goes on")
		require.ErrorIs(t, w.Err(), cursor.ErrMalformed)
		require.Len(t, w.Shards(), 16)
		require.NoError(t, w.Close(t.Context()))
	}
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	store := memStore(t)
	for says, c := range map[string]cluster.Config{
		"no store":                          {},
		"shard 16 is not in":                {Store: store, Shards: []int{1, 16}},
		"shard -1 is not in":                {Store: store, Shards: []int{-1}},
		"shard 3 follows 3":                 {Store: store, Shards: []int{3, 1, 3}},
		`name "a/b"`:                        {Store: store, Name: "a/b"},
		`name "xxx`:                         {Store: store, Name: strings.Repeat("x", 65)},
		"leases for -1":                     {Store: store, LeaseFor: -1},
		"leases for 1h0m0.000000001s":       {Store: store, LeaseFor: time.Hour + 1},
		"renewed every -1":                  {Store: store, RenewEvery: -1},
		"renewed every 20.000000001s":       {Store: store, RenewEvery: 20*time.Second + 1},
		"leases for 2ns":                    {Store: store, LeaseFor: 2},
		"-1 deletes per second":             {Store: store, DeletesPerSecond: -1},
		"NaN deletes per second":            {Store: store, DeletesPerSecond: math.NaN()},
		"+Inf deletes per second":           {Store: store, DeletesPerSecond: math.Inf(1)},
		"a burst of -1 deletes":             {Store: store, DeletesPerSecond: 1, DeletesBurst: -1},
		"a burst of 5 deletes, and no rate": {Store: store, DeletesBurst: 5},
	} {
		w, err := cluster.New(c)
		require.Nil(t, w)
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
		require.ErrorContains(t, err, says)
	}
	shards := []int{2, 1}
	w, err := cluster.New(cluster.Config{Store: store, Name: "host-1.example", Shards: shards})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(w.ID(), "host-1.example-"))
	require.Equal(t, []int{2, 1}, shards, "the caller's")
	require.NoError(t, w.Close(t.Context()), "never started")
}

func TestAWorkerOnAReadOnlyStoreDoesNotStart(t *testing.T) {
	w := newWorker(t, kv.ReadOnly(memStore(t)), nil)
	require.ErrorIs(t, w.Start(t.Context()), kv.ErrReadOnly)
	require.NoError(t, newWorker(t, memStore(t), nil).Close(t.Context()))
}
