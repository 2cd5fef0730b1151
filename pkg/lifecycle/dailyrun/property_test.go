// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// engine makes one pass over a world.
type engine func(ctx context.Context, w *world, d dispatch.Dispatcher) error

// frozen is what a pass works on, by the oracle.
type frozen struct {
	dispatch.Source
	head graveler.CommitID
	last int64          // the time of the last move before the pass
	left bool           // it is left out, since it is protected
	may  map[string]due // what is due on the head as of the time of the pass, or on the head that there is if the clock was set back
	must map[string]due
}

// passing is a pass under way, between the engine and its dispatcher.
type passing struct {
	*world
	step
	mover   dispatch.Dispatcher
	began   time.Time
	cut     bool
	calls   int
	guard   sync.Mutex // of calls and cut: pins are written several at a time
	sources []frozen
	touched map[string]map[string]bool             // by branch UID: the keys that users have changed since
	blocked map[graveler.RepositoryID]map[int]bool // shards
	err     error
}

// Dispatch lets users do something first, once, and blocks some keys.
func (p *passing) Dispatch(ctx context.Context, source dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
	for _, s := range p.Meanwhile {
		if err := p.do(s); err != nil && p.err == nil {
			p.err = err
		}
	}
	if p.Meanwhile != nil && p.err == nil {
		p.err = p.see()
	}
	p.Meanwhile = nil
	results := make([][]dispatch.Result, len(batches))
	rest := make([]dispatch.Batch, len(batches))
	for i, b := range batches {
		if p.limiter != nil {
			p.limiter.use(len(b.Items))
		}
		if !p.works(b.Shard) {
			p.err = fmt.Errorf("a batch of shard %d, of %v", b.Shard, p.Shards)
		}
		rest[i].Shard = b.Shard
		for _, item := range b.Items {
			if !slices.Contains(p.Blocked, item.LogicalKey) {
				rest[i].Items = append(rest[i].Items, item)
			}
			if lifecycle.ShardOf(source.Repository, item.LogicalKey) != b.Shard {
				p.err = fmt.Errorf("an item of %q in shard %d", item.LogicalKey, b.Shard)
			}
		}
		if !slices.IsSortedFunc(b.Items, func(a, b dispatch.Item) int { return bytes.Compare(a.Key, b.Key) }) {
			p.err = fmt.Errorf("the items of shard %d are not sorted", b.Shard)
		}
	}
	done, err := p.mover.Dispatch(ctx, source, rest)
	if err != nil {
		return nil, err
	}
	for i, b := range batches {
		n := 0
		for _, item := range b.Items {
			if !slices.Contains(p.Blocked, item.LogicalKey) {
				results[i] = append(results[i], done[i][n])
				n++
				continue
			}
			outcome := lifecycle.Blocked
			if p.RetryLater {
				outcome = lifecycle.RetryLater
			}
			results[i] = append(results[i], dispatch.Result{Outcome: outcome, Reason: "not today"})
			if p.blocked[source.Repository] == nil {
				p.blocked[source.Repository] = map[int]bool{}
			}
			p.blocked[source.Repository][b.Shard] = true
		}
	}
	return results, nil
}

