// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// kvTable has all rows of lakeFS since it keeps them as keys and values.
const kvTable = "kv"

// keyValue is the layout of lakeFS's kv table.
type keyValue struct {
	connection
	*lakefs.KV
}

// findKeyValue returns nil where there is no such table, or none that lakeFS has filled.
func findKeyValue(ctx context.Context, c connection) (*foundLayout, error) {
	version, err := lakefs.Version(ctx, c.conn)
	if err != nil || version == 0 {
		return nil, err
	}
	return &foundLayout{func(c connection) layout { return keyValue{c, lakefs.NewKV(c.conn)} }, int64(version), kvTable}, nil
}

func (keyValue) table(k kind) string {
	return kvTable + " (" + [...]string{"repositories", "tags", "commits", "branches", "commits", "staged"}[k] + ")"
}

// record is what names a repository there.
func (row repositoryRow) record() lakefs.Repository {
	return lakefs.Repository{ID: row.id, UID: row.uid}
}

func (k keyValue) repositories(ctx context.Context) iter.Seq2[repositoryRow, error] {
	return func(yield func(repositoryRow, error) bool) {
		for r, err := range k.Repositories(ctx) {
			row := repositoryRow{id: r.ID, namespace: r.Namespace, defaultBranch: r.DefaultBranch, uid: r.UID, created: r.CreatedAt, readOnly: r.ReadOnly}
			if err = k.inTable(settingItem, "", err); !r.InDeletion && !yield(row, err) {
				return
			}
		}
	}
}

// protectionKey is what protection rules are kept under, for people.
const protectionKey = "settings/protected_branches"

