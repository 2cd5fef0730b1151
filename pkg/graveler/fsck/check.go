// SPDX-License-Identifier: Apache-2.0

package fsck

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Checker checks a store. It holds nothing but its parts and is safe for concurrent use.
type Checker struct {
	refs    *ref.Store
	staging *staging.Store
	trees   graveler.Trees
}

// ErrNoKV: what was asked for looks at records as they lie in a key/value store, and this store has none.
var ErrNoKV = errors.New("not available: the store keeps its records in something else than a key/value store")

// New returns a Checker of the store that has its records in the given engine; nil stands for a store that has none, and then
// Check yields [ErrNoKV]. Both stay the caller's to close.
func New(store kv.Store, trees graveler.Trees) *Checker {
	if store == nil {
		return &Checker{trees: trees}
	}
	return &Checker{refs: ref.New(store), staging: staging.New(store), trees: trees}
}

// Options says what to check. The zero value checks everything.
type Options struct {
	// Repositories are the only ones to check, if there are any. What belongs to no repository is not checked then.
	Repositories []graveler.RepositoryID
	// Quick only makes sure that ranges are there, and reads none. Metaranges and records are checked all the same.
	Quick bool
	// Parallel is how many files are read at a time; 0: 4.
	Parallel int
}

const defaultParallel = 4

