// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"bytes"
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
)

// Apply returns the tree with the changes applied, durably written. It reads and writes the ranges that changes fall into and
// those up to the next cut that coincides with an old one, and of each level above the metaranges of these; memory does not
// depend on the number of changes or entries, but for the names of the files written. Changes out of order, without an identity
// or over the limits are graveler.ErrInvalidValue or graveler.ErrTooLarge, and then no tree refers to what was written.
func (s *Store) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	id, err := s.apply(ctx, ns, tree, changes)
	if err != nil {
		return "", fmt.Errorf("apply changes to tree %s: %w", tree, damage(err))
	}
	return id, nil
}

func (s *Store) apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	files, err := s.open(ctx, ns)
	if err != nil {
		return "", err
	}
	top, err := files.tree(ctx, tree)
	if err != nil {
		return "", err
	}
	w := newWriter(ctx, s, files)
	bottom := newEditor(w, s.shapes, top, 0)
	root, changed, err := rewrite(bottom, changes)
	bottom.close()
	if err := w.finish(ctx, err); err != nil {
		return "", err
	}
	switch {
	case !changed:
		return tree, nil
	case root == nil:
		return s.EmptyTree(), nil
	case root.task != nil:
		return graveler.MetaRangeID(root.task.id.String()), nil
	}
	return graveler.MetaRangeID(rangefile.ID(root.Identity).String()), nil
}

// rewrite feeds the changes to the editor of the ranges and finishes all levels. changed is false where there were no changes.
func rewrite(bottom *editor, changes graveler.Iterator[graveler.Entry]) (root *item, changed bool, err error) {
	var last []byte
	for changes.Next() {
		e := changes.Item()
		r, err := record(e)
		if err != nil {
			return nil, false, err
		}
		if changed && bytes.Compare(last, e.Key) >= 0 {
			return nil, false, fmt.Errorf("change of %q after %q: %w", e.Key, last, graveler.ErrInvalidValue)
		}
		changed, last = true, append(last[:0], e.Key...)
		if err := bottom.apply(edit{lo: e.Key, hi: e.Key, put: e.Value != nil, item: item{Record: r}}); err != nil {
			return nil, false, err
		}
	}
	if err := changes.Err(); err != nil {
		return nil, false, fmt.Errorf("read changes: %w", err)
	}
	if !changed {
		return nil, false, nil
	}
	for e, done := bottom, false; !done && err == nil; e = e.up {
		root, done, err = e.finish()
	}
	return root, true, err
}

// record checks a change and gives the record to store, of which a tombstone has only the key.
func record(e graveler.Entry) (rangefile.Record, error) {
	r := rangefile.Record{Key: e.Key}
	if e.Value != nil {
		r.Identity, r.Data = e.Value.Identity, e.Value.Data
	}
	switch {
	case len(r.Key) == 0:
		return r, fmt.Errorf("empty key: %w", graveler.ErrInvalidValue)
	case e.Value != nil && len(r.Identity) == 0:
		return r, fmt.Errorf("entry %q without an identity: %w", r.Key, graveler.ErrInvalidValue)
	}
	if err := r.Check(); err != nil {
		return r, fmt.Errorf("entry %q: %w: %w", r.Key, graveler.ErrTooLarge, err)
	}
	return r, nil
}