// see finds out which keys users have changed on the branches that the pass is about.
func (p *passing) see() error {
	for _, f := range p.sources {
		b, err := p.users.GetBranch(p.world.ctx, f.Repository, f.Branch)
		if errors.Is(err, graveler.ErrBranchNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		before, err := p.tree(f.Repository, f.head)
		if err != nil {
			return err
		}
		now, err := p.tree(f.Repository, b.Head)
		if err != nil {
			return err
		}
		touched := map[string]bool{}
		for _, key := range slices.Concat(slices.Collect(maps.Keys(before)), slices.Collect(maps.Keys(now))) {
			if !bytes.Equal(before[key].Identity, now[key].Identity) {
				place, err := catalog.ParseKey(graveler.Key(key))
				if err != nil {
					return err
				}
				touched[place.Key] = true
			}
		}
		p.touched[f.UID] = touched
	}
	return nil
}

// freeze asks the oracle.
func (w *world) freeze() ([]frozen, error) {
	sources, err := w.sources()
	if err != nil {
		return nil, err
	}
	var all []frozen
	for _, source := range sources {
		b, err := w.users.GetBranch(w.ctx, source.Repository, source.Branch)
		if err != nil {
			return nil, err
		}
		f := frozen{Source: source, left: b.Protected&graveler.ActionMove != 0}
		for m, err := range w.users.BranchLog(w.ctx, source.Repository, source.Branch, 0) {
			if err != nil {
				return nil, err
			}
			f.last = m.Time
		}
		then, err := w.headAt(source, w.clock)
		if err != nil {
			return nil, err
		}
		if f.head, err = w.headAt(source, time.Unix(0, f.last)); err != nil {
			return nil, err
		}
		if f.left {
			all = append(all, f)
			continue
		}
		if f.may, err = w.evaluate(source, then, w.clock); err != nil {
			return nil, err
		}
		f.must = map[string]due{}
		present := f.may
		if then != f.head {
			if present, err = w.evaluate(source, f.head, w.clock); err != nil {
				return nil, err
			}
		}
		for id, d := range f.may {
			if p := present[id]; d.sure && p.sure {
				f.must[id] = d
			}
		}
		for id, d := range present {
			f.may[id] = d
		}
		all = append(all, f)
	}
	return all, nil
}

// grants is a limiter that ends the pass when it has granted often enough.
type grants struct {
	burst, left int
	granted     int // and not used yet
	end         func()
	err         error
}

func (g *grants) Rate() (perSecond float64, burst int) { return float64(g.burst), g.burst }

func (g *grants) Wait(ctx context.Context, n int) (time.Duration, error) {
	if n > g.burst {
		g.err = fmt.Errorf("a pass waits for %d removals, of which %d are granted at once", n, g.burst)
	}
	if g.left--; g.left == -1 {
		g.end()
		return time.Second, ctx.Err()
	}
	g.granted += n
	return 0, nil
}

// use takes what was granted.
func (g *grants) use(n int) {
	if g.granted -= n; g.granted < 0 {
		g.err = errors.New("a pass removes more than is granted")
	}
}

// memory is what is kept of earlier passes to judge the next.
type memory struct {
	latest  time.Time // that a pass was made at
	walking bool      // a walk may be under way: what that has passed is for the next one
}

// pass makes one pass and compares what it did with the oracle.
func (w *world) pass(s step, run engine, m *memory) error {
	w.clock = w.clock.Add(time.Millisecond)
	w.settings = s.passSettings
	sources, err := w.freeze()
	if err != nil {
		return err
	}
	p := &passing{world: w, step: s, began: w.clock, sources: sources, touched: map[string]map[string]bool{}, blocked: map[graveler.RepositoryID]map[int]bool{}}
	p.mover = &dispatch.Mover{Store: w.engine, Buckets: w.catalog, Committer: "lifecycle", Now: func() time.Time { return p.began }}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	end := func() {
		p.guard.Lock()
		defer p.guard.Unlock()
		p.cut = true
		cancel()
	}
	w.limiter = nil
	if s.Burst > 0 {
		w.limiter = &grants{burst: s.Burst, left: s.Grants, end: end}
		if s.Grants == 0 {
			w.limiter.left = math.MaxInt
		}
	}
	w.call = func() error {
		p.guard.Lock()
		defer p.guard.Unlock()
		if p.calls++; p.calls == s.CutAt {
			p.cut = true
			cancel()
		}
		if p.cut && s.Crash {
			return kvtest.ErrInjected
		}
		return nil
	}
	err = run(ctx, w, p)
	w.call = nil
	switch {
	case p.err != nil:
		return p.err
	case w.limiter != nil && w.limiter.err != nil:
		return w.limiter.err
	case err != nil && !p.cut:
		return fmt.Errorf("the pass failed: %w", err)
	}
	back := p.began.Before(m.latest)
	if !back {
		m.latest = p.began
	}
	var wrong []error
	for _, f := range sources {
		if err := w.compare(f, p, back, m); err != nil {
			wrong = append(wrong, err)
		}
	}
	m.walking = p.cut || s.Budget > 0 || s.Shards != nil || len(p.blocked) > 0
	return errors.Join(wrong...)
}

// compare compares what a pass has removed of a source with what the oracle says: nothing else, and all of it, but where the pass
// was cut off, blocked, or overtaken by users.
func (w *world) compare(f frozen, p *passing, back bool, m *memory) error {
	b, err := w.users.GetBranch(w.ctx, f.Repository, f.Branch)
	if errors.Is(err, graveler.ErrBranchNotFound) || err == nil && b.UID != f.UID {
		return nil // dropped meanwhile
	}
	if err != nil {
		return err
	}
	removed, err := w.removed(f.Source, f.last)
	if err != nil {
		return err
	}
	if f.left {
		if len(removed) > 0 {
			return fmt.Errorf("%s/%s is protected, and lost %d objects", f.Repository, f.Branch, len(removed))
		}
		return nil
	}
	var wrong []string
	for id, o := range removed {
		if _, isDue := f.may[id]; !isDue && !o.madeWay {
			wrong = append(wrong, fmt.Sprintf("%s %s was removed and not due", o.Kind, id))
		}
	}
	left, err := w.objectsOf(f.Repository, b.Head, "")
	if err != nil {
		return err
	}
	protected := b.Protected&graveler.ActionMove != 0
	excused := func(d due) bool {
		shard := lifecycle.ShardOf(f.Repository, d.Key)
		return protected || p.Budget > 0 || !p.works(shard) || (p.WalkEvery > 0 || m.walking) && w.promoted(d.action) || p.cut || back || p.blocked[f.Repository][shard]
	}
	for id, d := range f.may {
		if o, stays := left[string(d.entry)]; !stays || o.id() != id {
			continue
		}
		if _, sure := f.must[id]; sure && !excused(d) && !p.touched[f.UID][d.Key] {
			wrong = append(wrong, fmt.Sprintf("%s %s was due by %s %q and not removed", d.Kind, id, d.action.Kind, d.action.Rule.ID))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("%s/%s: %s", f.Repository, f.Branch, strings.Join(wrong, "; "))
}

// finish makes passes until they change nothing any more, and holds what is left to the oracle. Passes take sources in any order:
// one that the rate ends may have come to none but those that are blocked.
func (w *world) finish(s step, run engine, m *memory) error {
	state := func() (string, error) {
		all := map[string]string{}
		if err := readAll(w.ctx, w.records, cursor.Partition, all); err != nil {
			return "", err
		}
		maps.DeleteFunc(all, func(key, _ string) bool { return strings.Contains(key, "cursors/") }) // which say when the pass was
		text := fmt.Sprint(all)
		sources, err := w.freeze()
		for _, f := range sources {
			text += fmt.Sprint(f.UID, f.head)
		}
		return text, err
	}
	const enough = 300
	quiet := 1
	if s.Grants > 0 {
		quiet = 20
	}
	for n, before := 0, ""; quiet > 0; n++ {
		if err := w.pass(s, run, m); err != nil {
			return fmt.Errorf("pass %d: %w", n, err)
		}
		now, err := state()
		if err != nil {
			return err
		}
		if now == before {
			quiet--
		}
		if before = now; n == enough {
			return fmt.Errorf("there is no end after %d passes", enough)
		}
	}
	if w.clock.Before(m.latest) {
		return nil // what was due by a later clock, and has not been done, is not told from what is not
	}
	sources, err := w.freeze()
	if err != nil {
		return err
	}
	for _, f := range sources {
		for id, d := range f.must {
			shard := lifecycle.ShardOf(f.Repository, d.Key)
			if !slices.ContainsFunc(s.Blocked, func(key string) bool { return lifecycle.ShardOf(f.Repository, key) == shard }) {
				return fmt.Errorf("%s/%s: %s %s is due, and no pass gets to it", f.Repository, f.Branch, d.Kind, id)
			}
		}
	}
	return nil
}

// play lets a history happen.
func (h history) play(ctx context.Context, run engine) error {
	w, err := newWorld(ctx, h)
	if err != nil {
		return err
	}
	m := &memory{}
	for i, s := range h.Steps {
		switch s.Do {
		case "pass":
			err = w.pass(s, run, m)
		case "finish":
			err = w.finish(s, run, m)
		default:
			err = w.do(s)
		}
		if err != nil {
			return fmt.Errorf("step %d, %s: %w", i, s, err)
		}
	}
	return nil
}

// shorter returns the history without the steps that its error does not need.
func (h history) shorter(ctx context.Context, run engine) history {
	for again := true; again; {
		again = false
		for n := max(len(h.Steps)/2, 1); n > 0; n /= 2 {
			for i := 0; i+n <= len(h.Steps); {
				s := h
				s.Steps = slices.Delete(slices.Clone(h.Steps), i, i+n)
				if s.play(ctx, run) != nil {
					h, again = s, true
				} else {
					i += n
				}
			}
		}
	}
	return h
}

func (h history) String() string {
	text := fmt.Sprintf("boundary %s, window %s\n", h.Boundary, h.Window)
	for i, s := range h.Steps {
		text += fmt.Sprintf("%3d %s\n", i, s)
		if s.Do == "rules" {
			document, err := anyRules(rand.New(rand.NewPCG(uint64(s.A), uint64(s.B)))).JSON()
			text += fmt.Sprintf("    %s %v\n", document, err)
		}
	}
	return text
}

// histories returns how many histories to try.
func histories() int {
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		return 100_000
	}
	if raceDetector {
		return 300
	}
	return 2000
}

// tryHistories returns the seed of a history with an error, the history made short, and its error.
func tryHistories(ctx context.Context, n int, run engine) (seed uint64, h history, err error) {
	var next atomic.Uint64
	var failed atomic.Bool
	var workers sync.WaitGroup
	var once sync.Once
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < uint64(n) && !failed.Load(); i = next.Add(1) - 1 {
				tried := anyHistory(rand.New(rand.NewPCG(i, 0)))
				if tried.play(ctx, run) == nil {
					continue
				}
				failed.Store(true)
				once.Do(func() { seed, h = i, tried })
			}
		})
	}
	workers.Wait()
	if !failed.Load() {
		return 0, history{}, nil
	}
	h = h.shorter(ctx, run)
	return seed, h, h.play(ctx, run)
}

