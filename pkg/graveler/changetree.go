// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// ChangeTreeParams says how to change the tree of a head.
type ChangeTreeParams struct {
	CommitParams // AllowEmpty makes a commit also where nothing changes; its Prefixes must be empty
	// Op is what the branch's log and the PreCommit hook call it: OpImport or OpLifecycle. Other moves of a head are made by the
	// operations of their names.
	Op Op
	// UID is that of the branch that is meant, so that another one that was made under its name meanwhile is ErrBranchNotFound;
	// "": whichever has the name.
	UID string
}

func (p ChangeTreeParams) validate() error {
	switch {
	case len(p.Prefixes) > 0:
		return fmt.Errorf("%w: a change of a tree is no commit of a part", ErrInvalidValue)
	case !slices.Contains([]Op{OpImport, OpLifecycle}, p.Op):
		return fmt.Errorf("%w: op %d is not one of a change of a tree", ErrInvalidValue, p.Op)
	}
	return p.CommitParams.Validate()
}

// ChangeTree makes a commit whose tree is that of a branch's head with the changes that build returns (nil: none), and returns
// that commit. What is uncommitted on the branch stays, on top of it. In a change a nil Value removes its key; keys must be in
// strictly ascending order. A change that changes nothing is allowed.
//
// build is called with the tree of the head that is about to be moved; if the record of the branch is rewritten meanwhile, as
// staging does not, it is called again, and must have no effects but what it returns. So what it finds out about the branch
// elsewhere, and is only changed by those who rewrite the record too (such as by ProtectBranches), holds when the commit is made.
// The sequence is read once, after build has returned. It may read the tree as it goes; the memory of a change may be used again
// when the next one is asked for.
//
// It returns ErrNoChanges where the tree stays the same, unless AllowEmpty is set; and ErrInvalidName, ErrInvalidValue or
// ErrTooLarge, with the number of the change and its key, where a change cannot be applied. On these, and on an error of build or
// of the sequence, nothing is changed.
//
// It costs the ranges that the changes fall into, and what is uncommitted: that is folded first. Memory depends neither on the
// number of changes nor on the size of the tree.
func (g *Graveler) ChangeTree(ctx context.Context, repo RepositoryID, branch BranchID, p ChangeTreeParams, build func(ctx context.Context, t *Tree) (iter.Seq2[Entry, error], error)) (c Commit, err error) {
	defer g.observe("change-tree", time.Now(), &err)
	head, err := g.changeTree(ctx, repo, branch, p, build)
	if err != nil {
		return Commit{}, fmt.Errorf("change the tree of %s/%s: %w", repo, branch, err)
	}
	return *head.Clone(), nil
}

func (g *Graveler) changeTree(ctx context.Context, repo RepositoryID, branch BranchID, p ChangeTreeParams, build func(ctx context.Context, t *Tree) (iter.Seq2[Entry, error], error)) (*Commit, error) {
	if err := cmp.Or(p.validate(), ValidateBranchID(branch)); err != nil {
		return nil, err
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return nil, err
	}
	p.Metadata = maps.Clone(p.Metadata)
	return g.changeHead(ctx, r, branch, headMove{op: p.Op, uid: p.UID, actor: p.Committer, allowDirty: true, exact: true, build: func(head *Commit) (*Commit, error) {
		tree, err := g.changedTree(ctx, r, head.Tree, cmp.Or(p.Share, g.share), build)
		if err == nil && tree == head.Tree && !p.AllowEmpty {
			err = ErrNoChanges
		}
		if err != nil {
			return nil, err
		}
		return child(p.CommitParams, tree, head), nil
	}})
}

// changedTree returns a tree with the changes that build returns for it.
func (g *Graveler) changedTree(ctx context.Context, repo *Repository, tree MetaRangeID, share float64, build func(ctx context.Context, t *Tree) (iter.Seq2[Entry, error], error)) (MetaRangeID, error) {
	t := &Tree{g: g, repo: repo, id: tree, entries: g.trees.Scan(ctx, repo.Namespace, tree)}
	changes, err := build(ctx, t)
	if err != nil || changes == nil {
		return tree, closing(err, t.entries)
	}
	it := pull(changes)
	changed, err := g.trees.Apply(ctx, repo.Namespace, tree, pace(ctx, it, share))
	return changed, g.unlessGone(ctx, repo, closing(err, it, t.entries))
}

// Tree is the tree of a commit that is to be changed. It is used until the sequence of changes has ended: Get by one goroutine at
// a time, List by any number.
type Tree struct {
	g       *Graveler
	repo    *Repository
	id      MetaRangeID
	entries Iterator[Entry] // for Get
}

// Get returns the value of a key, nil where it has none. It costs a lookup in the tree, and next to nothing for a key that is
// soon after the one before.
func (t *Tree) Get(key Key) (*Value, error) {
	v, err := lookUp(t.entries, key)
	return v.Clone(), err
}

// List yields what o selects of the tree, by key.
func (t *Tree) List(ctx context.Context, o ListOptions) iter.Seq2[Listing, error] {
	return sequence(func(emit func(Listing) bool) error { return t.g.listTree(ctx, t.repo, t.id, o, o.limited(emit)) })
}

// pulledChanges are the changes of a sequence, checked and one by one.
type pulledChanges struct {
	next  func() (Entry, error, bool)
	stop  func()
	n     int
	entry Entry
	last  Key
	err   error
}

func pull(changes iter.Seq2[Entry, error]) *pulledChanges {
	p := &pulledChanges{}
	p.next, p.stop = iter.Pull2(changes)
	return p
}

func (p *pulledChanges) Next() bool {
	if p.err != nil {
		return false
	}
	e, err, more := p.next()
	if !more || err != nil {
		p.err = err
		return false
	}
	p.n++
	err = ValidateEntry(e)
	if err == nil && bytes.Compare(p.last, e.Key) >= 0 {
		err = fmt.Errorf("%w: it follows %s", ErrInvalidValue, printable(p.last))
	}
	if err != nil {
		p.err = fmt.Errorf("change %d, %s: %w", p.n, printable(e.Key), err)
		return false
	}
	p.entry, p.last = e, append(p.last[:0], e.Key...)
	return true
}

// SeekGE makes the iteration an error: nobody seeks among changes.
func (p *pulledChanges) SeekGE(Key) { p.err = errors.New("changes are read in order") }

func (p *pulledChanges) Item() Entry { return p.entry }
func (p *pulledChanges) Err() error  { return p.err }

// Close lets the sequence end, wherever it is.
func (p *pulledChanges) Close() error {
	p.stop()
	return p.err
}
