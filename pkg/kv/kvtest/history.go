// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/kv"
)

func histories(t *testing.T, h Harness) {
	h.check(t, "what concurrent callers saw is what some order of their calls gives", linearizable)
}

func linearizable(t *testing.T, h Harness) {
	s := h.open(t)
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		plan := plans.Draw(rt, "plan")
		n++
		history, err := record(rt.Context(), s, n, plan)
		require.NoError(rt, err)
		require.NoError(rt, history.check())
	})
}

// step is a call that is planned. Its predicates are made when its turn comes, because those that
// are likely to hold depend on what the caller has seen.
type step struct {
	method string
	writes []plannedWrite // one of them unless the method is Apply; for Get only the key counts
	fence  condition      // for Apply
	hasty  bool           // the context ends meanwhile
}

type plannedWrite struct {
	key    string
	remove bool
	cond   condition
}

type condition int

const (
	unconditional condition = iota
	ifAbsent
	ifPresent
	ifAsSeen // by the caller's last call that told it
)

// fenceKey is the key that calls of Apply use as their fence. It stands in a partition of its own
// and, as the contract demands, is written by SetIf and DeleteIf only.
const fenceKey = "fence"

var dataKeys = []string{"a", "b", "c"}

var plans = rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(planStep), 1, 6), 2, 4)

func planStep(t *rapid.T) step {
	methods := []string{"Get", "Set", "SetIf", "Delete", "DeleteIf", "Apply", "Apply", "Get fence", "SetIf fence", "DeleteIf fence"}
	method, onFence := strings.CutSuffix(rapid.SampledFrom(methods).Draw(t, "method"), " "+fenceKey)
	s := step{method: method, hasty: rapid.IntRange(0, 7).Draw(t, "hasty") == 7}
	anyCondition := rapid.SampledFrom([]condition{ifAsSeen, ifAsSeen, ifAbsent, ifPresent})
	maybe := rapid.OneOf(rapid.Just(unconditional), anyCondition)
	if method == "Apply" {
		s.fence = maybe.Draw(t, "fence")
		for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(dataKeys), 1, 3, rapid.ID).Draw(t, "keys") {
			s.writes = append(s.writes, plannedWrite{key, rapid.IntRange(0, 3).Draw(t, "remove") == 3, maybe.Draw(t, "if")})
		}
		return s
	}
	w := plannedWrite{key: fenceKey, remove: strings.HasPrefix(method, "Delete")}
	if !onFence {
		w.key = rapid.SampledFrom(dataKeys).Draw(t, "key")
	}
	if strings.HasSuffix(method, "If") {
		w.cond = anyCondition.Draw(t, "if")
	}
	s.writes = []plannedWrite{w}
	return s
}

// record makes the calls of a plan, one caller for each of its lists, all at the same time. Each history has partitions of its own,
// so that what a write of unknown outcome does later disturbs no other.
func record(ctx context.Context, s kv.Store, n int, plan [][]step) (history, error) {
	r := &recorder{store: s, data: fmt.Appendf(nil, "history-%d", n), fences: fmt.Appendf(nil, "fences-%d", n)}
	records := make([]history, len(plan))
	var g errgroup.Group
	for id, steps := range plan {
		c := &caller{recorder: r, id: id, seen: make(map[string]*string)}
		g.Go(func() (err error) {
			records[id], err = c.run(ctx, steps)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all history
	for _, calls := range records {
		all = append(all, calls...)
	}
	last := &caller{recorder: r, id: len(plan), seen: make(map[string]*string)}
	var gets []step
	for _, key := range append([]string{fenceKey}, dataKeys...) {
		gets = append(gets, step{method: "Get", writes: []plannedWrite{{key: key}}})
	}
	calls, err := last.run(ctx, gets)
	return append(all, calls...), err
}

type recorder struct {
	store        kv.Store
	data, fences []byte       // the partitions
	clock        atomic.Int64 // orders the beginnings and ends of calls
}

type caller struct {
	*recorder
	id    int
	steps int
	seen  map[string]*string // what a key held; nil is nothing
}

func (c *caller) run(ctx context.Context, steps []step) (history, error) {
	var h history
	for _, s := range steps {
		d := c.perform(ctx, s)
		switch {
		case d.answered():
			c.learn(d)
		case !lost(d.err):
			return nil, fmt.Errorf("%s: %w", d.call, d.err)
		case d.method == "Get":
			continue // nobody knows more than before
		default:
			d.end = math.MaxInt64 // it happens at some time or other, which may be after all else
		}
		h = append(h, d)
	}
	return h, nil
}

// lost tells errors that the test has provoked from those that no call should end with.
func lost(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, ErrInjected)
}

func (c *caller) perform(ctx context.Context, s step) done {
	d := done{call: c.prepare(s), caller: c.id}
	if s.hasty {
		hasty, cancel := context.WithCancel(ctx)
		cancelled := make(chan struct{})
		go func() {
			cancel()
			close(cancelled)
		}()
		defer func() { <-cancelled }()
		ctx = hasty
	}
	d.begin = c.clock.Add(1)
	d.value, d.err = c.send(ctx, d.call)
	d.end = c.clock.Add(1)
	return d
}

// prepare gives each write a value that no other has.
func (c *caller) prepare(s step) call {
	c.steps++
	p := call{method: s.method}
	for _, w := range s.writes {
		write := kv.Write{Key: []byte(w.key), If: c.predicate(w.key, w.cond)}
		if !w.remove {
			write.Value = fmt.Appendf(nil, "%d.%d", c.id, c.steps)
		}
		p.writes = append(p.writes, write)
	}
	p.fence = c.predicate(fenceKey, s.fence)
	return p
}

func (c *caller) predicate(key string, cond condition) *kv.Predicate {
	var p kv.Predicate
	switch cond {
	case unconditional:
		return nil
	case ifAbsent:
		p = kv.Absent
	case ifPresent:
		p = kv.Present
	case ifAsSeen:
		p = kv.Absent
		if value := c.seen[key]; value != nil {
			p = kv.Equals([]byte(*value))
		}
	}
	return &p
}

func (c *caller) send(ctx context.Context, p call) (value *string, err error) {
	w, partition := p.writes[0], c.data
	if string(w.Key) == fenceKey {
		partition = c.fences
	}
	switch p.method {
	case "Get":
		item, err := c.store.Get(ctx, partition, w.Key)
		if err != nil {
			return nil, err
		}
		got := string(item.Value)
		return &got, nil
	case "Set":
		return nil, c.store.Set(ctx, partition, w.Key, w.Value)
	case "SetIf":
		return nil, c.store.SetIf(ctx, partition, w.Key, w.Value, *w.If)
	case "Delete":
		return nil, c.store.Delete(ctx, partition, w.Key)
	case "DeleteIf":
		return nil, c.store.DeleteIf(ctx, partition, w.Key, *w.If)
	default:
		var fence *kv.Fence
		if p.fence != nil {
			fence = &kv.Fence{Partition: c.fences, Key: []byte(fenceKey), Predicate: *p.fence}
		}
		return nil, c.store.Apply(ctx, partition, p.writes, fence)
	}
}

func (c *caller) learn(d done) {
	if d.method == "Get" {
		c.seen[string(d.writes[0].Key)] = d.value
		return
	}
	if d.err != nil {
		return
	}
	for _, w := range d.writes {
		c.seen[string(w.Key)] = nil
		if w.Value != nil {
			value := string(w.Value)
			c.seen[string(w.Key)] = &value
		}
	}
}
