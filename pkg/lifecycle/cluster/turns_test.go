// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

const (
	every   = 6 * time.Hour
	settled = renew + renew/4 // after the last gain
)

// passes has the turns of a worker, each of which saves the cursors of its shards after so long, but those that it has lost by then.
type passes struct {
	t      *testing.T
	store  kv.Store
	worker *cluster.Worker
	takes  time.Duration

	mu     sync.Mutex
	began  []time.Duration // after the beginning of the test
	shards [][]int
}

// turns returns when the turns began, and what they were about.
func (p *passes) turns() (began []time.Duration, shards [][]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.began), slices.Clone(p.shards)
}

func (p *passes) run(ctx context.Context, start time.Time) {
	for turn := range p.worker.Turns(ctx, every) {
		now := time.Now()
		p.mu.Lock()
		p.began, p.shards = append(p.began, now.Sub(start)), append(p.shards, turn.Shards())
		p.mu.Unlock()
		works, dones := map[int]context.Context{}, map[int]func(){}
		for _, shard := range turn.Shards() {
			work, done, ok := turn.Hold(context.WithoutCancel(ctx), shard)
			require.True(p.t, ok)
			works[shard], dones[shard] = work, done
			context.AfterFunc(work, done) // nothing of it is under way
		}
		if len(turn.Shards()) > 0 {
			time.Sleep(p.takes)
		}
		for shard, work := range works {
			if work.Err() == nil {
				savePass(p.t, p.store, shard, now)
			}
			dones[shard]()
		}
	}
}

func savePass(t *testing.T, store kv.Store, shard int, at time.Time) {
	require.NoError(t, cursor.New(store).SaveCursors(t.Context(), cursor.Cursor{Shard: shard, Time: at.UnixNano()}))
}

// start starts a worker and its passes, which stop with the function that it returns.
func start(t *testing.T, store kv.Store, takes time.Duration, began time.Time) (p *passes, stop func()) {
	p = &passes{t: t, store: store, worker: newWorker(t, store, nil), takes: takes}
	require.NoError(t, p.worker.Start(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.run(ctx, began)
	}()
	return p, func() {
		cancel()
		<-ended
		require.NoError(t, p.worker.Close(t.Context()))
	}
}

// inBubble runs a test whose time is that of a bubble, on a store.
func inBubble(t *testing.T, test func(t *testing.T, store kv.Store)) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		test(t, store)
		require.NoError(t, store.Close())
	})
}

func all() (shards []int) {
	for shard := range lifecycle.Shards {
		shards = append(shards, shard)
	}
	return shards
}

func TestAWorkerAloneHasATurnAtOnceAndThenSoOften(t *testing.T) {
	inBubble(t, func(t *testing.T, store kv.Store) {
		savePass(t, store, 3, time.Now().Add(-time.Hour)) // of a pass that somebody made
		p, stop := start(t, store, time.Minute, time.Now())
		time.Sleep(2*every + time.Hour)
		stop()
		require.Equal(t, []time.Duration{0, every, 2 * every}, p.began)
		require.Equal(t, [][]int{all(), all(), all()}, p.shards)
	})
}

// What a dead worker held is not passed when its leases are over only where its pass had ended.
func TestAWorkerThatIsStartedAnewAfterACrashHasItsTurnWhenTheOldLeasesAreOver(t *testing.T) {
	inBubble(t, func(t *testing.T, store kv.Store) {
		dead := newWorker(t, store, nil)
		require.NoError(t, dead.Round(t.Context()))
		savePass(t, store, 7, time.Now().Add(-2*time.Hour))
		savePass(t, store, 8, time.Now().Add(-every-time.Hour))
		savePass(t, store, 9, time.Now().Add(time.Hour)) // of a clock ahead
		p, stop := start(t, store, time.Second, time.Now())
		time.Sleep(every)
		stop()
		require.Equal(t, []time.Duration{0, term + settled, every - 2*time.Hour}, p.began)
		require.Empty(t, p.shards[0], "it says that it has none")
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15}, p.shards[1], "all together")
		require.Equal(t, []int{7}, p.shards[2])
	})
}

func TestAMalformedCursorDoesNotKeepAShardFromItsTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, store kv.Store) {
		require.NoError(t, newWorker(t, store, nil).Round(t.Context()))
		require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte("cursors/shard-05"), []byte("x")))
		p, stop := start(t, store, time.Second, time.Now())
		time.Sleep(every)
		stop()
		require.Contains(t, p.shards[1], 5)
	})
}

