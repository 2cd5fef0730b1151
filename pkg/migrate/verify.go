// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"iter"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// Verified is what the comparison of the two sides came to.
type Verified struct {
	Repositories []VerifiedRepository // by name
	Differences  int64                // of all
}

// Err returns ErrDiffers with the first difference, nil if there is none.
func (v Verified) Err() error {
	for _, r := range v.Repositories {
		if len(r.First) > 0 {
			return fmt.Errorf("%w: %s (%d differences in all)", ErrDiffers, r.First[0], v.Differences)
		}
	}
	return nil
}

// VerifiedRepository compares one repository.
type VerifiedRepository struct {
	Repository  string
	Kinds       []VerifiedKind
	Differences int64
	First       []Difference // the first of them
}

// VerifiedKind compares what a repository has of one kind: the numbers, and the SHA-256 of all of it in order.
type VerifiedKind struct {
	Kind                       string
	Source, Target             int64
	SourceDigest, TargetDigest string
}

// Difference is one thing that is not the same on both sides.
type Difference struct {
	Repository, Kind, Key string
	What                  string
}

func (d Difference) String() string {
	if d.Key == "" {
		return fmt.Sprintf("repository %s: %s", quoted(d.Repository), d.What)
	}
	return fmt.Sprintf("repository %s, %s, %s: %s", quoted(d.Repository), d.Kind, quoted(d.Key), d.What)
}

// shownDifferences is how many differences of a repository are named.
const shownDifferences = 10

// Verify reads the source as of now and the target side by side and compares them row by row: repositories, tags, commits as they should have become, branches with their logs, and what is staged on them, byte by byte. What was written on either side
// since the migration is a difference. It writes nothing. ErrNotMigrated means that the target has nothing of this source; differences are no error of it: see Verified.Err.
func (m *Migration) Verify(ctx context.Context) (Verified, error) {
	s, err := openSource(ctx, m.Source)
	if err != nil {
		return Verified{}, err
	}
	v := &verifying{Migration: m, source: s}
	err = v.run(ctx)
	return v.result, errors.Join(wrapf(err, "verify"), s.close(ctx))
}

type verifying struct {
	*Migration
	source *source
	note   *migratepb.MigrationData

	mu     sync.Mutex
	result Verified
	done   Progress
}

func (v *verifying) run(ctx context.Context) (err error) {
	if v.note, err = v.records().migration(ctx, v.source.id); err != nil {
		return err
	}
	if v.note == nil {
		return ErrNotMigrated
	}
	var rows []repositoryRow
	inSource := map[string]bool{}
	for row, err := range v.source.main.repositories(ctx) {
		if err != nil {
			return err
		}
		rows = append(rows, row)
		inSource[row.id] = true
	}
	v.result.Repositories = make([]VerifiedRepository, len(rows))
	v.done.OfRepositories = len(rows)
	if err := v.all(ctx, rows); err != nil {
		return err
	}
	for note, err := range v.records().repositories(ctx) {
		if err != nil {
			return err
		}
		if note.Done && !inSource[note.Repository] {
			gone := VerifiedRepository{Repository: note.Repository, Differences: 1, First: []Difference{{Repository: note.Repository, What: "it was migrated, and the source has it no more"}}}
			v.result.Repositories = append(v.result.Repositories, gone)
		}
	}
	for _, r := range v.result.Repositories {
		v.result.Differences += r.Differences
	}
	return nil
}

