// SPDX-License-Identifier: Apache-2.0

package fsck

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// fileFacts is what is remembered of a file.
type fileFacts struct {
	size int64 // as it was listed
	// description is a hash of what its parent says of it. Other parents may say other things, of which at most one is right.
	description           uint64
	listed, seen, entered bool
}

// referrer is what refers to a tree.
type referrer struct {
	where Finding // Branch, Tag or Commit
	what  string
	still func(ctx context.Context) (bool, error) // whether it does now
	// of is set where it does so only as long as it is reached.
	of graveler.CommitID
}

// confirmOf is confirm for what a referrer refers to.
func (r *repository) confirmOf(ctx context.Context, by referrer, look look) error {
	if by.of == "" {
		return r.confirm(ctx, look)
	}
	found, err := twice(ctx, look)
	if err != nil {
		return err
	}
	return r.suspect(ctx, by.of, found)
}

func (r *repository) commitRefers(id graveler.CommitID) referrer {
	return referrer{
		where: Finding{Commit: id}, what: "the tree of commit " + string(id), of: id,
		still: func(ctx context.Context) (bool, error) {
			expired, err := r.expiredNow(ctx, id)
			return !expired, err
		},
	}
}

func (r *repository) branchRefers(id graveler.BranchID, what string, still func(*graveler.Branch) bool) referrer {
	return referrer{
		where: Finding{Branch: id}, what: "the " + what + " of the branch",
		still: func(ctx context.Context) (bool, error) {
			b, err := r.refs.GetBranch(ctx, r.record, id)
			return err == nil && b.State == graveler.BranchLive && still(b), unlessGone(err)
		},
	}
}

func (r *repository) tagRefers(t *graveler.Tag) referrer {
	return referrer{
		where: Finding{Tag: t.ID, Commit: t.Commit}, what: "the tree of the tag",
		still: func(ctx context.Context) (bool, error) {
			now, err := r.refs.GetTag(ctx, r.record, t.ID)
			return err == nil && now.Commit == t.Commit, unlessGone(err)
		},
	}
}

func (r *repository) pinRefers(owner string, tree graveler.MetaRangeID) referrer {
	return referrer{
		what: fmt.Sprintf("a tree that %q has pinned", owner),
		still: func(ctx context.Context) (bool, error) {
			for now, err := range r.refs.ScanPins(ctx, r.record) {
				if err != nil || now.Owner == owner {
					return slices.Contains(now.Trees, tree), unlessGone(err)
				}
			}
			return false, nil
		},
	}
}

// unlessGone makes nothing of the error that a record is not there, or does not decode, which is reported for itself.
func unlessGone(err error) error {
	if errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrCorrupt) {
		return nil
	}
	return err
}

func (r *repository) pin(ctx context.Context, p graveler.Pin) error {
	for _, tree := range p.Trees {
		if err := r.tree(ctx, tree, r.pinRefers(p.Owner, tree)); err != nil {
			return err
		}
	}
	return nil
}

func (r *repository) listFiles(ctx context.Context) error {
	for f, err := range r.trees.ListFiles(ctx, r.record.Namespace) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.unlisted = true
			return r.confirm(ctx, func(context.Context) ([]Finding, error) { return []Finding{damage(UnreadableFile, "%v", err)}, nil })
		case f.Sweep:
		case f.ID == "":
			r.foreigners.Count++
			r.foreigners.Bytes += f.Size
		default:
			r.files[digestOf(f.ID)] = fileFacts{size: f.Size, listed: true}
		}
	}
	return nil
}

func (r *repository) orphans() (f Finding) {
	for _, facts := range r.files {
		if facts.listed && !facts.seen {
			f.Count++
			f.Bytes += facts.size
		}
	}
	return f
}

// tree checks the files of a tree that have not been checked yet.
func (r *repository) tree(ctx context.Context, tree graveler.MetaRangeID, by referrer) error {
	if r.unlisted {
		return nil
	}
	var stop error
	err := r.trees.Walk(ctx, r.record.Namespace, tree, func(f graveler.TreeFile) (enter bool, err error) {
		enter, stop = r.visit(ctx, f, by)
		return enter, stop
	})
	switch {
	case stop != nil:
		return stop
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return nil
	}
	r.unwalked = true
	// What a walk enters has been checked: this is a name that no tree has, or a file that has gone since.
	return r.confirmOf(ctx, by, func(ctx context.Context) ([]Finding, error) {
		err := r.trees.Walk(ctx, r.record.Namespace, tree, func(f graveler.TreeFile) (bool, error) { return r.files[digestOf(f.ID)].entered, nil })
		return r.broken(ctx, string(tree), by, err)
	})
}

// visit checks a file, unless it was. A metarange is checked before it is entered, ranges are left to the workers.
func (r *repository) visit(ctx context.Context, f graveler.TreeFile, by referrer) (enter bool, err error) {
	key, described := digestOf(f.ID), r.describe(f)
	facts := r.files[key]
	if facts.seen && facts.description == described {
		return false, nil
	}
	if !facts.seen {
		r.counts.Files++
		r.counts.FileBytes += facts.size
	}
	facts.seen, facts.description = true, described
	switch isRange := f.Level == 0 && !f.Root; {
	case !isRange:
		whole, err := r.file(ctx, f, by)
		if err != nil {
			return false, err
		}
		r.unwalked = r.unwalked || !whole
		enter = whole && !facts.entered
		facts.entered = facts.entered || whole
	case r.options.Quick && facts.listed:
	default:
		f.First, f.Last = bytes.Clone(f.First), bytes.Clone(f.Last)
		r.workers.Go(func() error {
			_, err := r.file(ctx, f, by)
			return err
		})
	}
	r.files[key] = facts
	return enter, nil
}

func (r *repository) describe(f graveler.TreeFile) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	_, _ = h.Write(f.First) // never fails
	_, _ = h.Write(f.Last)
	maphash.WriteComparable(&h, struct {
		root           bool
		level, first   int
		entries, bytes uint64
	}{f.Root, f.Level, len(f.First), f.Entries, f.Bytes})
	return h.Sum64()
}

// file reads and checks one file.
func (r *repository) file(ctx context.Context, f graveler.TreeFile, by referrer) (whole bool, err error) {
	err = r.confirmOf(ctx, by, func(ctx context.Context) ([]Finding, error) {
		err := r.trees.CheckFile(ctx, r.record.Namespace, f)
		whole = err == nil
		return r.broken(ctx, f.ID, by, err)
	})
	return whole, err
}

// broken makes a finding of the error that reading a file gave, if the tree that the file is of is still referred to.
func (r *repository) broken(ctx context.Context, file string, by referrer, problem error) ([]Finding, error) {
	if problem == nil {
		return nil, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if still, err := by.still(ctx); !still || err != nil {
		return nil, err
	}
	kind := UnreadableFile
	switch {
	case errors.Is(problem, graveler.ErrInvalidTree):
		kind = BadTree
	case errors.Is(problem, block.ErrNotFound):
		kind = MissingFile
	case errors.Is(problem, graveler.ErrCorrupt):
		kind = BadFile
	}
	f := damage(kind, "%s: %v", by.what, problem)
	f.Branch, f.Tag, f.Commit, f.File = by.where.Branch, by.where.Tag, by.where.Commit, file
	return []Finding{f}, nil
}
