// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// StoreDiagnosis is a report on a store that can be shown to anybody: it has numbers and times, and no names, keys, URLs or contents.
type StoreDiagnosis struct {
	SchemaVersion int       `json:"schema_version"`
	Time          time.Time `json:"time"`
	// ClockAhead is how far the newest time that any process has used is ahead of this machine's clock, in seconds; negative where it is behind.
	ClockAhead   float64               `json:"clock_ahead_seconds"`
	Creating     int                   `json:"creating"`
	InDeletion   int                   `json:"in_deletion"`
	Repositories []RepositoryDiagnosis `json:"repositories"` // that are in use, in no particular order
	// Cleanups are partitions that nothing refers to any more and that wait to be dropped, the oldest since OldestCleanup.
	Cleanups      int        `json:"cleanups"`
	OldestCleanup *time.Time `json:"oldest_cleanup,omitempty"`
	Migrated      int        `json:"migrated"` // repositories that a migration brought and completed
	Migrating     int        `json:"migrating"`
}

// RepositoryDiagnosis is what there is of one repository.
type RepositoryDiagnosis struct {
	Branches  int    `json:"branches"`
	Tags      int    `json:"tags"`
	Commits   int    `json:"commits"`
	Moves     int    `json:"moves"`
	Staged    int    `json:"staged_entries"`
	Items     int    `json:"items"`
	Entries   uint64 `json:"entries"`
	Files     int    `json:"files"`
	FileBytes int64  `json:"file_bytes"`
	// MostItems is the longest sealed list of a branch. OldestItem is by how many items, of all that were ever added to its
	// branch, an item is the oldest one that was not folded into a tree yet.
	MostItems  int    `json:"most_items"`
	OldestItem uint64 `json:"oldest_item"`
	Problem    string `json:"problem,omitempty"` // why it could not be counted
}

// Diagnose counts what is in a store. A repository that cannot be counted does not keep it from the others.
func Diagnose(ctx context.Context, g *graveler.Graveler, store kv.Store) (StoreDiagnosis, error) {
	refs := ref.New(store)
	d := StoreDiagnosis{SchemaVersion: kv.SchemaVersion, Time: now().UTC()}
	highest, err := g.ClockWatermark(ctx)
	if err != nil {
		return d, fmt.Errorf("diagnose: %w", err)
	}
	if !highest.IsZero() {
		d.ClockAhead = highest.Sub(d.Time).Seconds()
	}
	for r, err := range refs.ScanRepositories(ctx, "") {
		switch {
		case err != nil:
			return d, fmt.Errorf("diagnose: %w", err)
		case r.State == graveler.RepositoryCreating:
			d.Creating++
		case r.State == graveler.RepositoryInDeletion:
			d.InDeletion++
		default:
			d.Repositories = append(d.Repositories, diagnoseRepository(ctx, g, refs, r))
		}
	}
	for c, err := range refs.ScanCleanups(ctx) {
		if err != nil {
			return d, fmt.Errorf("diagnose: %w", err)
		}
		d.Cleanups++
		if at := time.Unix(0, c.Registered).UTC(); d.OldestCleanup == nil || at.Before(*d.OldestCleanup) {
			d.OldestCleanup = &at
		}
	}
	for note, err := range (records{store}).repositories(ctx) {
		switch {
		case err != nil:
			return d, fmt.Errorf("diagnose: %w", err)
		case note.Done:
			d.Migrated++
		default:
			d.Migrating++
		}
	}
	return d, ctx.Err()
}

func diagnoseRepository(ctx context.Context, g *graveler.Graveler, refs *ref.Store, r *graveler.Repository) RepositoryDiagnosis {
	s, err := g.Stats(ctx, r.ID)
	d := RepositoryDiagnosis{
		Branches: s.Branches, Tags: s.Tags, Commits: s.Commits, Moves: s.Moves, Staged: s.StagedEntries, Items: s.Items, Entries: s.Entries, Files: s.Files, FileBytes: s.FileBytes,
	}
	for b, scanErr := range refs.ScanBranches(ctx, r, "") {
		if err = errors.Join(err, scanErr); err != nil {
			break
		}
		d.MostItems = max(d.MostItems, len(b.Items))
		if n := len(b.Items); n > 0 {
			d.OldestItem = max(d.OldestItem, b.ItemCounter-b.Items[n-1].Number)
		}
	}
	d.Problem = problemOf(err)
	return d
}

