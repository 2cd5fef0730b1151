// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/maypok86/otter/v2"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// noTree stands for the tree without entries in the place of that of a metarange.
const noTree = -1

const (
	// knownRanges is of how many ranges it is remembered which tree has them: some 80 MiB.
	knownRanges = 1 << 18
	// listedRanges is how many ranges the metaranges have together that are kept in memory: some 60 MiB.
	listedRanges = 1 << 18
)

// treeSteps reads the trees of a repository in the order of their commits' generations, each by how its list of ranges differs
// from that of the main parent's tree. A range that two lists have is in neither case looked into, and one that another tree has
// which came before is not read again, if their metaranges say the same of it; so every range is read once, however many trees
// have it, unless there are more than knownRanges.
type treeSteps struct {
	format    TreeFormat
	namespace string
	history   *history
	lost      *losses
	done      []bool // trees that have come, or need not come
	absent    []bool // trees that are not there to compare with; nil: all are
	known     *otter.Cache[string, knownRange]
	lists     *otter.Cache[int32, []Range]
	// goOn has files that are missing or damaged come as steps, not as the error that ends them.
	goOn bool
}

// knownRange is a range that a tree has, with all of its entries.
type knownRange struct {
	Range
	tree int32
}

// treeStep is a tree, or the entries of the next of its ranges that are read from the source.
type treeStep struct {
	*treeChange
	entries []graveler.Entry
	unread  error // why the file of the tree, or of the range, could not be read
}

// treeChange is a tree by how it differs from another, which came before it. Both are places of metaranges.
type treeChange struct {
	tree, base int32
	commit     graveler.CommitID // the first one that shows it
	spans      []span
}

// span is an interval of keys in which the two trees have no range in common. Spans do not touch each other.
type span struct {
	first, last []byte
	ranges      []changedRange // that the tree has there
}

type changedRange struct {
	Range
	from int32 // the tree that it is taken from; noTree: it is read
}

func newTreeSteps(format TreeFormat, o *origin, lost *losses) *treeSteps {
	onCaller := func(fn func()) { fn() }
	return &treeSteps{
		format: format, namespace: o.namespace, history: o.history, lost: lost, done: make([]bool, len(o.history.metaranges)),
		known: otter.Must(&otter.Options[string, knownRange]{MaximumSize: knownRanges, Executor: onCaller}),
		lists: otter.Must(&otter.Options[int32, []Range]{
			MaximumWeight: listedRanges, Executor: onCaller, Weigher: func(_ int32, ranges []Range) uint32 { return uint32(1 + len(ranges)) },
		}),
	}
}

// all yields every tree that is not done, and behind it the entries of those of its ranges that are read, in order. They are whoever gets them's.
func (s *treeSteps) all(ctx context.Context) iter.Seq2[treeStep, error] {
	return func(yield func(treeStep, error) bool) {
		for _, at := range s.history.byGeneration() {
			tree := s.history.commits[at].tree
			if tree == noTree || s.done[tree] {
				continue
			}
			s.done[tree] = true
			more := true
			err := s.one(ctx, at, func(step treeStep) bool {
				more = yield(step, nil)
				return more
			})
			if !more {
				return
			}
			if err != nil {
				yield(treeStep{}, fmt.Errorf("tree of commit %s: %w", s.history.id(at), err))
				return
			}
		}
	}
}

func (s *treeSteps) one(ctx context.Context, at int32, emit func(treeStep) bool) error {
	c := &treeChange{tree: s.history.commits[at].tree, commit: s.history.id(at)}
	var before []Range
	var err error
	if c.base, before, err = s.baseOf(ctx, at); err != nil {
		return err
	}
	after, err := s.ranges(ctx, c)
	if s.mayGoOn(err) {
		emit(treeStep{treeChange: c, unread: err})
		return nil
	}
	if err != nil {
		return err
	}
	c.spans = spansOf(before, after)
	for i := range c.spans {
		for j := range c.spans[i].ranges {
			r := &c.spans[i].ranges[j]
			r.from = noTree
			if known, ok := s.known.GetIfPresent(r.ID); ok && known.same(r.Range) {
				r.from = known.tree
			}
		}
	}
	if !emit(treeStep{treeChange: c}) {
		return nil
	}
	for _, r := range c.toRead() {
		entries, err := s.entries(ctx, c, r)
		step := treeStep{entries: entries}
		if s.mayGoOn(err) {
			step.unread, err = err, nil
		}
		if err != nil {
			return err
		}
		if step.unread == nil && !s.lost.has(r.ID) {
			s.known.Set(r.ID, knownRange{r, c.tree})
		}
		if !emit(step) {
			return nil
		}
	}
	return nil
}

