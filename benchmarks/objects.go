// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// storing measures what buckets add to branches: puts next to staged writes, listings with a delimiter next to those without, and
// many deletions in one call next to one after the other.
type storing struct {
	Writers []int         `json:"writers"`
	Window  time.Duration `json:"window_ns"`
	Sizes   []int         `json:"sizes"`
	Page    int           `json:"page"`
	Pages   int           `json:"pages"`
	Deletes int           `json:"deletes"`
}

func newStoring(s Setting) *storing {
	return &storing{
		Writers: of(s, []int{1, 16}, []int{1, 16}, []int{1, 3}), Window: of(s, 2*time.Second, 150*time.Millisecond, 10*time.Millisecond),
		Sizes: of(s, []int{100_000, 1_000_000}, []int{10_000, 100_000}, []int{100, 1_000}), Page: of(s, 1_000, 1_000, 50), Pages: of(s, 20, 2, 1),
		Deletes: of(s, 1_000, 1_000, 50),
	}
}

func (w *storing) Flags(f *pflag.FlagSet) {
	f.Var((*numbers)(&w.Writers), "writers", "numbers of goroutines that put at the same time")
	f.DurationVar(&w.Window, "window", w.Window, "how long they put in each round")
	f.Var((*numbers)(&w.Sizes), "sizes", "keys of the buckets that are listed, ascending")
	f.Var((*positive)(&w.Page), "page", "results of a page: as many common prefixes hold all keys of a bucket")
	f.Var((*positive)(&w.Pages), "pages", "pages in each round")
	f.Var((*positive)(&w.Deletes), "deletes", "objects that are deleted in one call, and one by one")
}

func (w *storing) run(ctx context.Context, b *bench) error {
	if w.Page > w.Sizes[0] || w.Page > catalog.MaxListed || w.Deletes > catalog.MaxDeletes {
		return fmt.Errorf("%w: a page of %d is more than the %d keys of a bucket or than %d, or %d deletions are more than %d", ErrConfig, w.Page, w.Sizes[0], catalog.MaxListed, w.Deletes, catalog.MaxDeletes)
	}
	c, err := catalog.New(catalog.Config{Store: b.store})
	if err != nil {
		return err
	}
	for _, n := range w.Sizes {
		if err := w.pages(ctx, b, c, n); err != nil {
			return err
		}
	}
	if err := w.puts(ctx, b, c); err != nil {
		return err
	}
	return w.deletes(ctx, b, c)
}

const (
	inWriters = "writers"
	inKeys    = "keys"
	// overwritten is how many keys each writer puts again and again.
	overwritten = 20
)

// putting is a way to write objects, in a bucket of its own.
type putting struct {
	name      string
	versioned bool
	keyOf     func(n int) int // which key the n-th object of a writer is put under
	in        catalog.Bucket
	write     operation
	bursts
}

