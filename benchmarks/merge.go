// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// merging measures a merge of changes that are scattered over a repository into a branch that has changed too, against the commit
// by which the same changes were made.
type merging struct {
	Entries int `json:"entries"`
	Changes int `json:"changes"`
}

func newMerge(s Setting) *merging {
	return &merging{Entries: of(s, 1_000_000, 100_000, 1_000), Changes: of(s, 1_000, 1_000, 20)}
}

func (w *merging) Flags(f *pflag.FlagSet) {
	f.Var((*positive)(&w.Entries), "entries", "entries of the repository")
	f.Var((*positive)(&w.Changes), "changes", "entries that the merged branch has changed, at equal distances")
}

func (w *merging) run(ctx context.Context, b *bench) error {
	if w.Changes > w.Entries/2 {
		return fmt.Errorf("%w: %d changes in %d entries; there must be twice as many at least", ErrConfig, w.Changes, w.Entries)
	}
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	es := b.changing("data", w.Entries)
	if _, err := b.fill(ctx, repo, mainBranch, es.entries); err != nil {
		return err
	}
	if err := b.tidy(ctx); err != nil {
		return err
	}
	var applies, merges []float64
	for round := range b.Rounds {
		apply, merge, err := w.round(ctx, b, repo, es, round)
		if err != nil {
			return err
		}
		applies, merges = append(applies, apply), append(merges, merge)
	}
	b.metricAt("merge", w.Changes, "changes", result.Seconds, merges...)
	b.referenceAt("commit of the same changes", w.Changes, "changes", result.Seconds, applies...)
	b.metricAt("merge ÷ commit of the same changes", w.Changes, "changes", result.Slowdown, result.Ratio(merges, applies)...)
	n, err := b.verifyBranch(ctx, repo, es.all)
	b.checked("after each merge the %d entries have the values of both sides, and the root ID of a fresh tree", n)
	return err
}

// round makes the changes on a branch, another one on main, and merges.
func (w *merging) round(ctx context.Context, b *bench, repo graveler.RepositoryID, es *changing, round int) (apply, merge float64, err error) {
	side := graveler.BranchID(fmt.Sprintf("side-%d", round))
	if _, err := b.store.CreateBranch(ctx, repo, side, string(mainBranch)); err != nil {
		return 0, 0, err
	}
	if err := b.store.SetMany(ctx, repo, side, es.change(spread(w.Entries, w.Changes)...)); err != nil {
		return 0, 0, err
	}
	if apply, err = b.commitTimed(ctx, repo, side); err != nil {
		return 0, 0, err
	}
	if err := b.store.SetMany(ctx, repo, mainBranch, es.change(1+round%(w.Entries/w.Changes-1))); err != nil {
		return 0, 0, err
	}
	if _, err := b.commit(ctx, repo, mainBranch); err != nil {
		return 0, 0, err
	}
	var head graveler.Commit
	merge, err = timed(func() (err error) {
		head, err = b.store.Merge(ctx, repo, string(side), mainBranch, graveler.MergeParams{CommitParams: graveler.CommitParams{Committer: "bench"}})
		return err
	})
	if err == nil {
		err = b.verifyRoot(ctx, head, es.all)
	}
	return apply, merge, err
}
