// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/router"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// expiring measures lifecycle passes: those that find nothing due, of buckets of several sizes and of rules of several lengths;
// those of every day; and one that finds all due at once. Beside them what passes are made of: how fast entries are matched with
// rules, and trees walked. The clock is turned, not waited for.
type expiring struct {
	Sizes  []int         `json:"sizes"`
	Days   []int         `json:"days"`
	Due    []int         `json:"due"`
	AtOnce int           `json:"at_once"`
	Window time.Duration `json:"window_ns"`
}

func newExpiring(s Setting) *expiring {
	return &expiring{
		Sizes: of(s, []int{10_000, 1_000_000, 10_000_000}, []int{1_000, 10_000, 100_000}, []int{50, 500}), Days: of(s, []int{1, 30, 365}, []int{1, 30, 365}, []int{1, 5}),
		Due: of(s, []int{10, 1_000, 100_000}, []int{10, 100, 1_000}, []int{5, 20}), AtOnce: of(s, 1_000_000, 100_000, 500), Window: of(s, time.Second, 100*time.Millisecond, time.Millisecond),
	}
}

func (w *expiring) Flags(f *pflag.FlagSet) {
	f.Var((*numbers)(&w.Sizes), "sizes", "objects of the buckets in which nothing is due, ascending")
	f.Var((*numbers)(&w.Days), "days", "days after which rules remove objects, ascending")
	f.Var((*numbers)(&w.Due), "due", "objects that fall due each day, and that are put each day")
	f.Var((*positive)(&w.AtOnce), "at-once", "objects that fall due at once; as many are walked")
	f.DurationVar(&w.Window, "window", w.Window, "how long entries are matched with rules in each round")
}

