// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

// sighting is since when a record has been seen as it is.
type sighting struct {
	stored string
	since  time.Time
}

// round renews what this worker holds, gives back what is to be another's and takes what is to be its own. Trouble with a single
// shard is in the error and keeps no other from its turn.
func (w *Worker) round(ctx context.Context) error {
	err := w.share(ctx)
	w.lapse()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	if w.gained {
		w.gained = false
		signal(w.gain) // once for all shards of a round
	}
	return err
}

func (w *Worker) share(ctx context.Context) error {
	if err := w.register(ctx); err != nil {
		return fmt.Errorf("register lifecycle worker: %w", err)
	}
	before := w.c.Now()
	state, err := ReadState(ctx, w.c.Store)
	if err != nil && !errors.Is(err, cursor.ErrMalformed) {
		return fmt.Errorf("look at lifecycle workers: %w", err)
	}
	leases, takes, dead := w.judge(state, before, w.c.Now())
	errs := []error{err, w.bury(ctx, dead)}
	var holders [lifecycle.Shards]string
	for shard, l := range leases {
		if !l.over {
			holders[shard] = l.Worker
		}
	}
	for shard, id := range plan(takes, holders) {
		l, there := leases[shard]
		if there && l.Worker == w.id {
			errs = append(errs, w.keep(ctx, l.Lease, id != w.id))
			continue
		}
		w.drop(shard, fmt.Errorf("%w: another worker has taken it", ErrLost))
		switch {
		case id != w.id:
		case !there:
			errs = append(errs, w.write(ctx, shard, kv.Absent))
		case l.over:
			errs = append(errs, w.write(ctx, shard, kv.Equals(l.stored)))
		}
	}
	return errors.Join(errs...)
}

type judged struct {
	Lease
	over bool
}

// judge tells the living from the dead, in what was read between two times: the leases, by shard; what each living worker would
// take, which for one that is only known by its leases, or has not been heard of twice, is what it has; and those who are dead.
func (w *Worker) judge(state State, before, after time.Time) (leases map[int]judged, takes map[string][]int, dead []Member) {
	seen := map[string]sighting{}
	over := func(key string, stored []byte, r Renewal) bool {
		s, ok := w.seen[key]
		if !ok || s.stored != string(stored) {
			s = sighting{string(stored), after}
		}
		seen[key] = s
		return before.Sub(s.since) >= r.Term || time.Duration(before.UnixNano()-r.Until) > maxSkew
	}
	takes = map[string][]int{}
	for _, m := range state.Members {
		switch {
		case m.ID == w.id:
		case over(workersPrefix+m.ID, m.stored, m.Renewal):
			dead = append(dead, m)
		case m.Epoch == 1: // who dies as soon as it has started, and is always started anew, must not keep a part from the living
		default:
			takes[m.ID] = m.Shards
		}
	}
	if !w.isClosing() {
		takes[w.id] = w.c.Shards
	}
	leases = map[int]judged{}
	unregistered := map[string][]int{}
	for _, l := range state.Leases {
		others := l.Worker != w.id
		j := judged{l, others && over(leaseKey(l.Shard), l.stored, l.Renewal)}
		leases[l.Shard] = j
		if others && !j.over && takes[l.Worker] == nil {
			unregistered[l.Worker] = append(unregistered[l.Worker], l.Shard)
		}
	}
	for id, shards := range unregistered {
		takes[id] = shards
	}
	w.seen = seen
	return leases, takes, dead
}

// register tells the others that this worker is there. Nobody else writes the record, and whoever removes it looks at what it
// says, so it needs no condition.
func (w *Worker) register(ctx context.Context) error {
	w.epoch++
	value, err := Member{Shards: w.c.Shards, Renewal: w.renewal(w.c.Now())}.encode()
	if err != nil {
		return err
	}
	return w.c.Store.Set(ctx, []byte(cursor.Partition), []byte(workersPrefix+w.id), value)
}

func (w *Worker) renewal(now time.Time) Renewal {
	return Renewal{now.Add(w.c.LeaseFor).UnixNano(), w.epoch, w.c.LeaseFor}
}

// bury removes the records of workers that are dead, unless they have come back.
func (w *Worker) bury(ctx context.Context, dead []Member) error {
	var errs []error
	for _, m := range dead {
		err := w.c.Store.DeleteIf(ctx, []byte(cursor.Partition), []byte(workersPrefix+m.ID), kv.Equals(m.stored))
		if err != nil && !errors.Is(err, kv.ErrPredicateFailed) {
			errs = append(errs, fmt.Errorf("remove lifecycle worker %s: %w", m.ID, err))
		}
	}
	return errors.Join(errs...)
}

// keep renews a lease of this worker. One that is to be another's is released instead, as soon as nobody works on it.
func (w *Worker) keep(ctx context.Context, l Lease, leaving bool) error {
	if !w.leave(l.Shard, leaving) {
		return w.write(ctx, l.Shard, kv.Equals(l.stored))
	}
	return w.release(ctx, l)
}

// write takes or renews a lease. If it has changed in the meantime, it is another worker's.
func (w *Worker) write(ctx context.Context, shard int, p kv.Predicate) error {
	now := w.c.Now()
	value, err := Lease{Worker: w.id, Renewal: w.renewal(now)}.encode()
	if err == nil {
		err = w.c.Store.SetIf(ctx, []byte(cursor.Partition), []byte(leaseKey(shard)), value, p)
	}
	switch {
	case err == nil:
		w.hold(shard, now)
	case errors.Is(err, kv.ErrPredicateFailed):
		w.drop(shard, fmt.Errorf("%w: another worker was quicker", ErrLost))
	default:
		return fmt.Errorf("write lease of shard %d: %w", shard, err)
	}
	return nil
}

func (w *Worker) release(ctx context.Context, l Lease) error {
	err := w.c.Store.DeleteIf(ctx, []byte(cursor.Partition), []byte(leaseKey(l.Shard)), kv.Equals(l.stored))
	if err != nil && !errors.Is(err, kv.ErrPredicateFailed) {
		return fmt.Errorf("release shard %d: %w", l.Shard, err)
	}
	w.drop(l.Shard, ErrGivenBack)
	return nil
}
