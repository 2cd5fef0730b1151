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
	// knownRanges is of how many ranges it is remembered which tree has them: some 40 MiB.
	knownRanges = 1 << 18
	// listedRanges is how many ranges the metaranges have together that are kept in memory: some 60 MiB.
	listedRanges = 1 << 18
)

// treeSteps reads the trees of a repository in the order of their commits' generations, each by how its list of ranges differs from that of the main parent's tree. A range that two lists have is in neither case looked into, and one that another tree has
// which came before is not read again; so every range is read once, however many trees have it, unless there are more than knownRanges.
type treeSteps struct {
	format    TreeFormat
	namespace string
	history   *history
	lost      *losses
	done      []bool // trees that have come, or need not come
	absent    []bool // trees that are not there to compare with; nil: all are
	known     *otter.Cache[string, int32]
	lists     *otter.Cache[int32, []Range]
}

// treeStep is a tree, or the entries of the next of its ranges that are read from the source.
type treeStep struct {
	*treeChange
	entries []graveler.Entry
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
		known: otter.Must(&otter.Options[string, int32]{MaximumSize: knownRanges, Executor: onCaller}),
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
	c := &treeChange{tree: s.history.commits[at].tree, base: s.history.treeOf(s.history.mainParent(at)), commit: s.history.id(at)}
	if c.base != noTree && s.absent != nil && s.absent[c.base] {
		c.base = noTree
	}
	before, err := s.ranges(ctx, c.base)
	if err != nil {
		return err
	}
	after, err := s.ranges(ctx, c.tree)
	if err != nil {
		return err
	}
	c.spans = spansOf(before, after)
	for i := range c.spans {
		for j := range c.spans[i].ranges {
			r := &c.spans[i].ranges[j]
			var known bool
			if r.from, known = s.known.GetIfPresent(r.ID); !known {
				r.from = noTree
			}
		}
	}
	if !emit(treeStep{treeChange: c}) {
		return nil
	}
	for _, span := range c.spans {
		for _, r := range span.ranges {
			if r.from != noTree {
				continue
			}
			entries, err := s.entries(ctx, r.Range)
			if err != nil {
				return err
			}
			if !s.lost.has(r.ID) {
				s.known.Set(r.ID, c.tree)
			}
			if !emit(treeStep{entries: entries}) {
				return nil
			}
		}
	}
	return nil
}

// ranges lists the ranges of a tree; of one that is lost there are none.
func (s *treeSteps) ranges(ctx context.Context, tree int32) ([]Range, error) {
	if tree == noTree || s.lost.has(s.history.metaranges[tree]) {
		return nil, nil
	}
	if ranges, ok := s.lists.GetIfPresent(tree); ok {
		return ranges, nil
	}
	ranges, err := s.format.Ranges(ctx, s.namespace, s.history.metaranges[tree])
	if err != nil {
		return nil, s.lost.add(ctx, s.history.metaranges[tree], err)
	}
	s.lists.Set(tree, ranges)
	return ranges, nil
}

func (s *treeSteps) entries(ctx context.Context, r Range) ([]graveler.Entry, error) {
	if s.lost.has(r.ID) {
		return nil, nil
	}
	entries, err := s.format.Entries(ctx, s.namespace, r)
	if err != nil {
		return nil, s.lost.add(ctx, r.ID, err)
	}
	return entries, nil
}

// spansOf compares two lists of ranges. Ranges of one list do not overlap, and equal ones have equal keys; so a range that both have divides what is before it from what is behind it.
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
		case len(before) > 0 && len(after) > 0 && before[0].ID == after[0].ID:
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

// losses are files of a repository's trees that are left out.
type losses struct {
	reasons map[string]string // by ID
	// note is told of another one, and returns an error where none may be lost.
	note func(ctx context.Context, id, reason string) error
}

func (l *losses) has(id string) bool {
	_, lost := l.reasons[id]
	return lost
}

// add loses a file that cannot be read, if err means that it is missing or damaged and that is allowed. Otherwise it returns err.
func (l *losses) add(ctx context.Context, id string, err error) error {
	if !errors.Is(err, graveler.ErrCorrupt) || l.note == nil {
		return err
	}
	if err := l.note(ctx, id, err.Error()); err != nil {
		return err
	}
	l.reasons[id] = err.Error()
	return nil
}
