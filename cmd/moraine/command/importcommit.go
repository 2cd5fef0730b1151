// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/cmd/moraine/internal/fileimport"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// importCommit imports entries as one commit, from what text names. It returns "" where nothing changed.
func (a *app) importCommit(ctx context.Context, s *moraine.Store, at address, f importFlags, from string, entries iter.Seq2[graveler.Entry, error]) (graveler.CommitID, error) {
	check := func() error { return checkVersions(ctx, s, at, f) }
	if err := check(); err != nil {
		return "", fmt.Errorf("import %s: %w", from, err)
	}
	entries = checkedAtEnd(entries, check)
	p := graveler.ImportParams{CommitParams: f.params, AllowDirty: f.allowDirty}
	if p.Message == "" {
		p.Message = "Import " + from
	}
	if f.replace {
		p.Prefixes, entries = replaced(at.key), notEmpty(entries, at)
	}
	c, err := s.Import(ctx, at.repo, at.branch(), entries, p)
	if errors.Is(err, graveler.ErrNoChanges) {
		a.note("nothing changed: no commit was made")
		return "", nil
	}
	return c.ID, unmoved(err, "", "")
}

// checkVersions refuses to import where that would destroy versions, or overlook locks: an import writes entries as they are, in
// the place of those that there were.
func checkVersions(ctx context.Context, s *moraine.Store, at address, f importFlags) error {
	c, err := objectsOf(s)
	if err != nil {
		return err
	}
	versioning, err := c.Versioning(ctx, at.repo)
	if err != nil || versioning == catalog.VersioningOff {
		return err
	}
	switch _, err = c.ObjectLock(ctx, at.repo); {
	case err == nil:
		return fmt.Errorf("%w: repository %s has object lock, and an import would overwrite what is locked", catalog.InvalidBucketState, at.repo)
	case !errors.Is(err, catalog.ObjectLockConfigurationNotFoundError):
		return err
	case !f.withoutVersions:
		err := fmt.Errorf("%w: repository %s keeps versions, and an import would keep none of what it replaces", catalog.InvalidBucketState, at.repo)
		return hinted{err, "'moraine put' keeps them; --without-versions imports all the same"}
	}
	return nil
}

// checkedAtEnd checks once more when all entries have been read, which may take hours.
func checkedAtEnd(entries iter.Seq2[graveler.Entry, error], check func() error) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		for e, err := range entries {
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := check(); err != nil {
			yield(graveler.Entry{}, err)
		}
	}
}

// replaced returns the prefixes of what an import below a prefix replaces: for the empty prefix those of all keys but the
// reserved ones, which belong to layers above.
func replaced(prefix graveler.Key) (prefixes []graveler.Key) {
	if len(prefix) > 0 {
		return []graveler.Key{prefix}
	}
	for first := 1; first <= math.MaxUint8; first++ {
		prefixes = append(prefixes, graveler.Key{byte(first)})
	}
	return prefixes
}

// notEmpty makes it an error that there are no entries: a disk that is not mounted, or a program that failed, must not remove everything.
func notEmpty(entries iter.Seq2[graveler.Entry, error], at address) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		empty := true
		for e, err := range entries {
			empty = false
			if !yield(e, err) {
				return
			}
		}
		if empty {
			problem := usageError{fmt.Sprintf("there is nothing to import, and --replace would remove everything below %s/%s:%s", at.repo, at.ref, escape(at.key))}
			yield(graveler.Entry{}, hinted{problem, "'moraine rm REPO/BRANCH:PREFIX --recursive' does that"})
		}
	}
}

// errTaken ends a walk whose entries nobody wants any more.
var errTaken = errors.New("the import has ended")

// replace makes what is below the prefix equal to the directory.
func (i *importing) replace(ctx context.Context, f importFlags) error {
	entries := func(yield func(graveler.Entry, error) bool) {
		err := i.walk(ctx, func(_ context.Context, batch []graveler.Entry) error {
			for _, e := range batch {
				if !yield(e, nil) {
					return errTaken
				}
			}
			return nil
		})
		if errors.Is(err, fileimport.ErrIncomplete) {
			err = hinted{fmt.Errorf("%w: nothing was changed", err), "make them readable and run it again"}
		}
		if err != nil && !errors.Is(err, errTaken) {
			yield(graveler.Entry{}, err)
		}
	}
	id, err := i.app.importCommit(ctx, i.store, i.at, f, escape(i.dir), entries)
	if err != nil {
		return err
	}
	return i.print(id)
}
