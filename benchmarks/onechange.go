// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
)

// oneChange measures what commit and diff of few changes cost, in repositories of several sizes, and whether it pays not to write everything anew.
type oneChange struct {
	Sizes    []int `json:"sizes"`
	Rewrite  int   `json:"rewrite"`
	Changes  int   `json:"changes"`
	Prefixes int   `json:"prefixes"`
}

func newOneChange(s Setting) *oneChange {
	return &oneChange{
		Sizes: of(s, []int{100_000, 1_000_000, 10_000_000}, []int{10_000, 100_000}, []int{500, 2_000}),
		// One in a thousand, in every setting.
		Rewrite: of(s, 1_000_000, 100_000, 2_000), Changes: of(s, 1_000, 100, 10), Prefixes: of(s, 10, 10, 2),
	}
}

func (w *oneChange) Flags(f *pflag.FlagSet) {
	f.Var((*numbers)(&w.Sizes), "sizes", "entries of the repositories, ascending")
	f.Var((*positive)(&w.Rewrite), "rewrite", "entries of the repository in which several changes are compared with writing all anew: one of the sizes")
	f.Var((*positive)(&w.Changes), "changes", "how many changes these are")
	f.Var((*positive)(&w.Prefixes), "prefixes", "in how many prefixes they are, where they are not scattered over all")
}

// sized is a repository with so many entries.
type sized struct {
	repo graveler.RepositoryID
	*changing
}

func (w *oneChange) run(ctx context.Context, b *bench) error {
	if !slices.Contains(w.Sizes, w.Rewrite) || w.Prefixes > w.Changes || w.Changes > w.Rewrite {
		return fmt.Errorf("%w: rewrite must be one of the sizes, and not less than changes, and these not less than prefixes", ErrConfig)
	}
	var all []sized
	var subjects []measure.Subject
	for _, n := range w.Sizes {
		repo, err := b.repository(ctx)
		if err != nil {
			return err
		}
		s := sized{repo, b.changing("data", n)}
		if _, err := b.fill(ctx, repo, mainBranch, s.entries); err != nil {
			return err
		}
		if err := b.tidy(ctx); err != nil {
			return err
		}
		all = append(all, s)
		subjects = append(subjects,
			measure.Subject{Name: fmt.Sprintf("commit in %d", n), Measure: func(ctx context.Context, round int) (float64, error) {
				return b.commitChanges(ctx, s, int(mix(b.Seed^uint64(round))%uint64(n)))
			}},
			measure.Subject{Name: fmt.Sprintf("diff in %d", n), Measure: func(ctx context.Context, _ int) (float64, error) { return b.diffHead(ctx, s) }})
	}
	if err := b.counting("one commit and one diff of one change, per size", func() error {
		_, err := measure.Alternate(ctx, 1, subjects...) // also warms up; the diffs need a commit before them
		return err
	}); err != nil {
		return err
	}
	samples, err := measure.Alternate(ctx, b.Rounds, subjects...)
	if err != nil {
		return err
	}
	for i, n := range w.Sizes {
		b.metricAt("commit", n, inEntries, result.Seconds, samples[2*i]...)
		b.metricAt("diff", n, inEntries, result.Seconds, samples[2*i+1]...)
	}
	if last := len(w.Sizes) - 1; last > 0 {
		b.metricAt("commit ÷ that in the fewest entries", w.Sizes[last], inEntries, result.Slowdown, result.Ratio(samples[2*last], samples[0])...)
		b.metricAt("diff ÷ that in the fewest entries", w.Sizes[last], inEntries, result.Slowdown, result.Ratio(samples[2*last+1], samples[1])...)
	}
	if err := w.compareRewrite(ctx, b, all[slices.Index(w.Sizes, w.Rewrite)]); err != nil {
		return err
	}
	return w.check(ctx, b, all)
}

