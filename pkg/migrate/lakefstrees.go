// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// lakeFSTrees reads the trees of lakeFS. It opens each namespace once, and must be closed.
type lakeFSTrees struct {
	base    string
	engines block.Engines

	mu   sync.Mutex
	open map[string]*lakefs.Files
}

// checkSourceBlocks returns ErrInvalidBlocks for a place of files that no driver at hand opens.
func (m *Migration) checkSourceBlocks() error {
	if m.SourceBlocks == "" {
		return nil
	}
	scheme, _, ok := strings.Cut(m.SourceBlocks, ":")
	switch {
	case !ok:
		return fmt.Errorf("%w: %s has no scheme, such as file: in file:PATH", ErrInvalidBlocks, quoted(m.SourceBlocks))
	case m.BlockEngines[scheme] == nil:
		return fmt.Errorf("%w: this program has no driver for %s: copy the files to a directory, and name that, as file:PATH", ErrInvalidBlocks, quoted(scheme))
	}
	return nil
}

func newLakeFSTrees(base string, engines block.Engines) *lakeFSTrees {
	return &lakeFSTrees{base: base, engines: engines, open: map[string]*lakefs.Files{}}
}

func (t *lakeFSTrees) close() (err error) {
	for _, f := range t.open {
		err = errors.Join(err, f.Close())
	}
	return err
}

func (t *lakeFSTrees) files(ctx context.Context, namespace string) (*lakefs.Files, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.open[namespace]; f != nil {
		return f, nil
	}
	f, err := lakefs.OpenFiles(ctx, t.base, namespace, t.engines)
	if err == nil {
		t.open[namespace] = f
	}
	return f, err
}

// Ranges implements [TreeFormat].
func (t *lakeFSTrees) Ranges(ctx context.Context, namespace, metarange string) ([]Range, error) {
	files, err := t.files(ctx, namespace)
	if err != nil {
		return nil, err
	}
	found, err := files.Metarange(ctx, metarange)
	if err != nil {
		return nil, asCorrupt(err)
	}
	ranges := make([]Range, len(found))
	for i, r := range found {
		ranges[i] = Range(r)
	}
	return ranges, nil
}

// Entries implements [TreeFormat].
func (t *lakeFSTrees) Entries(ctx context.Context, namespace string, r Range) ([]graveler.Entry, error) {
	files, err := t.files(ctx, namespace)
	if err != nil {
		return nil, err
	}
	records, err := files.Range(ctx, lakefs.Range(r))
	if err != nil {
		return nil, asCorrupt(err)
	}
	entries, values := make([]graveler.Entry, len(records)), make([]graveler.Value, len(records))
	for i, record := range records {
		if values[i], err = lakefs.Value(record, namespace); err != nil {
			return nil, fmt.Errorf("range %s: %w", r.ID, err)
		}
		entries[i] = graveler.Entry{Key: record.Key, Value: &values[i]}
		if err := errors.Join(graveler.ValidateEntry(entries[i]), checkObjectKey(record.Key)); err != nil {
			return nil, fmt.Errorf("range %s, entry %s: %w", r.ID, quoted(string(record.Key)), err)
		}
	}
	return entries, nil
}

// asCorrupt marks what AllowMissing is about. A file that has its ID and still cannot be understood is none of that: nothing of it is lost.
func asCorrupt(err error) error {
	if errors.Is(err, lakefs.ErrMissing) || errors.Is(err, lakefs.ErrDamaged) && !errors.Is(err, lakefs.ErrIntact) {
		return corruptSource{err}
	}
	return err
}

// corruptSource is graveler.ErrCorrupt without saying so: it is no data of the target that is.
type corruptSource struct{ error }

func (c corruptSource) Unwrap() []error { return []error{c.error, graveler.ErrCorrupt} }

// lakeFSEntry returns the entry that a row of lakeFS stages.
func lakeFSEntry(row stagedRow, namespace string) (graveler.Entry, error) {
	e, err := row.entry()
	if err == nil {
		err = checkObjectKey(row.key)
	}
	if err != nil || e.Value == nil {
		return e, err
	}
	v, err := lakefs.Value(lakefs.Record{Key: row.key, Identity: row.identity, Data: row.data}, namespace)
	e.Value = &v
	return e, err
}

// checkObjectKey refuses the keys under which the catalog keeps what is not an object as lakeFS knows it.
func checkObjectKey(key []byte) error {
	if len(key) > 0 && key[0] == 0 {
		return fmt.Errorf("%w: key %s: those that begin with a zero byte are reserved", graveler.ErrInvalidValue, quoted(string(key)))
	}
	return nil
}
