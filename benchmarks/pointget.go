// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// pointGet measures the reading of single entries by one goroutine: of entries whose blocks fit into the cache, and of all, with
// a cache that has room for the indexes of files and for few blocks, so that nearly every block is read from its file, which the
// kernel holds in memory, and decoded.
type pointGet struct {
	Entries int `json:"entries"`
	Staged  int `json:"staged"`
	Gets    int `json:"gets"`
	Hot     int `json:"hot"`
}

func newPointGet(s Setting) *pointGet {
	return &pointGet{Entries: of(s, 1_000_000, 100_000, 1_000), Staged: of(s, 10_000, 1_000, 50), Gets: of(s, 50_000, 5_000, 50), Hot: of(s, 50_000, 20_000, 500)}
}

func (w *pointGet) Flags(f *pflag.FlagSet) {
	f.Var((*positive)(&w.Entries), "entries", "entries of the commit")
	f.Var((*positive)(&w.Staged), "staged", "entries that are changed on the branch, at equal distances")
	f.Var((*positive)(&w.Gets), "gets", "entries that are read in each round, in no order")
	f.Var((*positive)(&w.Hot), "hot", "how many entries, the first ones, they are among: the blocks of so many fit into the cache")
}

func (w *pointGet) run(ctx context.Context, b *bench) (err error) {
	if w.Hot > w.Entries {
		return fmt.Errorf("%w: %d hot entries of %d", ErrConfig, w.Hot, w.Entries)
	}
	s, err := b.show(ctx, w.Entries, w.Staged)
	if err != nil {
		return err
	}
	dir, err := b.subdirectory()
	if err != nil {
		return err
	}
	raw, err := reference.OpenBolt(filepath.Join(dir, "raw"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, raw.Close()) }()
	if err := raw.Load(s.below.records()); err != nil {
		return err
	}
	uncached, err := b.open(ctx, smallCache(w.Entries), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, uncached.Close()) }()
	all := make([]graveler.Key, w.Entries)
	for i := range all {
		all[i] = s.below.key(i)
	}
	hot := all[:w.Hot]
	of := func(store *moraine.Store, ref string) func(context.Context, graveler.Key) (int, error) {
		return func(ctx context.Context, key graveler.Key) (int, error) {
			v, err := store.Get(ctx, s.repo, ref, key)
			if err != nil {
				return 0, err
			}
			return len(v.Identity) + len(v.Data), nil
		}
	}
	ofRaw := func(_ context.Context, key graveler.Key) (int, error) {
		value, err := raw.Get(key)
		return len(value), err
	}
	subjects := []measure.Subject{
		w.subject("hot entries of raw bbolt", b, hot, ofRaw),
		w.subject("hot entries of a commit", b, hot, of(b.store, s.commit)),
		w.subject("hot entries of a branch", b, hot, of(b.store, string(mainBranch))),
		w.subject("all entries of raw bbolt", b, all, ofRaw),
		w.subject("all entries of a commit", b, all, of(uncached, s.commit)),
	}
	// Indexes come into the cache, and all files into that of the kernel.
	if _, err := subjects[4].Measure(ctx, b.Rounds); err != nil {
		return err
	}
	if err := w.warm(ctx, b, s); err != nil {
		return err
	}
	samples, err := measure.Alternate(ctx, b.Rounds, subjects...)
	if err != nil {
		return err
	}
	b.reference("get of raw bbolt, hot entries", result.Seconds, samples[0]...)
	b.metric("get of a commit, blocks cached", result.Seconds, samples[1]...)
	b.metric("get of a branch, blocks cached", result.Seconds, samples[2]...)
	b.reference("get of raw bbolt, all entries", result.Seconds, samples[3]...)
	b.metric("get of a commit, page cache only", result.Seconds, samples[4]...)
	b.metric("get of a commit, blocks cached ÷ raw bbolt", result.Slowdown, result.Ratio(samples[1], samples[0])...)
	b.metric("get of a commit, page cache only ÷ raw bbolt", result.Slowdown, result.Ratio(samples[4], samples[3])...)
	b.metric("get of a branch ÷ of a commit", result.Slowdown, result.Ratio(samples[2], samples[1])...)
	return s.verify(ctx, b)
}

// smallCache is the size of a cache of which a quarter, the part for indexes, holds those of so many entries: they take less than
// two bytes each. The rest is little next to the entries.
func smallCache(entries int) int64 { return 4 * (2*int64(entries) + 64<<10) }

// subject returns the time of one get. Values are looked at elsewhere, so that what is measured is the get.
func (w *pointGet) subject(name string, b *bench, keys []graveler.Key, get func(ctx context.Context, key graveler.Key) (size int, err error)) measure.Subject {
	return measure.Subject{Name: name, Measure: func(ctx context.Context, round int) (float64, error) {
		took, err := timed(func() error {
			for n := range w.Gets {
				key := keys[mix(b.Seed^uint64(round*w.Gets+n))%uint64(len(keys))]
				size, err := get(ctx, key)
				if err == nil && size != b.ValueBytes {
					err = fmt.Errorf("%w: %q has %d bytes", ErrWrong, key, size)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		return took / float64(w.Gets), err
	}}
}

// warm reads the hot entries once, with their values.
func (w *pointGet) warm(ctx context.Context, b *bench, s shown) error {
	for i := range w.Hot {
		if err := b.expect(ctx, s.repo, s.commit, s.below, i); err != nil {
			return err
		}
		if err := b.expect(ctx, s.repo, string(mainBranch), s.above.entries, i); err != nil {
			return err
		}
	}
	return nil
}