// globSigns mean something in lakeFS's patterns, and nothing in ours, which would protect other branches, or none.
const globSigns = `[]{}\`

// ourPatterns returns the patterns of ours that match together what one of lakeFS matches, and false where there are none.
// Alternatives of plain text, such as in rel-{1,2}, become several patterns; alternatives in others, or empty ones, do not.
func ourPatterns(pattern string) ([]string, bool) {
	before, rest, found := strings.Cut(pattern, "{")
	if !found {
		return []string{pattern}, !strings.ContainsAny(pattern, globSigns)
	}
	inside, after, closed := strings.Cut(rest, "}")
	ends, ok := ourPatterns(after)
	if !closed || !ok || strings.ContainsAny(before, globSigns) || strings.ContainsAny(inside, globSigns+"*?") {
		return nil, false
	}
	var patterns []string
	for alternative := range strings.SplitSeq(inside, ",") {
		if alternative == "" || len(patterns) > maxPatterns {
			return nil, false
		}
		for _, end := range ends {
			patterns = append(patterns, before+alternative+end)
		}
	}
	return patterns, len(patterns) <= maxPatterns
}

// maxPatterns keeps alternatives of alternatives few.
const maxPatterns = 1000

func (k keyValue) settings(ctx context.Context, repo repositoryRow) (s settingsRow, err error) {
	defer func() { err = k.inTable(settingItem, repo.id, err) }()
	if s.metadata, err = k.Metadata(ctx, repo.record()); err != nil {
		return s, err
	}
	rules, err := k.Protection(ctx, repo.record())
	for _, r := range rules {
		var forbid graveler.Actions
		if r.StagingWrite {
			forbid |= graveler.ActionStage
		}
		if r.Commit {
			forbid |= graveler.ActionCommit
		}
		patterns, ok := ourPatterns(r.Pattern)
		if !ok {
			s.badRules = fmt.Errorf("%w: branches are protected by the pattern %q, in which more than * and ? stands for other characters: change it in lakeFS, and protect the branches here after the run", graveler.ErrInvalidValue, r.Pattern)
		}
		for _, p := range patterns {
			s.protect(p, forbid)
		}
	}
	return s, err
}

func (k keyValue) branches(ctx context.Context, repo repositoryRow) iter.Seq2[branchRow, error] {
	return converted(k, branchItem, repo.id, k.Branches(ctx, repo.record()), func(b lakefs.Branch) branchRow {
		tokens := slices.DeleteFunc(append([]string{b.Token}, b.Sealed...), func(token string) bool { return token == "" })
		if b.Token == "" {
			tokens = nil // which is refused
		}
		return branchRow{id: b.ID, tokens: tokens, commit: b.Commit, hidden: b.Hidden}
	})
}

func (k keyValue) tags(ctx context.Context, repo repositoryRow) iter.Seq2[tagRow, error] {
	return converted(k, tagItem, repo.id, k.Tags(ctx, repo.record()), func(t lakefs.Tag) tagRow { return tagRow{t.ID, t.Commit} })
}

func (k keyValue) commits(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error] {
	return converted(k, commitItem, repo.id, k.Commits(ctx, repo.record()), func(c lakefs.Commit) commitRow {
		return commitRow{
			id: c.ID, committer: c.Committer, message: c.Message, tree: c.Metarange, created: c.CreatedAt, metadata: c.Metadata, parents: c.Parents, version: c.Version,
		}
	})
}

// unsortedCommits and commitLinks are the same: the table is indexed by key, and a record is read whole.
func (k keyValue) unsortedCommits(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error] {
	return k.commits(ctx, repo)
}

func (k keyValue) commitLinks(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error] {
	return k.commits(ctx, repo)
}

func (k keyValue) staged(ctx context.Context, tokens []string) iter.Seq2[stagedRow, error] {
	return converted(k, entryItem, "", k.Staged(ctx, tokens...), func(s lakefs.Staged) stagedRow { return stagedRow{s.Key, s.Identity, s.Data} })
}

// converted gives the records of a repository as rows.
func converted[From, To any](k keyValue, kind kind, repo string, records iter.Seq2[From, error], convert func(From) To) iter.Seq2[To, error] {
	return func(yield func(To, error) bool) {
		for record, err := range records {
			if !yield(convert(record), k.inTable(kind, repo, err)) {
				return
			}
		}
	}
}

// inTable makes of a record that cannot be read a row that cannot be carried over. Others come behind it.
func (k keyValue) inTable(kind kind, repo string, err error) error {
	if record := (*lakefs.RecordError)(nil); errors.As(err, &record) {
		return &RowError{Table: k.table(kind), Repository: repo, Key: record.Key, Reason: err}
	}
	return err
}

// badRecord returns what inTable has made, nil of any other error.
func badRecord(err error) *RowError {
	if row := (*RowError)(nil); errors.Is(err, lakefs.ErrInvalidRecord) && errors.As(err, &row) {
		return row
	}
	return nil
}

func (k keyValue) countStaged(ctx context.Context, tokens []string) (n int64, err error) {
	err = k.conn.QueryRow(ctx, "SELECT count(*) FROM kv WHERE partition_key = ANY($1)", byteKeys(tokens)).Scan(&n)
	return n, wrapf(err, "count the staged rows of table kv")
}

// suspects are rows of any kind; what they are says their partition, which is the token of a branch.
func (k keyValue) suspects(ctx context.Context, owned func(string) bool, valueBytes int) iter.Seq2[suspectRow, error] {
	scan := func(rows pgx.Rows) (v suspectRow, err error) {
		var token, value []byte
		if err := rows.Scan(&token, &v.key, &value); err != nil {
			return v, err
		}
		v.token = string(token)
		staged := &lakefspb.StagedData{}
		v.unreadable = proto.Unmarshal(value, staged)
		if len(staged.Identity) > 0 {
			v.identity = staged.Identity
		}
		v.data = staged.Data
		return v, nil
	}
	const sql = `SELECT partition_key, key, value FROM kv WHERE octet_length(key) > $1 OR octet_length(key) = 0 OR substring(key FROM 1 FOR 1) = '\x00' OR octet_length(value) > $2`
	return ownedRows(rowsOf(ctx, k.connection, kvTable, scan, sql, graveler.MaxKeyBytes, valueBytes), owned)
}

func (k keyValue) hasKey(ctx context.Context, tokens []string, key []byte) (has bool, err error) {
	err = k.conn.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM kv WHERE partition_key = ANY($1) AND key = $2)", byteKeys(tokens), key).Scan(&has)
	return has, wrapf(err, "look into table kv")
}

// byteKeys are names as the table has them.
func byteKeys(names []string) [][]byte {
	keys := make([][]byte, len(names))
	for i, name := range names {
		keys[i] = []byte(name)
	}
	return keys
}

// leftBehind counts the partitions that are of nothing in use, and what those in use have besides.
func (k keyValue) leftBehind(ctx context.Context, owned func(string) bool) iter.Seq2[LeftBehind, error] {
	return func(yield func(LeftBehind, error) bool) {
		if err := k.eachLeft(ctx, owned, func(l LeftBehind) bool { return yield(l, nil) }); err != nil {
			yield(LeftBehind{}, err)
		}
	}
}

func (k keyValue) eachLeft(ctx context.Context, owned func(string) bool, emit func(LeftBehind) bool) error {
	var inUse []string
	uses := map[string]bool{lakefs.RepositoriesPartition: true, lakefs.InternalPartition: true} // which has the version
	for r, err := range k.Repositories(ctx) {
		if errors.Is(err, lakefs.ErrInvalidRecord) {
			continue // whoever reads the repositories has found it
		}
		if err != nil {
			return err
		}
		if r.InDeletion {
			if !emit(LeftBehind{Table: kvTable, Owner: "repository " + r.ID, What: "it is being deleted", Rows: 1}) {
				return nil
			}
			continue
		}
		inUse, uses[r.Partition()] = append(inUse, r.Partition()), true
		if r.StorageID != "" && !emit(LeftBehind{Table: kvTable, Owner: "repository " + r.ID, What: "its storage ID " + r.StorageID, Rows: 1}) {
			return nil
		}
	}
	for p, err := range k.Partitions(ctx) {
		if err != nil {
			return err
		}
		if !uses[p.Name] && !owned(p.Name) && !emit(LeftBehind{Table: kvTable, Owner: "partition " + p.Name, What: "nothing that is carried over has it", Rows: p.Rows}) {
			return nil
		}
	}
	if err := k.otherKeys(ctx, inUse, emit); err != nil {
		return err
	}
	return k.olderTables(ctx, emit)
}

// olderTables counts what lakeFS has left in the tables that it had before.
func (k keyValue) olderTables(ctx context.Context, emit func(LeftBehind) bool) error {
	for _, table := range tableNames() {
		exists, err := k.hasTable(ctx, table)
		if err != nil {
			return err
		}
		l := LeftBehind{Table: table}
		if exists {
			if err := k.conn.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{table}.Sanitize()).Scan(&l.Rows); err != nil {
				return fmt.Errorf("count %s: %w", table, err)
			}
		}
		if l.Rows > 0 && !emit(l) {
			return nil
		}
	}
	return nil
}

// otherKeys counts the keys that are not read, in the partitions that are.
func (k keyValue) otherKeys(ctx context.Context, partitions []string, emit func(LeftBehind) bool) error {
	for _, partition := range append([]string{lakefs.RepositoriesPartition}, partitions...) {
		for c, err := range k.Keys(ctx, partition) {
			if err != nil {
				return err
			}
			if lakefs.Reads(partition, c.Prefix) {
				continue
			}
			if !emit(LeftBehind{Table: kvTable, Owner: "partition " + partition + ", keys " + c.Prefix, What: "they have no place here", Rows: c.Rows}) {
				return nil
			}
		}
	}
	return nil
}

// unreadable: tokens have all that a branch shows.
func (keyValue) unreadable(context.Context) iter.Seq2[*RowError, error] {
	return func(func(*RowError, error) bool) {}
}

func (k keyValue) bytes(ctx context.Context) (int64, error) { return k.tableBytes(ctx, kvTable) }
