// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// listing measures listings of a commit and of a branch that has uncommitted changes on top of it.
type listing struct {
	Entries int `json:"entries"`
	Staged  int `json:"staged"`
	Page    int `json:"page"`
	Pages   int `json:"pages"`
}

func newList(s Setting) *listing {
	return &listing{Entries: of(s, 1_000_000, 100_000, 1_000), Staged: of(s, 10_000, 1_000, 50), Page: of(s, 1_000, 1_000, 100), Pages: of(s, 200, 40, 3)}
}

func (w *listing) Flags(f *pflag.FlagSet) {
	f.Var((*positive)(&w.Entries), "entries", "entries of the commit")
	f.Var((*positive)(&w.Staged), "staged", "entries that are changed on the branch, at equal distances")
	f.Var((*positive)(&w.Page), "page", "entries of a page")
	f.Var((*positive)(&w.Pages), "pages", "pages, each from another key on, in each round")
}

// shown is a repository with a commit and with a branch that has changes above it.
type shown struct {
	repo   graveler.RepositoryID
	commit string // its ID
	below  entries
	above  *changing
}

// show fills main, and changes some entries of it, at equal distances, without committing them.
func (b *bench) show(ctx context.Context, n, staged int) (s shown, err error) {
	if staged > n {
		return s, fmt.Errorf("%w: %d entries of %d are to be changed", ErrConfig, staged, n)
	}
	if s.repo, err = b.repository(ctx); err != nil {
		return s, err
	}
	s.below, s.above = b.entries("data", n), b.changing("data", n)
	c, err := b.fill(ctx, s.repo, mainBranch, s.below)
	if err != nil {
		return s, err
	}
	s.commit = string(c.ID)
	if err := b.tidy(ctx); err != nil {
		return s, err
	}
	return s, b.store.SetMany(ctx, s.repo, mainBranch, s.above.change(spread(n, staged)...))
}

// spread returns some of the numbers below n, at equal distances.
func spread(n, some int) []int {
	all := make([]int, some)
	for i := range all {
		all[i] = i * (n / some)
	}
	return all
}

// verify compares what the commit and the branch show with what must be there.
func (s shown) verify(ctx context.Context, b *bench) error {
	n, err := b.verifyList(ctx, s.repo, s.commit, s.below.all)
	if err != nil {
		return err
	}
	if _, err := b.verifyBranch(ctx, s.repo, s.above.all); err != nil {
		return err
	}
	b.checked("the commit and the branch show each of %d entries once, with its value; committed, the branch has the root ID of a fresh tree", n)
	return nil
}

func (w *listing) run(ctx context.Context, b *bench) (err error) {
	s, err := b.show(ctx, w.Entries, w.Staged)
	if err != nil {
		return err
	}
	dir, err := b.subdirectory()
	if err != nil {
		return err
	}
	tables, err := reference.WriteTables(dir, s.below.records())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tables.Close()) }()
	from := func(round, page int) graveler.Key {
		return s.below.key(int(mix(b.Seed^uint64(round*w.Pages+page)) % uint64(max(w.Entries-w.Page, 1))))
	}
	pages := func(name string, read func(ctx context.Context, from graveler.Key, limit int) (int, error)) measure.Subject {
		return measure.Subject{Name: name, Measure: func(ctx context.Context, round int) (float64, error) {
			took, err := timed(func() error {
				for page := range w.Pages {
					n, err := read(ctx, from(round, page), w.Page)
					if err == nil && n != min(w.Page, w.Entries) {
						err = fmt.Errorf("%w: a page of %d entries has %d", ErrWrong, w.Page, n)
					}
					if err != nil {
						return err
					}
				}
				return nil
			})
			return took / float64(w.Pages), err
		}}
	}
	whole := func(name string, read func(ctx context.Context, from graveler.Key, limit int) (int, error)) measure.Subject {
		return measure.Subject{Name: name, Measure: func(ctx context.Context, _ int) (float64, error) {
			took, err := timed(func() error {
				n, err := read(ctx, s.below.key(0), w.Entries+1)
				if err == nil && n != w.Entries {
					err = fmt.Errorf("%w: a listing of %d entries has %d", ErrWrong, w.Entries, n)
				}
				return err
			})
			return float64(w.Entries) / took, err
		}}
	}
	ofCommit, ofBranch := b.reader(s.repo, s.commit), b.reader(s.repo, string(mainBranch))
	ofTables := func(_ context.Context, from graveler.Key, limit int) (int, error) { return tables.Scan(from, limit) }
	samples, err := measure.Alternate(ctx, b.Rounds,
		pages("page of a commit", ofCommit), pages("page of a branch", ofBranch), pages("page of sstables", ofTables),
		whole("all of a commit", ofCommit), whole("all of a branch", ofBranch), whole("all of sstables", ofTables))
	if err != nil {
		return err
	}
	b.metric("page of a commit", result.Seconds, samples[0]...)
	b.metric("page of a branch", result.Seconds, samples[1]...)
	b.reference("page of the sstable reader", result.Seconds, samples[2]...)
	b.metric("page of a branch ÷ of a commit", result.Slowdown, result.Ratio(samples[1], samples[0])...)
	b.metric("all of a commit", result.PerSecond, samples[3]...)
	b.metric("all of a branch", result.PerSecond, samples[4]...)
	b.reference("all of the sstable reader", result.PerSecond, samples[5]...)
	b.metric("all of a commit ÷ sstable reader", result.Speed, result.Ratio(samples[3], samples[5])...)
	return s.verify(ctx, b)
}

// reader returns a function that lists entries of a ref from a key on, and counts them.
func (b *bench) reader(repo graveler.RepositoryID, ref string) func(ctx context.Context, from graveler.Key, limit int) (int, error) {
	return func(ctx context.Context, from graveler.Key, limit int) (n int, err error) {
		// A listing begins after a key; the shortened one comes just before it.
		for _, err := range b.store.List(ctx, repo, ref, graveler.ListOptions{After: from[:len(from)-1]}) {
			if err != nil {
				return n, err
			}
			if n++; n == limit {
				break
			}
		}
		return n, nil
	}
}
