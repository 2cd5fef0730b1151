// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// ImportParams says how to import. The zero value adds entries to what there is.
type ImportParams struct {
	CommitParams // AllowEmpty makes a commit also where nothing changes; its Prefixes must be empty
	// Prefixes, if there are any, are replaced: of the keys with one of them the branch then has those that are imported and no others, and what is imported must have one of them. The empty prefix
	// is that of every key, those that are reserved for layers above included.
	Prefixes []Key
	// AllowDirty keeps uncommitted changes, on top of the result.
	AllowDirty bool
	// SortMemory bounds the memory for sorting, in bytes; 0: 64 MiB. What does not fit goes to a temporary file in the directory TempDir ("": that of os.TempDir), which takes about as much room as the entries do compressed.
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

// Import writes entries, in whatever order they come, as one commit on a branch, and returns that commit. They are never staged. Where a key comes twice the last one counts, as in SetMany; every entry must have a value.
//
// The sequence is read once, to its end, before anything is written but a temporary file: an error that it yields, an entry that is invalid, or a cancelled context leaves nothing behind. The memory of an
// entry may be used again when the next one is asked for. If the branch moves meanwhile, the import takes place on top of what it has become; if it is deleted, and even if it is made again, it is ErrBranchNotFound. What the import replaces or overwrites counts as it is then, so
// that the commit differs from its parent by the import and nothing else.
//
// It returns ErrDirtyBranch where the branch has uncommitted changes and they are not allowed, before the sequence is read if possible; ErrNoChanges where the branch has all of it already; ErrInvalidName, ErrInvalidValue or
// ErrTooLarge, with the number of the entry and its key, where an entry cannot be kept. Nothing is changed then.
//
// It costs a sort (external, of what does not fit into SortMemory), a tree of what is imported, and what that tree differs in from the branch below the prefixes; without prefixes, the ranges that its keys fall into. A move of the
// branch under way costs what it changed. Memory depends neither on the number of entries nor on the size of the branch.
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
	if err != nil {
		return Commit{}, fmt.Errorf("import into %s/%s: %w", repo, branch, err)
	}
	return *head.Clone(), nil
}

// importing is one import under way.
type importing struct {
	g        *Graveler
	repo     *Repository
	params   ImportParams
	replaced []Key // prefixes, in order, none of which starts with another

	tree  MetaRangeID // of the imported entries alone
	began time.Time   // when that was begun to be made
	// result is what the tree head became by the import; "" while there was none.
	head, result MetaRangeID
}

func (im *importing) run(ctx context.Context, branch BranchID, entries iter.Seq2[Entry, error]) (*Commit, error) {
	b, err := im.look(ctx, branch)
	if err != nil {
		return nil, err
	}
	if err := im.collect(ctx, entries); err != nil {
		return nil, err
	}
	p := im.params
	return im.g.changeHead(ctx, im.repo, branch, headMove{op: OpImport, uid: b.UID, actor: p.Committer, allowDirty: p.AllowDirty, build: func(head *Commit) (*Commit, error) {
		if age := im.g.now().Sub(im.began); age > FileGrace/8 { // the rest is for this attempt, and for clocks that differ
			return nil, fmt.Errorf("%w: the import has been under way for %s, import again", ErrSwept, age.Round(time.Second))
		}
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
func (im *importing) look(ctx context.Context, branch BranchID) (*Branch, error) {
	b, err := im.g.liveBranch(ctx, im.repo, branch)
	if err == nil {
		err = b.allow(ActionMove)
	}
	if err != nil || im.params.AllowDirty {
		return b, err
	}
	dirty, err := im.g.isDirty(ctx, im.repo.ID, branch)
	if err == nil && dirty {
		err = ErrDirtyBranch
	}
	return b, err
}

// collect reads and sorts the entries and makes their tree.
func (im *importing) collect(ctx context.Context, entries iter.Seq2[Entry, error]) (err error) {
	in := newImportSort(im.params, im.replaced)
	defer func() { err = closing(err, in) }()
	if err := in.read(ctx, entries); err != nil {
		return err
	}
	sorted, err := in.sorted(ctx)
	if err == nil {
		im.began = im.g.now()
		im.tree, err = im.apply(ctx, im.g.trees.EmptyTree(), sorted)
	}
	return err
}

// onto returns what a tree becomes by the import. The first time that follows from the imported entries; after that, from what has changed in the branch since and the import leaves alone: thus an
// import that takes long is not overtaken again and again by commits that do not.
func (im *importing) onto(ctx context.Context, head MetaRangeID) (tree MetaRangeID, err error) {
	ns, trees := im.repo.Namespace, im.g.trees
	switch {
	case im.result != "":
		tree, err = im.apply(ctx, im.result, im.others(ctx, head))
	case head == trees.EmptyTree() || len(im.replaced) > 0 && len(im.replaced[0]) == 0: // nothing else is left
		tree = im.tree
	case len(im.replaced) > 0:
		tree, err = im.apply(ctx, head, newPart(trees.Diff(ctx, ns, head, im.tree), im.replaced...))
	default:
		tree, err = im.apply(ctx, head, trees.Scan(ctx, ns, im.tree))
	}
	if err == nil {
		im.head, im.result = head, tree
	}
	return tree, err
}

// apply applies changes, and closes them.
func (im *importing) apply(ctx context.Context, tree MetaRangeID, changes Iterator[Entry]) (MetaRangeID, error) {
	tree, err := im.g.trees.Apply(ctx, im.repo.Namespace, tree, changes)
	return tree, im.g.unlessGone(ctx, im.repo, closing(err, changes))
}

// others iterates over what has changed in the branch since the last result, but for the keys that the import decides about.
func (im *importing) others(ctx context.Context, head MetaRangeID) *otherChanges {
	trees, ns := im.g.trees, im.repo.Namespace
	o := &otherChanges{rightSides: rightSides{trees.Diff(ctx, ns, im.head, head)}, replaced: im.replaced}
	if len(im.replaced) == 0 {
		o.imported = trees.Scan(ctx, ns, im.tree)
	}
	return o
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

// covering returns the one of the disjoint, ordered prefixes that a key has, if there is one. It is the greatest that is not greater than the key, since all that is between a prefix and a key that has it has it too.
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
