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
	"github.com/moraine-store/moraine/pkg/graveler"
)

// importCommit imports entries as one commit, from what text names. It returns "" where nothing changed.
func (a *app) importCommit(ctx context.Context, s *moraine.Store, at address, f importFlags, from string, entries iter.Seq2[graveler.Entry, error]) (graveler.CommitID, error) {
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

// replaced returns the prefixes of what an import below a prefix replaces: for the empty prefix those of all keys but the reserved ones, which belong to layers above.
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