// puts compares puts with staged writes of the same objects.
func (w *storing) puts(ctx context.Context, b *bench, c *catalog.Catalog) error {
	own := func(n int) int { return n }
	kinds := []*putting{
		{name: "staged writes", keyOf: own},
		{name: "puts", keyOf: own},
		{name: "versioned puts", versioned: true, keyOf: own},
		{name: "versioned puts over others", versioned: true, keyOf: func(n int) int { return n % overwritten }},
	}
	for _, k := range kinds {
		repo, err := b.repository(ctx)
		if err == nil && k.versioned {
			err = c.SetVersioning(ctx, repo, catalog.VersioningEnabled)
		}
		if err != nil {
			return err
		}
		k.in.Repository = repo
		k.write = func(ctx context.Context, worker, n int) error {
			s := b.objects(writer(worker), 0)
			_, err := c.Put(ctx, k.in, string(s.key(k.keyOf(n))), s.object(n), catalog.Conditions{})
			return err
		}
	}
	staged, over := kinds[0], kinds[3]
	staged.write = func(ctx context.Context, worker, n int) error {
		e := b.objects(writer(worker), 0).entry(n)
		return b.store.Set(ctx, staged.in.Repository, mainBranch, e.Key, *e.Value)
	}
	if err := over.fill(ctx, slices.Max(w.Writers)); err != nil {
		return err
	}
	for _, n := range w.Writers {
		var subjects []measure.Subject
		for _, k := range kinds {
			subjects = append(subjects, measure.Subject{Name: k.name, Measure: func(ctx context.Context, _ int) (float64, error) { return k.run(ctx, n, w.Window, k.write) }})
		}
		samples, err := measure.Alternate(ctx, b.Rounds, subjects...)
		if err != nil {
			return err
		}
		b.referenceAt(staged.name, n, inWriters, result.PerSecond, samples[0]...)
		for i, k := range kinds[1:] {
			b.metricAt(k.name, n, inWriters, result.PerSecond, samples[i+1]...)
			b.metricAt("time of "+k.name+" ÷ "+staged.name, n, inWriters, result.Slowdown, result.Ratio(samples[0], samples[i+1])...)
		}
	}
	for _, k := range kinds {
		if err := b.verifyPuts(ctx, c, k); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the first objects of each writer, so that all that come later replace others.
func (k *putting) fill(ctx context.Context, writers int) error {
	g, ctx := errgroup.WithContext(ctx)
	for worker := range writers {
		k.done = append(k.done, overwritten)
		g.Go(func() error {
			for n := range overwritten {
				if err := k.write(ctx, worker, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// verifyPuts compares what is in a bucket with what was put.
func (b *bench) verifyPuts(ctx context.Context, c *catalog.Catalog, k *putting) error {
	if k.versioned {
		b.checked("all %d versions of %s are there, each once and under its key, and the last one that was put is current", sum(k.done), k.name)
		return b.verifyVersions(ctx, c, k)
	}
	n, err := b.verifyBranch(ctx, k.in.Repository, b.writtenObjects(k.done))
	b.checked("all %d objects of %s are there with all their fields, and nothing else; committed, they have the root ID of a fresh tree", n, k.name)
	return err
}

// writtenObjects is written for puts.
func (b *bench) writtenObjects(done []int) sequence {
	var all []sequence
	for w, n := range done {
		all = append(all, b.objects(writer(w), n).all)
	}
	return joined(all...)
}

// verifyVersions compares all versions in a bucket with those that were put.
func (b *bench) verifyVersions(ctx context.Context, c *catalog.Catalog, k *putting) error {
	missing := map[string]string{} // the key of each address
	latest := map[string]string{}  // the address that is current, by key
	for worker, n := range k.done {
		s := b.objects(writer(worker), n)
		for i := range n {
			key, address := string(s.key(k.keyOf(i))), s.object(i).PhysicalAddress
			missing[address], latest[key] = key, address
		}
	}
	for v, err := range c.Versions(ctx, k.in, "", "") {
		if err != nil {
			return err
		}
		switch address := v.PhysicalAddress; {
		case missing[address] != v.Key:
			return fmt.Errorf("%s: %w: a version of %q with the address %q is there, which nobody put, or twice", k.in, ErrWrong, v.Key, address)
		case v.Latest != (latest[v.Key] == address):
			return fmt.Errorf("%s: %w: of %q not what was put last is current", k.in, ErrWrong, v.Key)
		default:
			delete(missing, address)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s: %w: %d versions are missing", k.in, ErrWrong, len(missing))
	}
	return nil
}

// grouped is n objects in as many directories as a page has results.
func (w *storing) grouped(b *bench, n int) sequence {
	return func(yield func(graveler.Entry) bool) {
		s := b.objects("grouped", n)
		for i := range n {
			e := s.entry(i)
			directory := i * w.Page / n
			e.Key = fmt.Appendf(nil, "%s%08d", directoryName(directory), i)
			if !yield(e) {
				return
			}
		}
	}
}

func directoryName(i int) string { return fmt.Sprintf("directory-%06d/", i) }

// pages compares a page of common prefixes, which are those of all keys, with a page of objects: of a commit, of a branch on
// which all is committed, and of one on which nothing is.
func (w *storing) pages(ctx context.Context, b *bench, c *catalog.Catalog, n int) error {
	committed, err := b.repository(ctx)
	if err != nil {
		return err
	}
	staged, err := b.repository(ctx)
	if err != nil {
		return err
	}
	all := w.grouped(b, n)
	head, err := importSorted(ctx, b.store, committed, all)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(slices.Collect(all), bulkEntries) {
		if err := b.store.SetMany(ctx, staged, mainBranch, chunk); err != nil {
			return err
		}
	}
	for _, of := range []struct {
		name string
		in   catalog.Bucket
	}{{"of a commit", catalog.Bucket{Repository: committed, Ref: string(head.ID)}}, {"all committed", catalog.Bucket{Repository: committed}}, {"all uncommitted", catalog.Bucket{Repository: staged}}} {
		plain, grouped := "page, "+of.name, "page with delimiter, "+of.name
		err := b.counting(fmt.Sprintf("%s, of %d keys", grouped, n), func() error { return w.groupedPage(ctx, c, of.in) }) // also brings indexes into the cache
		if err != nil {
			return err
		}
		samples, err := measure.Alternate(ctx, b.Rounds,
			measure.Subject{Name: plain, Measure: func(ctx context.Context, round int) (float64, error) {
				return w.timePages(func(page int) error { return w.plainPage(ctx, b, c, of.in, n, round*w.Pages+page) })
			}},
			measure.Subject{Name: grouped, Measure: func(ctx context.Context, _ int) (float64, error) {
				return w.timePages(func(int) error { return w.groupedPage(ctx, c, of.in) })
			}})
		if err != nil {
			return err
		}
		b.referenceAt(plain, n, inKeys, result.Seconds, samples[0]...)
		b.metricAt(grouped, n, inKeys, result.Seconds, samples[1]...)
		b.metricAt("page with delimiter ÷ plain, "+of.name, n, inKeys, result.Slowdown, result.Ratio(samples[1], samples[0])...)
	}
	for _, repo := range []graveler.RepositoryID{committed, staged} {
		if _, err := b.verifyBranch(ctx, repo, all); err != nil {
			return err
		}
		if err := b.discard(ctx, repo); err != nil {
			return err
		}
	}
	b.checked("each page of %d keys has the %d keys or common prefixes that it must have", n, w.Page)
	return nil
}

// timePages returns the time of one page.
func (w *storing) timePages(page func(n int) error) (float64, error) {
	took, err := timed(func() error {
		for n := range w.Pages {
			if err := page(n); err != nil {
				return err
			}
		}
		return nil
	})
	return took / float64(w.Pages), err
}

func (w *storing) plainPage(ctx context.Context, b *bench, c *catalog.Catalog, in catalog.Bucket, n, page int) error {
	first := int(mix(b.Seed^uint64(page)) % uint64(n-w.Page+1))
	p := catalog.ListParams{MaxKeys: &w.Page}
	number := func(i int) string { return fmt.Sprintf("%s%08d", directoryName(i*w.Page/n), i) }
	if first > 0 {
		p.StartAfter = number(first - 1)
	}
	found, err := c.List(ctx, in, p)
	if err == nil && (len(found.Objects) != w.Page || found.Objects[0].Key != number(first) || found.Objects[w.Page-1].Key != number(first+w.Page-1)) {
		err = fmt.Errorf("%s: %w: a page of %d objects from %q on has %d", in, ErrWrong, w.Page, number(first), len(found.Objects))
	}
	return err
}

func (w *storing) groupedPage(ctx context.Context, c *catalog.Catalog, in catalog.Bucket) error {
	found, err := c.List(ctx, in, catalog.ListParams{Delimiter: "/", MaxKeys: &w.Page})
	if err != nil {
		return err
	}
	wrong := len(found.CommonPrefixes) != w.Page || len(found.Objects) > 0 || found.Truncated
	for i, prefix := range found.CommonPrefixes {
		wrong = wrong || prefix != directoryName(i)
	}
	if wrong {
		return fmt.Errorf("%s: %w: a page of %d common prefixes has %d of them and %d objects", in, ErrWrong, w.Page, len(found.CommonPrefixes), len(found.Objects))
	}
	return nil
}

// deletes compares one call that deletes many objects with a call for each.
func (w *storing) deletes(ctx context.Context, b *bench, c *catalog.Catalog) error {
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	in := catalog.Bucket{Repository: repo}
	gone, kept := b.objects("gone", w.Deletes), b.objects("kept", 1)
	ids := make([]catalog.ObjectID, w.Deletes)
	for i := range ids {
		ids[i].Key = string(gone.key(i))
	}
	subject := func(name string, remove func(ctx context.Context) error) measure.Subject {
		return measure.Subject{Name: name, Measure: func(ctx context.Context, _ int) (float64, error) {
			if err := b.store.SetMany(ctx, repo, mainBranch, slices.Collect(joined(gone.all, kept.all))); err != nil {
				return 0, err
			}
			took, err := timed(func() error { return remove(ctx) })
			if err == nil {
				_, err = b.verifyList(ctx, repo, string(mainBranch), kept.all)
			}
			return float64(w.Deletes) / took, err
		}}
	}
	samples, err := measure.Alternate(ctx, (b.Rounds+1)/2,
		subject("deletes in one call", func(ctx context.Context) error {
			deleted, err := c.DeleteMany(ctx, in, ids, false)
			for _, d := range deleted {
				if err == nil {
					err = d.Err
				}
			}
			return err
		}),
		subject("deletes one by one", func(ctx context.Context) error {
			for _, id := range ids {
				if _, err := c.Delete(ctx, in, id.Key, catalog.DeleteParams{}); err != nil {
					return err
				}
			}
			return nil
		}))
	if err != nil {
		return err
	}
	b.metricAt("deletes in one call", w.Deletes, inKeys, result.PerSecond, samples[0]...)
	b.referenceAt("deletes one by one", w.Deletes, inKeys, result.PerSecond, samples[1]...)
	b.metricAt("deletes in one call ÷ one by one", w.Deletes, inKeys, result.Speed, result.Ratio(samples[0], samples[1])...)
	b.checked("after each deletion of %d objects they are gone, and what else there was is there", w.Deletes)
	return nil
}