// naive is a pass that asks the oracle what is due, with a change of the time that it asks about.
func naive(asked func(w *world) time.Time) engine {
	return func(ctx context.Context, w *world, d dispatch.Dispatcher) error {
		w.limiter = nil
		clock := w.clock
		w.clock = asked(w)
		all, err := w.freeze()
		w.clock = clock
		if err != nil {
			return err
		}
		for _, f := range all {
			shards := map[int][]dispatch.Item{}
			for _, o := range f.may {
				n := lifecycle.ShardOf(f.Repository, o.Key)
				if !w.settings.works(n) {
					continue
				}
				shards[n] = append(shards[n], dispatch.Item{Action: o.action, Key: o.entry, LogicalKey: o.Key, VersionID: o.VersionID, ContentIdentity: o.ContentIdentity, Object: &o.Object})
			}
			var batches []dispatch.Batch
			for n, items := range shards {
				slices.SortFunc(items, func(a, b dispatch.Item) int { return bytes.Compare(a.Key, b.Key) })
				batches = append(batches, dispatch.Batch{Shard: n, Items: items})
			}
			if len(batches) == 0 {
				continue
			}
			if _, err := d.Dispatch(ctx, f.Source, batches); err != nil {
				return err
			}
		}
		return nil
	}
}

func onTime(w *world) time.Time { return w.clock }

func TestAPassThatDoesWhatTheOracleSaysIsRight(t *testing.T) {
	seed, h, err := tryHistories(t.Context(), 300, naive(onTime))
	require.NoError(t, err, "seed %d, %s", seed, h)
}

func TestTheOracleFindsAPassThatIsWrong(t *testing.T) {
	for name, run := range map[string]engine{
		"early": naive(func(w *world) time.Time { return w.clock.Add(day) }),
		"late":  naive(func(w *world) time.Time { return w.clock.Add(-day) }),
		"idle":  func(context.Context, *world, dispatch.Dispatcher) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := tryHistories(t.Context(), 100, run)
			require.Error(t, err)
		})
	}
}