func (w *expiring) run(ctx context.Context, b *bench) error {
	if b.kv == nil {
		return fmt.Errorf("%w: the tables of older deployments have no place for lifecycle records", ErrConfig)
	}
	for _, part := range []func(context.Context, *bench) error{w.quiet, w.daily, w.atOnce, w.walk, w.match} {
		if err := part(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

const (
	inObjects = "objects"
	inDays    = "days"
	inDue     = "objects due"
	// someDays is the length of a rule where lengths are not compared.
	someDays = 30
)

// quiet compares passes that find nothing due: they must cost the same, whatever the size of the bucket and the length of the rule.
func (w *expiring) quiet(ctx context.Context, b *bench) error {
	compare := func(points []int, of, least string, passes func(n int) ([]passed, error)) error {
		var calls [][]float64
		for _, n := range points {
			all, err := passes(n)
			if err != nil {
				return err
			}
			calls = append(calls, each(all, func(p passed) float64 { return p.calls }))
			b.metricAt("pass with nothing due", n, of, result.Seconds, each(all, func(p passed) float64 { return p.seconds })...)
			b.metricAt("calls of a pass with nothing due", n, of, result.Count, calls[len(calls)-1]...)
		}
		if last := len(points) - 1; last > 0 {
			b.metricAt("calls ÷ those "+least, points[last], of, result.Slowdown, result.Ratio(calls[last], calls[0])...)
		}
		return nil
	}
	err := compare(w.Sizes, inObjects, inSmallest, func(n int) ([]passed, error) { return w.quietPasses(ctx, b, n, someDays) })
	if err != nil {
		return err
	}
	return compare(w.Days, inDays, ofShortest, func(n int) ([]passed, error) { return w.quietPasses(ctx, b, w.Sizes[0], n) })
}

const (
	inSmallest = "in the smallest bucket"
	ofShortest = "of the shortest rule"
)

// quietPasses makes passes over a bucket that is as old as its rule is long, but for a day, and has seen a commit every day.
func (w *expiring) quietPasses(ctx context.Context, b *bench, n, days int) (all []passed, err error) {
	p, err := b.past(ctx, days, n, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.store.Close()) }()
	others := b.objects(kept, days-1)
	for i := range days - 1 {
		p.clock = p.clock.Add(day)
		if err := p.put(ctx, others.entry(i)); err != nil {
			return nil, err
		}
	}
	if _, err := p.pass(ctx, 0); err != nil { // reads what has changed
		return nil, err
	}
	for range b.Rounds {
		p.clock = p.clock.Add(time.Minute)
		err := b.counting(fmt.Sprintf("pass with nothing due, %d objects and a rule of %d days", n, days), func() error {
			one, err := p.pass(ctx, 0)
			all = append(all, one)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	b.checked("no pass has changed anything in a bucket of %d objects with a rule of %d days", n, days)
	return all, p.end(ctx, b.objects(dueLater, n).all, others.all)
}

// daily measures passes of days on which as many objects fall due as are put, beside those that are kept.
func (w *expiring) daily(ctx context.Context, b *bench) error {
	for _, k := range w.Due {
		all, err := w.dailyPasses(ctx, b, k)
		if err != nil {
			return err
		}
		b.metricAt("daily pass", k, inDue, result.Seconds, each(all, func(p passed) float64 { return p.seconds })...)
		b.metricAt("calls of a daily pass", k, inDue, result.Count, each(all, func(p passed) float64 { return p.calls })...)
		// Changes are what was put since, and what the pass of the day before has removed.
		b.metricAt(callsPerChange, k, inDue, result.Slowdown, each(all, func(p passed) float64 { return p.calls / float64(k+2*k) })...)
	}
	return nil
}

const callsPerChange = "calls of a daily pass ÷ (objects due + changes)"

func (w *expiring) dailyPasses(ctx context.Context, b *bench, k int) (all []passed, err error) {
	const delay = 3
	p, err := b.past(ctx, delay, 0, w.Sizes[0])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.store.Close()) }()
	of := func(d int) objectSet { return b.objects(fmt.Sprintf("%s/day-%04d", dueLater, d), k) }
	last := delay + b.Rounds // on the first day on which something is due nothing was removed the day before
	for d := range last + 1 {
		due := 0
		if d >= delay {
			due = k
		}
		p.clock = firstDay.Add(time.Duration(d+1) * day)
		if err := p.put(ctx, slices.Collect(of(d).all)...); err != nil {
			return nil, err
		}
		one, err := p.pass(ctx, due)
		if err != nil {
			return nil, err
		}
		if d > delay {
			all = append(all, one)
		}
	}
	var left []sequence
	for d := last - delay + 1; d <= last; d++ {
		left = append(left, of(d).all)
	}
	b.checked("of %d objects a day each pass has removed those that were %d days old, and nothing else", k, delay)
	return all, p.end(ctx, append(left, b.objects(kept, w.Sizes[0]).all)...)
}

// atOnce measures a pass that finds everything due, but for some objects that no rule is about.
func (w *expiring) atOnce(ctx context.Context, b *bench) error {
	var removed, moves, memory []float64
	keeping := max(w.AtOnce/10, 1)
	rounds := (b.Rounds + 1) / 2
	for range rounds {
		p, err := b.past(ctx, someDays, w.AtOnce, keeping)
		if err != nil {
			return err
		}
		one, n, peak, err := w.removeAll(ctx, p)
		if err == nil {
			err = p.end(ctx, b.objects(kept, keeping).all)
		}
		if err = errors.Join(err, p.store.Close()); err != nil {
			return err
		}
		removed, moves, memory = append(removed, float64(w.AtOnce)/one.seconds), append(moves, float64(n)), append(memory, float64(peak))
	}
	b.metricAt(removedAtOnce, w.AtOnce, inDue, result.PerSecond, removed...)
	b.metricAt("moves of the branch", w.AtOnce, inDue, result.Count, moves...)
	b.metricAt("memory of the pass", w.AtOnce, inDue, result.Bytes, memory...)
	b.checked("in each of %d rounds a pass has removed all %d objects that were due, and none of the %d others", rounds, w.AtOnce, keeping)
	return nil
}

const removedAtOnce = "objects removed at once"

func (w *expiring) removeAll(ctx context.Context, p *past) (one passed, moves int, peak int64, err error) {
	if _, err := p.pass(ctx, 0); err != nil {
		return one, 0, 0, err
	}
	p.clock = p.clock.Add(someDays * day)
	p.memory.Mark()
	err = p.counting("pass that removes all at once", func() (err error) {
		one, err = p.pass(ctx, w.AtOnce)
		return err
	})
	if err != nil {
		return one, 0, 0, err
	}
	peak = p.memory.Peak()
	moves, err = p.moves(ctx)
	return one, moves, peak, err
}

// walk compares walks of a tree with listings: by key alone, and with every object decoded.
func (w *expiring) walk(ctx context.Context, b *bench) error {
	c, err := catalog.New(catalog.Config{Store: b.store})
	if err != nil {
		return err
	}
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	all := b.objects("data", w.AtOnce)
	head, err := importSorted(ctx, b.store, repo, all.all)
	if err != nil {
		return err
	}
	groups := walker.New(b.store).Walk(ctx, repo, head.Tree, catalog.VersioningEnabled, "")
	list := b.reader(repo, string(head.ID))
	kinds := []struct {
		name string
		read func(ctx context.Context) (int, error)
	}{
		{"walk", func(context.Context) (int, error) { return count(groups) }},
		{"listing", func(ctx context.Context) (int, error) { return list(ctx, all.key(0), w.AtOnce+1) }},
		{"decoding walk", func(ctx context.Context) (int, error) { return countObjects(ctx, groups) }},
		{"decoding listing", func(ctx context.Context) (int, error) {
			return count(c.Objects(ctx, catalog.Bucket{Repository: repo, Ref: string(head.ID)}, "", ""))
		}},
	}
	var subjects []measure.Subject
	for _, k := range kinds {
		subjects = append(subjects, measure.Subject{Name: k.name, Measure: func(ctx context.Context, _ int) (float64, error) {
			took, err := timed(func() error {
				n, err := k.read(ctx)
				if err == nil && n != w.AtOnce {
					err = fmt.Errorf("%w: %d of %d objects were seen", ErrWrong, n, w.AtOnce)
				}
				return err
			})
			return float64(w.AtOnce) / took, err
		}})
	}
	samples, err := measure.Alternate(ctx, b.Rounds, subjects...)
	if err != nil {
		return err
	}
	for i := 0; i < len(kinds); i += 2 {
		walk, listing := kinds[i].name, kinds[i+1].name
		b.metricAt(walk, w.AtOnce, inObjects, result.PerSecond, samples[i]...)
		b.referenceAt(listing, w.AtOnce, inObjects, result.PerSecond, samples[i+1]...)
		b.metricAt(walk+" ÷ "+listing, w.AtOnce, inObjects, result.Speed, result.Ratio(samples[i], samples[i+1])...)
	}
	if _, err := b.verifyBranch(ctx, repo, all.all); err != nil {
		return err
	}
	b.checked("each walk and each listing has seen all %d objects", w.AtOnce)
	return b.discard(ctx, repo)
}

// count returns how many there are.
func count[T any](all iter.Seq2[T, error]) (n int, err error) {
	for _, err := range all {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// countObjects is count for the objects of groups.
func countObjects(ctx context.Context, groups iter.Seq2[*walker.Group, error]) (n int, err error) {
	for g, err := range groups {
		if err != nil {
			return n, err
		}
		some, err := count(g.Objects(ctx))
		if n += some; err != nil {
			return n, err
		}
	}
	return n, nil
}

const matching = "entries matched with rules that accept none, by one goroutine"

// match measures how fast one goroutine matches entries with as many rules as there may be: those that no rule accepts, which are
// only looked at, and those that one does, which are decoded.
func (w *expiring) match(ctx context.Context, b *bench) error {
	var rules []lifecycle.Rule
	days := someDays
	for i := range lifecycle.MaxRules {
		prefix := fmt.Sprintf("tenant-%04d/logs/", i)
		rules = append(rules, lifecycle.Rule{ID: prefix, Enabled: true, Filter: lifecycle.Filter{Prefix: &prefix}, Expiration: &lifecycle.Expiration{Days: &days}})
	}
	snapshot, err := engine.Compile(map[graveler.RepositoryID]engine.Repository{"bench": {Configuration: lifecycle.Configuration{Rules: rules}}}, lifecycle.Calendar{})
	if err != nil {
		return err
	}
	r := router.New(snapshot.RecoveryView().Actions("bench"))
	const several = 4_096
	entries := func(kind string) (all []graveler.Entry) {
		for i := range several {
			all = append(all, b.objects(fmt.Sprintf("tenant-%04d/%s", mix(b.Seed^uint64(i))%lifecycle.MaxRules, kind), 0).entry(i))
		}
		return all
	}
	subject := func(name string, all []graveler.Entry, accepted bool) measure.Subject {
		return measure.Subject{Name: name, Measure: func(context.Context, int) (float64, error) {
			n, began := 0, time.Now()
			var m router.Match
			for n == 0 || time.Since(began) < w.Window {
				for _, e := range all {
					is, err := r.Match(e.Key, *e.Value, &m)
					if err == nil && is != accepted {
						err = fmt.Errorf("%w: that a rule accepts %q is %t", ErrWrong, e.Key, is)
					}
					if err != nil {
						return 0, err
					}
				}
				n += len(all)
			}
			return float64(n) / time.Since(began).Seconds(), nil
		}}
	}
	const decoding = "entries matched with a rule that accepts them, by one goroutine"
	samples, err := measure.Alternate(ctx, b.Rounds, subject(matching, entries("data"), false), subject(decoding, entries("logs"), true))
	if err != nil {
		return err
	}
	b.metric(matching, result.PerSecond, samples[0]...)
	b.metric(decoding, result.PerSecond, samples[1]...)
	b.checked("rules accepted the entries that they are about, and no others")
	return nil
}