func (v *verifying) all(ctx context.Context, rows []repositoryRow) error {
	group, ctx := errgroup.WithContext(ctx)
	next := make(chan int)
	group.Go(func() error {
		defer close(next)
		for i := range rows {
			select {
			case next <- i:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	for range min(v.workers(), len(rows)) {
		group.Go(func() (err error) {
			reader, err := v.source.reader(ctx)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, reader.close(ctx)) }()
			for i := range next {
				if v.result.Repositories[i], err = v.repository(ctx, reader, rows[i]); err != nil {
					return fmt.Errorf("repository %s: %w", rows[i].id, err)
				}
				v.advance(0, 1)
			}
			return nil
		})
	}
	return group.Wait()
}

func (v *verifying) advance(rows int64, repositories int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done.Rows += rows
	v.done.Repositories += repositories
	if v.Progress != nil {
		v.Progress(v.done)
	}
}

func (v *verifying) repository(ctx context.Context, reader *reader, row repositoryRow) (VerifiedRepository, error) {
	c := &comparing{result: VerifiedRepository{Repository: row.id}}
	stored, err := v.targetRepository(ctx, row.id)
	if err != nil {
		return c.result, err
	}
	if stored == nil {
		c.differ(nil, "it is not in the target")
		return c.result, nil
	}
	if err := v.compareRecords(c, row, stored); err != nil {
		return c.result, err
	}
	o, err := openOrigin(ctx, reader, row, reader.commitLinks(ctx, row.id), v.note.Began, v.emptyTree(), func(e *RowError) error { return e })
	if err != nil {
		return c.result, err
	}
	if err := v.useTreeNotes(ctx, o, stored); err != nil {
		return c.result, err
	}
	err = c.run(ahead(o.items(ctx)), ahead(v.targetItems(ctx, stored)), func(rows int64) { v.advance(rows, 0) })
	return c.result, err
}

// compareRecords compares the records of the repositories.
func (v *verifying) compareRecords(c *comparing, row repositoryRow, stored *graveler.Repository) error {
	created, err := timeOf(row.created)
	switch {
	case err != nil:
		return &RowError{Table: repositoriesTable, Key: row.id, Reason: err}
	case string(stored.DefaultBranch) != row.defaultBranch:
		c.differ(nil, fmt.Sprintf("its default branch is %s, in the target %s", row.defaultBranch, stored.DefaultBranch))
	case !stored.CreatedAt.Equal(created):
		c.differ(nil, fmt.Sprintf("it was created at %s, in the target at %s", created, stored.CreatedAt))
	}
	return nil
}

// useTreeNotes lets converted trees count as what they were converted to.
func (v *verifying) useTreeNotes(ctx context.Context, o *origin, stored *graveler.Repository) error {
	note, err := v.records().repository(ctx, o.id)
	if err != nil || note == nil || !note.Converted {
		return err
	}
	o.tree = func(ctx context.Context, metarange string) (graveler.MetaRangeID, error) {
		if metarange == "" {
			return v.emptyTree(), nil
		}
		tree := &migratepb.MigratedTreeData{}
		_, err := v.records().get(ctx, treeKey(stored.UID, metarange), tree)
		return graveler.MetaRangeID(tree.Tree), err
	}
	return nil
}

// comparing goes through the items of two sides.
type comparing struct {
	result VerifiedRepository
	sums   [kinds][2]hash.Hash
	counts [kinds][2]int64
	buf    [2][]byte
}

func (c *comparing) run(source, target iter.Seq2[*item, error], advance func(int64)) error {
	for k := range c.sums {
		c.sums[k] = [2]hash.Hash{sha256.New(), sha256.New()}
	}
	left, stopLeft := iter.Pull2(source)
	defer stopLeft()
	right, stopRight := iter.Pull2(target)
	defer stopRight()
	a, err, more := left()
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	b, err, also := right()
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	for rows := int64(1); more || also; rows++ {
		order := 0
		switch {
		case !also:
			order = -1
		case !more:
			order = 1
		default:
			order = a.compare(b)
		}
		if order <= 0 {
			c.note(a, 0)
		}
		if order >= 0 {
			c.note(b, 1)
		}
		switch {
		case order < 0:
			c.differ(a, "it is not in the target")
		case order > 0:
			c.differ(b, "it is only in the target")
		case string(c.buf[0]) != string(c.buf[1]):
			c.differ(a, unlike(a, b))
		}
		if order <= 0 {
			if a, err, more = left(); err != nil {
				return fmt.Errorf("source: %w", err)
			}
		}
		if order >= 0 {
			if b, err, also = right(); err != nil {
				return fmt.Errorf("target: %w", err)
			}
		}
		if rows%reportRows == 0 {
			advance(reportRows)
		}
	}
	for k := range kinds {
		sum := func(side int) string { return hex.EncodeToString(c.sums[k][side].Sum(nil)) }
		c.result.Kinds = append(c.result.Kinds, VerifiedKind{k.String(), c.counts[k][0], c.counts[k][1], sum(0), sum(1)})
	}
	return nil
}

// note adds an item to what is known of a side.
func (c *comparing) note(i *item, side int) {
	c.buf[side] = i.append(c.buf[side][:0])
	c.sums[i.kind][side].Write(c.buf[side])
	c.counts[i.kind][side]++
}

func (c *comparing) differ(i *item, what string) {
	c.result.Differences++
	if len(c.result.First) >= shownDifferences {
		return
	}
	d := Difference{Repository: c.result.Repository, What: what}
	if i != nil {
		d.Kind, d.Key = i.kind.String(), i.name()
	}
	c.result.First = append(c.result.First, d)
}

// name is what people call an item.
func (i *item) name() string {
	switch i.kind {
	case branchItem:
		return i.branch
	case moveItem:
		return i.branch + " at " + strconv.FormatInt(i.move.Time, 10)
	case entryItem:
		return i.branch + ":" + i.key
	default:
		return i.key
	}
}

// unlike says in what two items of one name differ.
func unlike(a, b *item) string {
	switch {
	case a.kind == commitItem && a.digest == b.digest:
		return "the digest that was taken of it is another in the target"
	case a.kind == commitItem:
		return "its fields differ"
	case a.kind == entryItem && (a.value == nil) != (b.value == nil):
		return "it is a deletion on one side only"
	case a.kind == entryItem && string(a.value.Identity) == string(b.value.Identity):
		return "its data differs"
	case a.kind == entryItem:
		return "its identity differs"
	case a.head != b.head:
		return fmt.Sprintf("it is on commit %s, in the target on %s", a.head, b.head)
	case a.extra != b.extra:
		return "the target has more uncommitted changes, in items that were sealed since"
	default:
		return "its moves differ"
	}
}