// problemOf says what kind of error it is, without the names that its text has.
func problemOf(err error) string {
	if err == nil {
		return ""
	}
	for _, kind := range []error{lakefs.ErrInvalidRecord, lakefs.ErrUnknownVersion, graveler.ErrCorrupt, graveler.ErrNotFound, kv.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return "it cannot be read"
}

// SourceDiagnosis is a report on the SQL side that can be shown to anybody: it has numbers and times, and no names, keys, URLs or contents.
type SourceDiagnosis struct {
	Server        string           `json:"server"` // version
	SchemaVersion int64            `json:"schema_version"`
	Dirty         bool             `json:"dirty"`
	Tables        []TableDiagnosis `json:"tables"`
	// OrphanTokens are staging tokens that no branch has, and OrphanRows the rows under them.
	OrphanTokens  int64      `json:"orphan_tokens"`
	OrphanRows    int64      `json:"orphan_rows"`
	DanglingHeads int64      `json:"dangling_heads"` // branches whose commit does not exist
	DanglingTags  int64      `json:"dangling_tags"`
	Users         *int64     `json:"users,omitempty"` // in auth_users, where there is such a table
	CutOver       *time.Time `json:"cut_over,omitempty"`
	// KV is what the kv table has, of a database that lakeFS keeps, where there is one.
	KV *KVDiagnosis `json:"kv,omitempty"`
}

// TableDiagnosis is how much is in a table. Rows is -1 where it is missing.
type TableDiagnosis struct {
	Table string `json:"table"`
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"`
}

// DiagnoseSource counts what is in the tables, whatever their version is, and of lakeFS also in its kv table.
func DiagnoseSource(ctx context.Context, url string) (d SourceDiagnosis, err error) {
	s, err := connectSource(ctx, url)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err := s.main.begin(ctx); err != nil {
		return d, err
	}
	err = tables{s.main.connection}.diagnose(ctx, &d)
	if err == nil && s.lakeFS {
		d.KV, err = keyValue{s.main.connection, lakefs.NewKV(s.main.conn)}.diagnose(ctx)
	}
	return d, wrapf(err, "diagnose %s", kv.Redact(url))
}

func (r tables) diagnose(ctx context.Context, d *SourceDiagnosis) error {
	if err := r.conn.QueryRow(ctx, "SHOW server_version").Scan(&d.Server); err != nil {
		return err
	}
	complete := true
	for _, table := range append(tableNames(), schemaTable) {
		t, err := r.diagnoseTable(ctx, table)
		if err != nil {
			return err
		}
		complete = complete && t.Rows >= 0
		d.Tables = append(d.Tables, t)
	}
	if users, err := r.diagnoseTable(ctx, "auth_users"); err != nil {
		return err
	} else if users.Rows >= 0 {
		d.Users = &users.Rows
	}
	marker, err := cutover.Read(ctx, r.conn)
	if err != nil {
		return err
	}
	if marker != nil {
		d.CutOver = &marker.At
	}
	if !complete {
		return nil
	}
	if d.SchemaVersion, d.Dirty, err = r.schema(ctx); err != nil {
		return err
	}
	const orphans = `SELECT count(DISTINCT staging_token), count(*) FROM graveler_staging_kv s WHERE NOT EXISTS (SELECT 1 FROM graveler_branches b WHERE b.staging_token = s.staging_token)`
	if err := r.conn.QueryRow(ctx, orphans).Scan(&d.OrphanTokens, &d.OrphanRows); err != nil {
		return err
	}
	for table, n := range map[string]*int64{branchesTable: &d.DanglingHeads, tagsTable: &d.DanglingTags} {
		sql := `SELECT count(*) FROM ` + table + ` t WHERE NOT EXISTS (SELECT 1 FROM graveler_commits c WHERE c.repository_id = t.repository_id AND c.id = t.commit_id)`
		if err := r.conn.QueryRow(ctx, sql).Scan(n); err != nil {
			return err
		}
	}
	return nil
}

func (r tables) diagnoseTable(ctx context.Context, table string) (TableDiagnosis, error) {
	t := TableDiagnosis{Table: table, Rows: -1}
	exists, err := r.hasTable(ctx, table)
	if err != nil || !exists {
		return t, err
	}
	if err := r.conn.QueryRow(ctx, "SELECT count(*) FROM "+table).Scan(&t.Rows); err != nil {
		return t, fmt.Errorf("count %s: %w", table, err)
	}
	t.Bytes, err = r.tableBytes(ctx, table)
	return t, err
}
