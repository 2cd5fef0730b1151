// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"slices"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// importing measures how entries that are sorted already come into an empty branch: staged in bulk, and committed.
type importing struct {
	Entries int `json:"entries"`
}

func newImport(s Setting) *importing {
	return &importing{Entries: of(s, 1_000_000, 50_000, 1_000)}
}

func (w *importing) Flags(f *pflag.FlagSet) {
	f.Var((*positive)(&w.Entries), "entries", "entries to import")
}

func (w *importing) run(ctx context.Context, b *bench) error {
	es := b.entries("data", w.Entries)
	all, records := slices.Values(es.batch(upTo(es.n))), es.records()
	samples, err := measure.Alternate(ctx, b.Rounds,
		measure.Subject{Name: "import", Measure: func(ctx context.Context, _ int) (took float64, err error) {
			repo, err := b.repository(ctx)
			if err != nil {
				return 0, err
			}
			err = b.counting("import", func() (err error) {
				took, err = timed(func() error {
					_, err := importSorted(ctx, b.store, repo, all)
					return err
				})
				return err
			})
			if err == nil {
				_, err = b.verifyBranch(ctx, repo, es.all)
			}
			if err != nil {
				return 0, err
			}
			return took, b.discard(ctx, repo)
		}},
		measure.Subject{Name: tableWriter, Measure: func(context.Context, int) (float64, error) { return b.writeTables(records) }})
	if err != nil {
		return err
	}
	b.metricAt("import", w.Entries, inEntries, result.Seconds, samples[0]...)
	b.referenceAt(tableWriter, w.Entries, inEntries, result.Seconds, samples[1]...)
	b.metricAt("import ÷ "+tableWriter, w.Entries, inEntries, result.Speed, result.Ratio(samples[1], samples[0])...)
	b.checked("each import has all %d entries with their values, nothing else, and the root ID of a fresh tree", w.Entries)
	return nil
}

// importSorted imports entries into main.
func importSorted(ctx context.Context, store *moraine.Store, repo graveler.RepositoryID, all sequence) (graveler.Commit, error) {
	return store.Import(ctx, repo, mainBranch, sound(all), graveler.ImportParams{CommitParams: graveler.CommitParams{Message: "bench", Committer: "bench"}})
}