// A worker that joins during a pass gets its share of what is left, and does it.
func TestAWorkerThatJoinsDuringAPassHasATurnForWhatItGains(t *testing.T) {
	inBubble(t, func(t *testing.T, store kv.Store) {
		began := time.Now()
		a, stopA := start(t, store, time.Hour, began)
		b, stopB := start(t, store, time.Hour, began)
		time.Sleep(term + renew + settled)
		_, shardsA := a.turns()
		beganB, shardsB := b.turns()
		require.Equal(t, [][]int{all()}, shardsA)
		require.Equal(t, [][]int{nil, {8, 9, 10, 11, 12, 13, 14, 15}}, shardsB)
		joined := beganB[1]

		// The shares have settled, and so has the time of each.
		time.Sleep(2 * every)
		beganA, shardsA := a.turns()
		require.Equal(t, [][]int{all(), {0, 1, 2, 3, 4, 5, 6, 7}, {0, 1, 2, 3, 4, 5, 6, 7}}, shardsA)
		require.Equal(t, []time.Duration{0, every, 2 * every}, beganA)
		beganB, _ = b.turns()
		require.Equal(t, []time.Duration{0, joined, joined + every, joined + 2*every}, beganB)

		// What was passed by the one is not passed by the other before its time.
		stopA()
		time.Sleep(every - 2*time.Hour)
		beganB, _ = b.turns()
		require.Len(t, beganB, 4)
		time.Sleep(2 * time.Hour)
		beganB, shardsB = b.turns()
		require.Equal(t, 3*every, beganB[4])
		require.Equal(t, all(), shardsB[4], "its own go along")
		stopB()
	})
}

// A shard that is taken from a pass and comes back has a turn when the pass has ended.
func TestAPassThatAShardWasTakenFromDoesNotCount(t *testing.T) {
	inBubble(t, func(t *testing.T, store kv.Store) {
		began := time.Now()
		a, stopA := start(t, store, time.Hour, began)
		b := newWorker(t, store, nil)
		require.NoError(t, b.Start(t.Context()))
		time.Sleep(term + time.Second) // whatever is done at the end of the term is done
		require.Len(t, b.Held(), 8)
		require.NoError(t, b.Close(t.Context()))
		time.Sleep(2 * time.Hour)
		stopA()
		require.Equal(t, []time.Duration{0, time.Hour}, a.began)
		require.Equal(t, []int{8, 9, 10, 11, 12, 13, 14, 15}, a.shards[1])
	})
}

func TestAWorkerWithoutShardsSaysSoAsOftenAsItWouldHaveTurns(t *testing.T) {
	inBubble(t, func(t *testing.T, store kv.Store) {
		require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte("leases/shard-05"), []byte("x"))) // and so it is nobody's
		p := &passes{t: t, store: store, worker: newWorker(t, store, nil, takes(5))}
		require.NoError(t, p.worker.Start(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), every+time.Hour)
		defer cancel()
		p.run(ctx, time.Now())
		require.NoError(t, p.worker.Close(t.Context()))
		require.Equal(t, []time.Duration{0, every}, p.began)
		require.Equal(t, [][]int{nil, nil}, p.shards)
	})
}

// One that is always started anew, and dies before it has renewed anything, such as by a bad setting.
func TestAWorkerBesideOneThatAlwaysDiesHasAllItsTurns(t *testing.T) {
	for _, restart := range []time.Duration{5 * time.Second, 12 * time.Second, 50 * time.Second, 90 * time.Second} {
		t.Run(restart.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, store kv.Store) {
				began := time.Now()
				p, stop := start(t, store, time.Minute, began)
				time.Sleep(time.Hour)
				for time.Since(began) < 2*every+time.Hour {
					require.NoError(t, newWorker(t, store, nil).Round(t.Context()))
					time.Sleep(restart)
				}
				stop()
				require.Equal(t, []time.Duration{0, every, 2 * every}, p.began)
				require.Equal(t, [][]int{all(), all(), all()}, p.shards)
			})
		})
	}
}

// What is due does not wait for what else may come: the other's shards come 20 seconds before the time of all.
func TestGainsDoNotPutOffWhatIsDue(t *testing.T) {
	inBubble(t, func(t *testing.T, store kv.Store) {
		p, stop := start(t, store, time.Second, time.Now())
		time.Sleep(time.Hour)
		other := newWorker(t, store, nil)
		require.NoError(t, other.Start(t.Context()))
		time.Sleep(every - time.Hour - renew - time.Second)
		require.Len(t, other.Held(), 8)
		require.NoError(t, other.Close(t.Context()))
		time.Sleep(time.Hour)
		stop()
		require.Equal(t, []time.Duration{0, every}, p.began)
		require.Equal(t, [][]int{all(), all()}, p.shards)
	})
}