// Check yields what is wrong with the store, and what is worth knowing of it, as it is found. It reads every record and, unless
// Options.Quick is set, every file of a tree once. An error is the last thing that it yields, and means that the rest was not
// checked: graveler.ErrRepositoryNotFound or ErrInvalidName for a repository that was named, or that the key/value store did not
// answer. Where counts is not nil it is set, and must not be looked at before the iteration has ended. Leaving the loop ends the
// check; no goroutine outlives it.
func (c *Checker) Check(ctx context.Context, o Options, counts *Counts) iter.Seq2[Finding, error] {
	if o.Parallel <= 0 {
		o.Parallel = defaultParallel
	}
	return func(yield func(Finding, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		k := &check{Checker: c, options: o, findings: make(chan Finding), tokens: map[digest]digest{}}
		ended := make(chan error, 1)
		go func() {
			ended <- k.run(ctx)
			close(k.findings)
		}()
		damages, notes := 0, 0
		defer func() {
			cancel()
			for range k.findings { // until the goroutine has ended
			}
			if counts != nil {
				*counts = k.counts
				counts.Damages, counts.Notes = damages, notes
			}
		}()
		for f := range k.findings {
			if f.Severity == Damage {
				damages++
			} else {
				notes++
			}
			if !yield(f, nil) {
				return
			}
		}
		if err := <-ended; err != nil {
			yield(Finding{}, fmt.Errorf("check: %w", err))
		}
	}
}

// check is one run.
type check struct {
	*Checker
	options  Options
	findings chan Finding
	counts   Counts
	tokens   map[digest]digest // which branch lists a token
}

// digest stands for an ID or a name where many have to be remembered.
type digest [16]byte

func digestOf[T ~string](s T) digest {
	sum := sha256.Sum256([]byte(s))
	return digest(sum[:16])
}

func (k *check) run(ctx context.Context) error {
	if k.refs == nil {
		return ErrNoKV
	}
	if len(k.options.Repositories) > 0 {
		return k.namedRepositories(ctx)
	}
	for s, err := range k.refs.ScanStored(ctx, ref.RepositoriesPartition, "") {
		if err == nil {
			err = k.repositoryRecord(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	if err := k.cleanups(ctx); err != nil {
		return err
	}
	return k.watermark(ctx)
}

func (k *check) namedRepositories(ctx context.Context) error {
	var records []ref.Stored
	for _, id := range slices.Compact(slices.Sorted(slices.Values(k.options.Repositories))) {
		if err := graveler.ValidateRepositoryID(id); err != nil {
			return err
		}
		s, err := k.refs.GetStored(ctx, ref.RepositoriesPartition, ref.RepositoryKey(id))
		if errors.Is(err, graveler.ErrNotFound) {
			err = fmt.Errorf("repository %s: %w", id, graveler.ErrRepositoryNotFound)
		}
		if err != nil {
			return err
		}
		records = append(records, s)
	}
	for _, s := range records {
		if err := k.repositoryRecord(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (k *check) repositoryRecord(ctx context.Context, s ref.Stored) error {
	record, ok := s.Record.(*graveler.Repository)
	switch {
	case s.Problem != nil:
		return k.confirm(ctx, k.badRecord(ref.RepositoriesPartition, s.Key))
	case !ok:
		return k.report(ctx, Finding{Kind: ForeignRecords, Severity: Note, Partition: ref.RepositoriesPartition, Key: string(s.Key), Count: 1, What: fmt.Sprintf("key %q is not of this program", s.Key)})
	}
	k.counts.Repositories++
	note := Finding{Kind: Unfinished, Severity: Note, Repository: record.ID}
	switch record.State {
	case graveler.RepositoryCreating:
		note.What = "the creation of the repository, begun at " + record.CreatedAt.Format(time.RFC3339) + ", has not finished"
		return k.report(ctx, note)
	case graveler.RepositoryInDeletion:
		note.What = "the deletion of the repository has not finished"
		return k.report(ctx, note)
	}
	return k.repository(ctx, record)
}

func (k *check) cleanups(ctx context.Context) error {
	for s, err := range k.refs.ScanStored(ctx, ref.CleanupsPartition, "") {
		switch {
		case err != nil:
			return err
		case s.Problem == nil:
			k.counts.PartitionsWaiting++
			continue
		}
		if err := k.confirm(ctx, k.badRecord(ref.CleanupsPartition, s.Key)); err != nil {
			return err
		}
	}
	return nil
}

func (k *check) watermark(ctx context.Context) error {
	return k.confirm(ctx, func(ctx context.Context) ([]Finding, error) {
		_, err := k.refs.Watermark(ctx)
		if errors.Is(err, graveler.ErrCorrupt) {
			return []Finding{{Kind: BadRecord, Severity: Damage, What: err.Error()}}, nil
		}
		return nil, err
	})
}

// look reads something and says what is wrong with it.
type look func(ctx context.Context) ([]Finding, error)

// badRecord looks at a record that did not decode.
func (k *check) badRecord(partition string, key []byte) look {
	return func(ctx context.Context) ([]Finding, error) {
		s, err := k.refs.GetStored(ctx, partition, key)
		if errors.Is(err, graveler.ErrNotFound) || err == nil && s.Problem == nil {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return []Finding{{Kind: BadRecord, Severity: Damage, Partition: partition, Key: string(key), What: s.Problem.Error()}}, nil
	}
}

// again makes a look of a record: at what was scanned, and then at what is stored. That it has gone is nothing to report, nor
// that it decodes no more, which the scan of it will.
func again[T any](scanned T, read func(context.Context) (T, error), what func(context.Context, T) ([]Finding, error)) look {
	first := true
	return func(ctx context.Context) ([]Finding, error) {
		record := scanned
		if !first {
			var err error
			record, err = read(ctx)
			if errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrCorrupt) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
		}
		first = false
		return what(ctx, record)
	}
}

// twice returns what a look finds two times in a row.
func twice(ctx context.Context, look look) ([]Finding, error) {
	first, err := look(ctx)
	if err != nil || len(first) == 0 {
		return nil, err
	}
	second, err := look(ctx)
	return slices.DeleteFunc(second, func(f Finding) bool { return !slices.Contains(first, f) }), err
}

func (k *check) confirm(ctx context.Context, look look) error {
	found, err := twice(ctx, look)
	if err != nil {
		return err
	}
	return k.report(ctx, found...)
}

func (k *check) report(ctx context.Context, found ...Finding) error {
	for _, f := range found {
		select {
		case k.findings <- f:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