// commitChanges changes entries and returns how long their commit took.
func (b *bench) commitChanges(ctx context.Context, s sized, numbers ...int) (float64, error) {
	if err := b.store.SetMany(ctx, s.repo, mainBranch, s.change(numbers...)); err != nil {
		return 0, err
	}
	return b.commitTimed(ctx, s.repo, mainBranch)
}

// diffHead returns how long the difference of the head and the commit before took, which must be one entry.
func (b *bench) diffHead(ctx context.Context, s sized) (float64, error) {
	found := 0
	took, err := timed(func() error {
		for _, err := range b.store.Diff(ctx, s.repo, string(mainBranch)+"~1", string(mainBranch), graveler.DiffOptions{}) {
			if err != nil {
				return err
			}
			found++
		}
		return nil
	})
	if err == nil && found != 1 {
		err = fmt.Errorf("%s: %w: a commit of one change differs in %d entries", s.repo, ErrWrong, found)
	}
	return took, err
}

// compareRewrite compares commits of several changes with a fresh tree of all entries, from memory.
func (w *oneChange) compareRewrite(ctx context.Context, b *bench, s sized) error {
	var trees []string
	store, err := committed.New(committed.Config{Storage: func(_ context.Context, ns string) (block.Storage, error) { return block.Sub(b.blocks, ns), nil }})
	if err != nil {
		return err
	}
	all := slices.Collect(s.all)
	samples, err := measure.Alternate(ctx, b.Rounds,
		measure.Subject{Name: "changes in prefixes", Measure: func(ctx context.Context, round int) (float64, error) {
			return b.commitChanges(ctx, s, w.inPrefixes(s.n, round)...)
		}},
		measure.Subject{Name: "scattered changes", Measure: func(ctx context.Context, round int) (float64, error) {
			return b.commitChanges(ctx, s, w.scattered(s.n, round)...)
		}},
		measure.Subject{Name: "full rewrite", Measure: func(ctx context.Context, round int) (float64, error) {
			trees = append(trees, fmt.Sprintf("rewrite-%d", round))
			return timed(func() error {
				_, err := store.Apply(ctx, trees[len(trees)-1], store.EmptyTree(), &held{entries: all})
				return err
			})
		}})
	for _, ns := range trees {
		if err == nil {
			err = store.Drop(ctx, ns)
		}
	}
	if err != nil {
		return err
	}
	prefixes, scattered, rewrite := samples[0], samples[1], samples[2]
	b.metric(fmt.Sprintf("commit of %d changes in %d prefixes", w.Changes, w.Prefixes), result.Seconds, prefixes...)
	b.metric(fmt.Sprintf("commit of %d scattered changes", w.Changes), result.Seconds, scattered...)
	b.reference(fmt.Sprintf("full rewrite of %d entries", s.n), result.Seconds, rewrite...)
	b.metric("changes in prefixes ÷ full rewrite", result.Speed, result.Ratio(rewrite, prefixes)...)
	b.metric("scattered changes ÷ full rewrite", result.Speed, result.Ratio(rewrite, scattered)...)
	return store.Close()
}

// inPrefixes are runs of neighbours at equal distances, others in each round.
func (w *oneChange) inPrefixes(n, round int) (numbers []int) {
	each := w.Changes / w.Prefixes
	for p := range w.Prefixes {
		start := p*(n/w.Prefixes) + round*each%max(n/w.Prefixes-each, 1)
		for i := range each {
			numbers = append(numbers, start+i)
		}
	}
	return numbers
}

// scattered are numbers at equal distances, others in each round.
func (w *oneChange) scattered(n, round int) (numbers []int) {
	numbers = spread(n, w.Changes)
	for i := range numbers {
		numbers[i] += round % (n / w.Changes)
	}
	return numbers
}

func (w *oneChange) check(ctx context.Context, b *bench, all []sized) error {
	for _, s := range all {
		if _, err := b.verifyBranch(ctx, s.repo, s.all); err != nil {
			return err
		}
	}
	b.checked("all changes are there, and nothing else has changed; the commits have the root IDs of fresh trees")
	return nil
}