// mayGoOn reports whether an error says no more than that a file is missing or damaged, where that is to be told of each.
func (s *treeSteps) mayGoOn(err error) bool { return s.goOn && errors.Is(err, graveler.ErrCorrupt) }

// toRead returns the ranges that are read from the source.
func (c *treeChange) toRead() (ranges []Range) {
	for _, span := range c.spans {
		for _, r := range span.ranges {
			if r.from == noTree {
				ranges = append(ranges, r.Range)
			}
		}
	}
	return ranges
}

// baseOf returns the tree that a commit's tree is compared with, and its ranges: that of the main parent, or the one without
// entries, where the parent's is absent, or nobody can tell any more which ranges it has.
func (s *treeSteps) baseOf(ctx context.Context, commit int32) (int32, []Range, error) {
	base := s.history.treeOf(s.history.mainParent(commit))
	if base == noTree || s.absent != nil && s.absent[base] || s.lost.has(s.history.metaranges[base]) {
		return noTree, nil, nil
	}
	ranges, err := s.list(ctx, base)
	if errors.Is(err, graveler.ErrCorrupt) {
		return noTree, nil, nil
	}
	return base, ranges, err
}

// ranges lists the ranges of a tree; of one that is lost there are none.
func (s *treeSteps) ranges(ctx context.Context, c *treeChange) ([]Range, error) {
	id := s.history.metaranges[c.tree]
	if s.lost.has(id) {
		return nil, nil
	}
	ranges, err := s.list(ctx, c.tree)
	if err != nil {
		return nil, s.lost.add(ctx, Lost{File: id, Commit: c.commit}, err)
	}
	return ranges, nil
}

func (s *treeSteps) list(ctx context.Context, tree int32) ([]Range, error) {
	if ranges, ok := s.lists.GetIfPresent(tree); ok {
		return ranges, nil
	}
	ranges, err := s.format.Ranges(ctx, s.namespace, s.history.metaranges[tree])
	if err == nil {
		s.lists.Set(tree, ranges)
	}
	return ranges, err
}

func (s *treeSteps) entries(ctx context.Context, c *treeChange, r Range) ([]graveler.Entry, error) {
	if s.lost.has(r.ID) {
		return nil, nil
	}
	entries, err := s.format.Entries(ctx, s.namespace, r)
	if err != nil {
		return nil, s.lost.add(ctx, Lost{File: r.ID, Commit: c.commit, Entries: r.Count, First: r.First, Last: r.Last}, err)
	}
	return entries, nil
}

// recall remembers which ranges the trees have that are done, so that a file which has gone since is not lost to other trees.
func (s *treeSteps) recall(ctx context.Context) error {
	for at, done := range s.done {
		tree := int32(at)
		if !done || s.lost.has(s.history.metaranges[tree]) {
			continue
		}
		ranges, err := s.list(ctx, tree)
		if err != nil && !errors.Is(err, graveler.ErrCorrupt) {
			return err
		}
		for _, r := range ranges {
			if !s.lost.has(r.ID) {
				s.known.Set(r.ID, knownRange{r, tree})
			}
		}
	}
	return nil
}

// spansOf compares two lists of ranges. Ranges of one list do not overlap, and equal ones have equal keys; so a range that both
// have divides what is before it from what is behind it.
func spansOf(before, after []Range) (spans []span) {
	add := func(r Range, isNew bool) {
		if n := len(spans); n == 0 || bytes.Compare(spans[n-1].last, r.First) < 0 {
			spans = append(spans, span{first: r.First})
		}
		s := &spans[len(spans)-1]
		if bytes.Compare(s.first, r.First) > 0 {
			s.first = r.First
		}
		if bytes.Compare(s.last, r.Last) < 0 {
			s.last = r.Last
		}
		if isNew {
			s.ranges = append(s.ranges, changedRange{Range: r})
		}
	}
	for len(before) > 0 || len(after) > 0 {
		switch {
		case len(before) > 0 && len(after) > 0 && before[0].same(after[0]):
			before, after = before[1:], after[1:]
		case len(after) == 0 || len(before) > 0 && bytes.Compare(before[0].First, after[0].First) <= 0:
			add(before[0], false)
			before = before[1:]
		default:
			add(after[0], true)
			after = after[1:]
		}
	}
	return spans
}
