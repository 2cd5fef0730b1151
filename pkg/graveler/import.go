// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// ImportParams says how to import. The zero value adds entries to what there is.
type ImportParams struct {
	CommitParams // AllowEmpty makes a commit also where nothing changes; its Prefixes must be empty
	// Prefixes, if there are any, are replaced: of the keys with one of them the branch then has those that are imported and no
	// others, and what is imported must have one of them. The empty prefix is that of every key, those that are reserved for
	// layers above included.
	Prefixes []Key
	// AllowDirty keeps uncommitted changes, on top of the result.
	AllowDirty bool
	// SortMemory bounds the memory for sorting, in bytes; 0: 64 MiB. What does not fit goes to a temporary file in the directory
	// TempDir ("": that of os.TempDir), which takes about as much room as the entries do compressed.
	SortMemory int
	TempDir    string
}

func (p ImportParams) validate() error {
	switch {
	case len(p.CommitParams.Prefixes) > 0:
		return fmt.Errorf("%w: an import is no commit of a part; the prefixes that it replaces are ImportParams.Prefixes", ErrInvalidValue)
	case p.SortMemory < 0:
		return fmt.Errorf("%w: %d bytes of memory for sorting", ErrInvalidValue, p.SortMemory)
	}
	return p.CommitParams.Validate()
}

// Import writes entries, in whatever order they come, as one commit on a branch, and returns that commit. They are never staged.
// Where a key comes twice the last one counts, as in SetMany; every entry must have a value.
//
// The sequence is read once, to its end, before anything is written but a temporary file: an error that it yields, an entry that
// is invalid, or a cancelled context leaves nothing behind. The memory of an entry may be used again when the next one is asked
// for. If the branch moves meanwhile, the import takes place on top of what it has become; if it is deleted, and even if it is
// made again, it is ErrBranchNotFound. What the import replaces or overwrites counts as it is then, so that the commit differs
// from its parent by the import and nothing else.
//
// It returns ErrDirtyBranch where the branch has uncommitted changes and they are not allowed, before the sequence is read if
// possible; ErrNoChanges where the branch has all of it already; ErrInvalidName, ErrInvalidValue or ErrTooLarge, with the number
// of the entry and its key, where an entry cannot be kept. Nothing is changed then. An error together with a commit means that
// the commit is made, but the temporary file could not be removed.
//
// It costs a sort (external, of what does not fit into SortMemory), the ranges that the imported keys fall into, and those that
// hold what is below the prefixes. A move of the branch under way costs what it changed, and the first one, without prefixes,
// also a tree of what is imported. Memory depends neither on the number of entries nor on the size of the branch.
func (g *Graveler) Import(ctx context.Context, repo RepositoryID, branch BranchID, entries iter.Seq2[Entry, error], p ImportParams) (c Commit, err error) {
	defer g.observe("import", time.Now(), &err)
	err = p.validate()
	if err == nil {
		err = ValidateBranchID(branch)
	}
	var r *Repository
	if err == nil {
		r, err = g.writable(ctx, repo)
	}
	if err != nil {
		return Commit{}, fmt.Errorf("import into %s/%s: %w", repo, branch, err)
	}
	p.Metadata = maps.Clone(p.Metadata)
	im := importing{g: g, repo: r, params: p, replaced: disjoint(p.Prefixes)}
	head, err := im.run(ctx, branch, entries)
	if head != nil {
		c = *head.Clone()
	}
	if err != nil {
		return c, fmt.Errorf("import into %s/%s: %w", repo, branch, err)
	}
	return c, nil
}

// importing is one import under way.
type importing struct {
	g        *Graveler
	repo     *Repository
	params   ImportParams
	replaced []Key // prefixes, in order, none of which starts with another
	uid      string
	entries  *importSort // all that are imported; read from the start for every tree that is made of them

	tree MetaRangeID // of the imported entries alone, "" while it was not needed
	// result is what the tree head became by the import; "" while there was none.
	head, result MetaRangeID
	began        time.Time // when the first of these trees was begun to be made
}

func (im *importing) run(ctx context.Context, branch BranchID, entries iter.Seq2[Entry, error]) (head *Commit, err error) {
	if err := im.look(ctx, branch); err != nil {
		return nil, err
	}
	im.entries = newImportSort(im.params, im.replaced)
	defer func() {
		if closed := im.entries.Close(); closed != nil && err == nil {
			err = fmt.Errorf("commit %s is made, but a temporary file is left behind: %w", head.ID, closed)
		}
	}()
	if err := im.entries.read(ctx, entries); err != nil {
		return nil, err
	}
	if err := im.prepare(ctx, branch); err != nil {
		return nil, err
	}
	p := im.params
	return im.g.changeHead(ctx, im.repo, branch, headMove{op: OpImport, uid: im.uid, actor: p.Committer, allowDirty: p.AllowDirty, build: func(head *Commit) (*Commit, error) {
		im.forgetOld()
		tree, err := im.onto(ctx, head.Tree)
		if err == nil && tree == head.Tree && !p.AllowEmpty {
			err = ErrNoChanges
		}
		if err != nil {
			return nil, err
		}
		return child(p.CommitParams, tree, head), nil
	}})
}

// look finds out before any work is done whether the branch could take the import. What counts is what it is like afterwards.
func (im *importing) look(ctx context.Context, branch BranchID) error {
	b, err := im.g.liveBranch(ctx, im.repo, branch)
	if err == nil {
		im.uid, err = b.UID, b.allow(ActionMove)
	}
	if err != nil || im.params.AllowDirty {
		return err
	}
	dirty, err := im.g.isDirty(ctx, im.repo.ID, branch)
	if err == nil && dirty {
		err = ErrDirtyBranch
	}
	return err
}

