// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// TreeFormat reads trees whose files are not Moraine's own. As with ours a metarange names ranges, which hold entries, and equal
// IDs are equal contents. It is called from several goroutines.
type TreeFormat interface {
	// Ranges returns the ranges of a tree, by key. A file that is missing or not what its ID says is graveler.ErrCorrupt, here
	// and below; the error names it.
	Ranges(ctx context.Context, namespace, metarange string) ([]Range, error)
	// Entries returns the entries of a range, by key, after making sure that they are those that the range has.
	Entries(ctx context.Context, namespace string, r Range) ([]graveler.Entry, error)
}

// KnownFormat is one whose trees can be told from others.
type KnownFormat interface {
	TreeFormat
	// Name is what people call the format.
	Name() string
	// Recognizes reports whether a metarange in a namespace is of this format.
	Recognizes(ctx context.Context, namespace, metarange string) (bool, error)
}

// Range is what a metarange says of a range.
type Range struct {
	ID          string
	First, Last []byte // keys
	Count       int64  // of entries
}

// same reports whether two metaranges say the same of a range.
func (r Range) same(o Range) bool {
	return r.ID == o.ID && r.Count == o.Count && bytes.Equal(r.First, o.First) && bytes.Equal(r.Last, o.Last)
}

// converts reports whether trees of the source may have to be converted.
func (m *Migration) converts(s *source) bool { return s.trees != nil || len(m.Formats) > 0 }

// formatOf says who reads the trees of a repository, by one of its metaranges; nil: they are Moraine's own files. What lakeFS
// keeps is never asked for here.
func (m *Migration) formatOf(ctx context.Context, namespace, metarange string) (TreeFormat, error) {
	err := m.Graveler.CheckRoot(ctx, namespace, graveler.MetaRangeID(metarange))
	if err == nil {
		return nil, nil
	}
	for _, f := range m.Formats {
		yes, formatErr := f.Recognizes(ctx, namespace, metarange)
		if formatErr != nil {
			return nil, fmt.Errorf("look at metarange %s as %s: %w", quoted(metarange), f.Name(), formatErr)
		}
		if yes {
			return f, nil
		}
	}
	if errors.Is(err, block.ErrNotFound) { // whose text has the place again
		return nil, fmt.Errorf("%w: metarange %s in %s", ErrMissingTree, quoted(metarange), place(namespace))
	}
	return nil, fmt.Errorf("%w: metarange %s in %s: %w", ErrForeignTrees, quoted(metarange), place(namespace), err)
}

// formatOfOrigin says who reads the trees of a repository. It returns nil, too, where there are none.
func (m *Migration) formatOfOrigin(ctx context.Context, s *source, o *origin) (format TreeFormat, own bool, err error) {
	if s.trees != nil {
		if len(o.history.metaranges) == 0 {
			return nil, false, nil
		}
		return s.trees, false, nil
	}
	tree, err := tables{o.connection}.anyTree(ctx, o.id)
	if err != nil || tree == "" {
		return nil, false, err
	}
	if format, err = m.formatOf(ctx, o.namespace, tree); err != nil {
		return nil, false, o.rowError(commitItem, "", err)
	}
	return format, format == nil, nil
}
