// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"slices"
)

// Revision is what a branch is about to show because of a merge, a revert, a cherry-pick, an import, a change of its tree, a
// reset of its head or of what is uncommitted, or a deletion of a prefix: all that changes it without naming the entries, unlike
// staged writes. Hooks.Guard is asked about it. It is used by one goroutine at a time, and only until the guard returns.
type Revision struct {
	Repository RepositoryID
	Branch     BranchID
	// Before and After are what the branch shows now and then, with what is uncommitted but for what is staged while the revision
	// is made; OldHead and NewHead what its head has. All are "" where DeletesPrefix is set: DeletePrefix does not look at what
	// it removes.
	Before, After    MetaRangeID
	OldHead, NewHead MetaRangeID
	DeletesPrefix    bool

	g      *Graveler
	repo   *Repository
	relied []Key
}

// Get returns what a tree has for each of the keys, in their order; nil where a key is absent.
func (r *Revision) Get(ctx context.Context, tree MetaRangeID, keys ...Key) ([]*Value, error) {
	values := make([]*Value, len(keys))
	for i, key := range keys {
		v, err := r.g.trees.Get(ctx, r.repo.Namespace, tree, key)
		if err != nil && !errors.Is(err, ErrEntryNotFound) {
			return nil, err
		}
		values[i] = v.Clone()
	}
	return values, nil
}

// Diff yields how two of the trees differ, by key. It costs what differs.
func (r *Revision) Diff(ctx context.Context, left, right MetaRangeID) iter.Seq2[Diff, error] {
	return sequence(func(emit func(Diff) bool) error {
		return r.g.diffTrees(ctx, r.repo, left, right, DiffOptions{}, emit)
	})
}

// Setting returns a document of the repository, or ErrSettingNotFound.
func (r *Revision) Setting(ctx context.Context, name string) (Setting, error) {
	return r.g.GetSetting(ctx, r.Repository, name)
}

// Rely says that the verdict depends on what After has for a key. If something was staged for the key while the revision was
// made, and would hide that, the revision is made anew, and the guard asked again.
//
// What is staged between the last look, which is one read before the branch record is written, and that write is not noticed.
func (r *Revision) Rely(key Key) { r.relied = append(r.relied, bytes.Clone(key)) }

// errHidden: a key that a guard relies on was staged while the revision was made.
var errHidden = errors.New("staged meanwhile")

// guard asks the hook about a revision, and returns the keys that it relies on.
func (g *Graveler) guard(ctx context.Context, repo *Repository, id BranchID, r Revision) ([]Key, error) {
	if g.hooks.Guard == nil {
		return nil, nil
	}
	r.Repository, r.Branch, r.g, r.repo = repo.ID, id, g, repo
	err := g.hooks.Guard(ctx, &r)
	return r.relied, err
}

// unhidden is a plan that fails with errHidden where one of the keys was staged after the item of a number was sealed.
func (g *Graveler) unhidden(ctx context.Context, sealed uint64, keys []Key, p plan) plan {
	return func(next *Branch) (*Commit, error) {
		later := next.Clone()
		later.Items = slices.DeleteFunc(later.Items, func(i Item) bool { return i.Number <= sealed })
		v := &view{g: g, branch: later}
		for _, key := range keys {
			items, hidden := v.relevant(key)
			staged, err := v.readItems(ctx, append(items, Item{Token: next.Token}), key)
			if err != nil {
				return nil, err
			}
			if hidden || slices.ContainsFunc(staged, func(s Staged) bool { return s.Stamp != nil }) {
				return nil, errHidden
			}
		}
		return p(next)
	}
}