// prepare makes the tree of the import onto the head that there is now, which takes long, so that the move of the head, which
// others may be before, does not.
func (im *importing) prepare(ctx context.Context, branch BranchID) error {
	b, err := im.g.liveBranch(ctx, im.repo, branch)
	if err == nil && b.UID != im.uid {
		err = fmt.Errorf("%w: it was deleted and created again", ErrBranchNotFound)
	}
	if err != nil {
		return err
	}
	head, err := im.g.referred(ctx, im.repo, b.Head)
	if err == nil {
		im.began = im.g.now()
		_, err = im.onto(ctx, head.Tree)
	}
	if errors.Is(err, ErrSwept) {
		im.result = "" // it is made anew with the move
		err = nil
	}
	return err
}

// forgetOld has trees made again that were made so long ago that their files may come of age before they are published (see
// FileGrace): half of that is for one attempt, and a quarter for files that were found in place.
func (im *importing) forgetOld() {
	if im.g.elapsed(im.began) > FileGrace/8 {
		im.tree, im.head, im.result, im.began = "", "", "", im.g.now()
	}
}

// onto returns what a tree becomes by the import. The first time that follows from the imported entries; after that, from what
// has changed in the branch since and the import leaves alone: thus an import that takes long is not overtaken again and again by
// commits that do not.
func (im *importing) onto(ctx context.Context, head MetaRangeID) (MetaRangeID, error) {
	if im.result != "" && im.head == head {
		return im.result, nil
	}
	from, changesOf := im.result, im.others
	if from == "" {
		from, changesOf = im.below(head), im.changes
	}
	changes, err := changesOf(ctx, head)
	if err != nil {
		return "", err
	}
	tree, err := im.apply(ctx, from, changes)
	if err == nil {
		im.head, im.result = head, tree
	}
	return tree, err
}

// below returns the part of a tree that an import may leave anything of: all of it, or nothing.
func (im *importing) below(head MetaRangeID) MetaRangeID {
	if len(im.replaced) > 0 && len(im.replaced[0]) == 0 {
		return im.g.trees.EmptyTree()
	}
	return head
}

// changes iterates over what the import changes in a tree. The entries come from the sort, not from a tree of their own: that
// would be made, written and synced only to be read again.
func (im *importing) changes(ctx context.Context, head MetaRangeID) (Iterator[Entry], error) {
	sorted, err := im.entries.sorted(ctx)
	if err != nil {
		return nil, err
	}
	trees, from := im.g.trees, im.below(head)
	if len(im.replaced) == 0 || from == trees.EmptyTree() {
		return sorted, nil
	}
	gone := newPart(trees.Diff(ctx, im.repo.Namespace, from, trees.EmptyTree()), im.replaced...)
	return &merged{layers: []*layer{{entries: sorted}, {entries: gone}}, tombstones: true}, nil
}

// apply applies changes, and closes them.
func (im *importing) apply(ctx context.Context, tree MetaRangeID, changes Iterator[Entry]) (MetaRangeID, error) {
	tree, err := im.g.trees.Apply(ctx, im.repo.Namespace, tree, changes)
	return tree, im.g.unlessGone(ctx, im.repo, closing(err, changes))
}

// others iterates over what has changed in the branch since the last result, but for the keys that the import decides about.
// Where these are the imported ones, their tree is made the first time, since it tells them apart at the cost of the changes,
// however many were imported.
func (im *importing) others(ctx context.Context, head MetaRangeID) (Iterator[Entry], error) {
	trees, ns := im.g.trees, im.repo.Namespace
	if len(im.replaced) == 0 && im.tree == "" {
		sorted, err := im.entries.sorted(ctx)
		if err != nil {
			return nil, err
		}
		if im.tree, err = im.apply(ctx, trees.EmptyTree(), sorted); err != nil {
			return nil, err
		}
	}
	o := &otherChanges{rightSides: rightSides{trees.Diff(ctx, ns, im.head, head)}, replaced: im.replaced}
	if len(im.replaced) == 0 {
		o.imported = trees.Scan(ctx, ns, im.tree)
	}
	return o, nil
}

// otherChanges are changes of keys that an import leaves alone.
type otherChanges struct {
	rightSides
	replaced []Key           // prefixes of the keys that the import decides about, or, where there are none,
	imported Iterator[Entry] // those keys themselves
	err      error
}

func (o *otherChanges) Next() bool {
	for o.err == nil && o.rightSides.Next() {
		key := o.Item().Key
		if o.imported != nil {
			var v *Value
			if v, o.err = lookUp(o.imported, key); v == nil {
				return o.err == nil
			}
			continue
		}
		prefix, covered := covering(o.replaced, key)
		if !covered {
			return true
		}
		past := prefixEnd(prefix)
		if past == nil {
			return false
		}
		o.SeekGE(past)
	}
	if o.err == nil {
		o.err = o.rightSides.Err()
	}
	return false
}

func (o *otherChanges) Err() error { return o.err }

func (o *otherChanges) Close() error {
	if o.imported == nil {
		return closing(o.err, o.rightSides)
	}
	return closing(o.err, o.rightSides, o.imported)
}

// covering returns the one of the disjoint, ordered prefixes that a key has, if there is one. It is the greatest that is not
// greater than the key, since all that is between a prefix and a key that has it has it too.
func covering(prefixes []Key, key Key) (Key, bool) {
	i, found := slices.BinarySearchFunc(prefixes, key, func(p, key Key) int { return bytes.Compare(p, key) })
	if !found {
		i--
	}
	if i < 0 || !bytes.HasPrefix(key, prefixes[i]) {
		return nil, false
	}
	return prefixes[i], true
}
