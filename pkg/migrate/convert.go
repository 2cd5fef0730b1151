// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// The notes that say what trees became are written in batches of so many, or as often.
const (
	notedTrees = 128
	noteEvery  = 5 * time.Second
)

// conversion makes the trees of a repository, before anything refers to them.
type conversion struct {
	*copying
	treeReader
	notes []kv.Write // of trees that are durable
	last  time.Time  // when notes were written
}

// convert makes all trees that an earlier run has not made, and lets the items be of them.
func (c *copying) convert(ctx context.Context) (err error) {
	v := &conversion{copying: c, last: now(), treeReader: treeReader{
		empty: c.emptyTree(), scan: func(tree graveler.MetaRangeID) (graveler.Iterator[graveler.Entry], error) {
			return c.to.ScanTree(ctx, tree), nil
		},
	}}
	lost, err := c.losses(ctx)
	if err != nil {
		return err
	}
	todo := newTreeSteps(c.format, c.origin, lost)
	if v.trees, err = c.records().trees(ctx, c.note.Uid, c.origin.history.metaranges); err != nil {
		return err
	}
	for i, tree := range v.trees {
		todo.done[i] = tree != ""
	}
	if c.AllowMissing {
		if err := todo.recall(ctx); err != nil {
			return err
		}
	}
	c.origin.tree = v.treeOf(c.origin)
	steps := pullSteps(ctx, todo)
	defer steps.stop()
	for {
		step, err := steps.change()
		if err == nil && step.treeChange != nil {
			err = v.build(ctx, step.treeChange, steps)
		}
		if err != nil {
			// What is durable need not be made again.
			return errors.Join(err, v.write(context.WithoutCancel(ctx)))
		}
		if step.treeChange == nil {
			break
		}
	}
	if err := v.write(ctx); err != nil {
		return err
	}
	return v.whole()
}

// whole makes sure that every metarange has become a tree.
func (v *conversion) whole() error {
	if at := slices.Index(v.trees, ""); at >= 0 {
		return fmt.Errorf("metarange %s: %w: it has not become a tree", quoted(v.origin.history.metaranges[at]), graveler.ErrInvalidValue)
	}
	return nil
}

// build makes one tree.
func (v *conversion) build(ctx context.Context, change *treeChange, s *steps) error {
	metarange := v.origin.history.metaranges[change.tree]
	changes := iterate(v.changes(change, s))
	tree, err := v.to.ApplyTree(ctx, v.tree(change.base), changes)
	if err := changes.Close(); err != nil {
		return err // of the source, with the commit
	}
	if err != nil {
		return fmt.Errorf("make the tree of commit %s: %w", change.commit, err)
	}
	v.trees[change.tree] = tree
	note, err := kv.MarshalMessage(&migratepb.MigratedTreeData{Tree: string(tree)})
	if err != nil {
		return err
	}
	v.notes = append(v.notes, kv.Write{Key: []byte(treeKey(v.note.Uid, metarange)), Value: note})
	v.advance(1, 0)
	v.told++
	v.converted++
	if len(v.notes) >= notedTrees || now().Sub(v.last) >= noteEvery {
		return v.write(ctx)
	}
	return nil
}

// write notes what became of the trees, which are durable.
func (v *conversion) write(ctx context.Context) error {
	if len(v.notes) == 0 {
		return nil
	}
	err := kv.SetMany(ctx, v.records().kv, []byte(Partition), v.notes)
	v.notes, v.last = v.notes[:0], now()
	return wrapf(err, "note what trees became")
}

// treeOf returns the function that gives an origin the trees of its commits.
func (r *treeReader) treeOf(o *origin) func(int32, string) (graveler.MetaRangeID, error) {
	return func(commit int32, _ string) (graveler.MetaRangeID, error) {
		return r.tree(o.history.treeOf(commit)), nil
	}
}
