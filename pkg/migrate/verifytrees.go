// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// CommittedEntries is the kind of what is compared of trees that were converted: entries, wherever the tree of a commit differs
// from that of its main parent.
const CommittedEntries = "committed entries"

// verifyingTrees compares the trees of a repository that were converted with those of the source, entry by entry.
//
// Each tree is compared with that of its commit's main parent on both sides: where the lists of ranges of the source differ, the
// target must have the entries of the ranges, and nothing else; everywhere else its trees must not differ, by identity. So if the
// parent's tree is that of the source this one is, too, and nothing that did not change is read twice.
type verifyingTrees struct {
	*verifying
	treeReader
	origin *origin
	format TreeFormat
	stored *graveler.Repository
	lost   []Lost

	counts [2]int64 // entries that were compared, of source and target
	sums   [2]hash.Hash
	buf    []byte
}

// convertedTrees returns nil where the trees of a repository were not converted.
func (v *verifying) convertedTrees(ctx context.Context, o *origin, stored *graveler.Repository) (*verifyingTrees, error) {
	note, err := v.records().repository(ctx, o.id)
	if err != nil || note == nil || !note.Converted {
		return nil, err
	}
	t := &verifyingTrees{verifying: v, origin: o, stored: stored, sums: [2]hash.Hash{sha256.New(), sha256.New()}}
	t.empty, t.scan = v.emptyTree(), func(tree graveler.MetaRangeID) (graveler.Iterator[graveler.Entry], error) {
		return v.Graveler.ScanTree(ctx, stored.ID, tree)
	}
	if t.format, _, err = v.formatOfOrigin(ctx, v.source, o); err != nil {
		return nil, err
	}
	if t.trees, err = v.records().trees(ctx, stored.UID, o.history.metaranges); err != nil {
		return nil, err
	}
	t.lost, err = v.records().lostOf(ctx, stored.UID)
	return t, err
}

func (t *verifyingTrees) compare(ctx context.Context, c *comparing) error {
	c.result.Lost = t.lost
	lost := &losses{files: map[string]Lost{}}
	for _, l := range t.lost {
		lost.files[l.File] = l
		there, err := l.readable(ctx, t.format, t.origin.namespace)
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		if there {
			t.differFrom(c, l.Commit, nil, "file "+l.File+" can be read now, and was left out as lost: delete the repository in the target and run again")
		}
	}
	todo := newTreeSteps(t.format, t.origin, lost)
	todo.goOn, todo.absent = true, make([]bool, len(t.trees))
	for i, tree := range t.trees {
		todo.absent[i] = tree == "" // its commits are not in the target, which was found out
		todo.done[i] = todo.absent[i]
	}
	steps := pullSteps(ctx, todo)
	defer steps.stop()
	for {
		step, err := steps.change()
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		if step.treeChange == nil {
			break
		}
		if err := t.step(ctx, c, step, steps); err != nil {
			return err
		}
		t.advance(1, 0)
	}
	sum := func(side int) string { return hex.EncodeToString(t.sums[side].Sum(nil)) }
	c.result.Kinds = append(c.result.Kinds, VerifiedKind{CommittedEntries, t.counts[0], t.counts[1], sum(0), sum(1)})
	return nil
}

// step compares a tree. Files of either side that are missing or damaged are differences.
func (t *verifyingTrees) step(ctx context.Context, c *comparing, step treeStep, s *steps) error {
	if step.unread != nil {
		t.differFrom(c, step.commit, nil, "the source has its tree no more: "+step.unread.Error())
		return nil
	}
	err := t.one(ctx, c, step.treeChange, s)
	if !errors.Is(err, graveler.ErrCorrupt) {
		return err
	}
	t.differFrom(c, step.commit, nil, "its tree was not compared to the end: target: "+err.Error())
	return s.leave()
}

// one compares a tree where it differs from its base, and makes sure that it does not differ elsewhere.
func (t *verifyingTrees) one(ctx context.Context, c *comparing, change *treeChange, s *steps) error {
	it, err := t.scan(t.tree(change.tree))
	if err != nil {
		return err
	}
	there := within{Iterator: it}
	for _, sp := range change.spans {
		if err = t.span(c, change, s, sp, &there); err != nil {
			break
		}
	}
	if closed := it.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	for d, err := range t.Graveler.DiffTrees(ctx, t.stored.ID, t.tree(change.base), t.tree(change.tree), graveler.DiffOptions{}) {
		if err != nil {
			return err
		}
		if !inSpans(change.spans, d.Key) {
			t.differFrom(c, change.commit, d.Key, "in the target it is another than before, where the source has no change")
		}
	}
	return nil
}

// span compares what the two sides have in a span.
func (t *verifyingTrees) span(c *comparing, change *treeChange, s *steps, sp span, there *within) error {
	there.seek(sp.first, sp.last)
	extra := func(below []byte) {
		for ; there.ok && (below == nil || bytes.Compare(there.Item().Key, below) < 0); there.next() {
			t.note(1, there.Item())
			t.differFrom(c, change.commit, there.Item().Key, "it is only in the target")
		}
	}
	err := t.newEntries(s, sp, func(e graveler.Entry) error {
		extra(e.Key)
		if err := there.Err(); err != nil {
			return err
		}
		t.note(0, e)
		if !there.ok || !bytes.Equal(there.Item().Key, e.Key) {
			t.differFrom(c, change.commit, e.Key, "it is not in the target")
			return nil
		}
		t.note(1, there.Item())
		switch value := there.Item().Value; {
		case !e.Value.Same(value):
			t.differFrom(c, change.commit, e.Key, "its identity differs")
		case !alike(e.Value, value):
			t.differFrom(c, change.commit, e.Key, "its data differs")
		}
		there.next()
		return there.Err()
	}, func(r Range, reason error) error {
		extra(r.First)
		for there.ok && bytes.Compare(there.Item().Key, r.Last) <= 0 { // nobody can tell any more what they should be
			there.next()
		}
		t.differFrom(c, change.commit, r.First, fmt.Sprintf("the source has it, and what follows up to %s, no more: %v", quoted(string(r.Last)), reason))
		return there.Err()
	})
	if err == nil {
		extra(nil)
		err = there.Err()
	}
	return err
}

// differFrom notes a difference in the tree of a commit, at a key or, if that is nil, in the whole of it. The digests cannot be
// the same then, whatever was read on both sides.
func (t *verifyingTrees) differFrom(c *comparing, commit graveler.CommitID, key []byte, what string) {
	name := string(commit)
	if key != nil {
		name += ":" + string(key)
	}
	c.add(Difference{Kind: CommittedEntries, Key: name, What: what})
	t.sums[0].Write([]byte(name))
}

// note adds an entry to what is known of a side.
func (t *verifyingTrees) note(side int, e graveler.Entry) {
	t.counts[side]++
	t.buf = t.buf[:0]
	for _, part := range [][]byte{e.Key, e.Value.Identity, e.Value.Data} {
		t.buf = binary.AppendUvarint(t.buf, uint64(len(part)))
		t.buf = append(t.buf, part...)
	}
	t.sums[side].Write(t.buf)
}

func inSpans(spans []span, key []byte) bool {
	at, exact := slices.BinarySearchFunc(spans, key, func(s span, key []byte) int { return bytes.Compare(s.first, key) })
	return exact || at > 0 && bytes.Compare(key, spans[at-1].last) <= 0
}
