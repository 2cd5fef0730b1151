// SPDX-License-Identifier: Apache-2.0

// Package oldsql fills the tables of package sqlstore with what years of use leave there: many repositories, histories with
// merges, commits of both versions, NULLs wherever the tables allow them, tombstones, tokens that no branch has any more, odd but
// legal names and keys. The same parameters give the same rows. Rows are made as they are sent, so that there may be millions of
// them.
package oldsql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// Params says how much there is to be. Numbers but the first and the last are for each repository.
type Params struct {
	Seed         uint64
	Repositories int
	Branches     int // at least 1
	Commits      int // at least 1
	Tags         int
	Staged       int // rows, spread over the branches
	Orphans      int // tokens that no branch has
	// Bare adds a repository that has nothing but its row.
	Bare bool
	// Trees builds the trees that commits name, in namespace ns-<repository>. nil: all are empty.
	Trees graveler.Trees
}

// Scaled returns parameters for about so many rows, at least 100, most of which are staged.
func Scaled(rows int, seed uint64) Params {
	repositories := min(max(rows/50_000, 3), 20)
	each := rows / repositories
	return Params{
		Seed: seed, Repositories: repositories, Branches: min(max(each/2000, 3), 50), Commits: max(each/10, 5), Tags: min(max(each/200, 2), 100),
		Staged: each * 4 / 5, Orphans: 2, Bare: true,
	}
}

// Write makes the tables, which must not exist or be empty, and fills them.
func Write(ctx context.Context, conn *pgx.Conn, p Params) error {
	if err := sqlstore.CreateTables(ctx, conn); err != nil {
		return err
	}
	for i := range p.Repositories {
		r := &repository{p: p, name: repositoryName(i), rng: rand.New(rand.NewPCG(p.Seed, uint64(i)))}
		if err := r.write(ctx, conn); err != nil {
			return fmt.Errorf("write repository %s: %w", r.name, err)
		}
	}
	if p.Bare {
		if _, err := conn.Exec(ctx, "INSERT INTO graveler_repositories (id, storage_namespace, creation_date, default_branch) VALUES ('bare', 'ns-bare', '2019-05-06 07:08:09.000001Z', 'trunk')"); err != nil {
			return err
		}
	}
	for i := range p.Orphans {
		const sql = "INSERT INTO graveler_staging_kv (staging_token, key, identity, data) SELECT $1, convert_to('lost/' || n, 'UTF8'), '\\x01', NULL FROM generate_series(1, 3) n"
		if _, err := conn.Exec(ctx, sql, fmt.Sprintf("gone-main:%d", i)); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, "ANALYZE")
	return err
}

func repositoryName(i int) string {
	switch i {
	case 1:
		return "0ab"
	case 2:
		return "a-very-long-name-of-a-repository-which-has-sixty-three-letters-"
	}
	return fmt.Sprintf("lake-%03d", i)
}

// repository is one that is being written.
type repository struct {
	p     Params
	name  string
	rng   *rand.Rand
	trees []string
}

func (r *repository) namespace() string { return "ns-" + r.name }

func (r *repository) write(ctx context.Context, conn *pgx.Conn) error {
	for _, part := range []func(context.Context, *pgx.Conn) error{r.row, r.makeTrees, r.commits, r.branches, r.tags, r.staged} {
		if err := part(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

func (r *repository) row(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "INSERT INTO graveler_repositories (id, storage_namespace, creation_date, default_branch) VALUES ($1, $2, $3, $4)", r.name, r.namespace(), r.date(0), branchName(0))
	return err
}

// copyRows sends n rows that are made one by one.
func copyRows(ctx context.Context, conn *pgx.Conn, table string, columns []string, n int, row func(i int) []any) error {
	i := 0
	_, err := conn.CopyFrom(ctx, pgx.Identifier{table}, columns, pgx.CopyFromFunc(func() ([]any, error) {
		if i == n {
			return nil, nil
		}
		i++
		return row(i - 1), nil
	}))
	return err
}

// commitID is the ID of the i-th commit.
func (r *repository) commitID(i int) string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", r.p.Seed, r.name, i))
	return hex.EncodeToString(hash[:])
}

func branchName(i int) string {
	names := []string{"main", "feature/x_1", "release-1.0", "ünï-çode", "dev+test", "a.b.c", "HEAD", "x=y,z", "日本", "Z"}
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("team-%d/branch-%04d", i%7, i)
}

func tagName(i int) string {
	names := []string{"v1.0", "rel-2020.09", "nightly/2020/01/01", "étiquette"}
	if i < len(names) {
		return names[i]
	}
	return fmt.Sprintf("v%d.%d", i/10, i%10) + "-rc"
}

func (r *repository) token(branch int) string {
	return fmt.Sprintf("%s-%s:%x", r.name, branchName(branch), sha256.Sum256(fmt.Appendf(nil, "token %d %d", r.p.Seed, branch)))[:min(200, len(r.name)+len(branchName(branch))+34)]
}

func (r *repository) branches(ctx context.Context, conn *pgx.Conn) error {
	return copyRows(ctx, conn, "graveler_branches", []string{"repository_id", "id", "staging_token", "commit_id"}, r.p.Branches, func(i int) []any {
		head := r.p.Commits - 1
		if i > 0 {
			head = r.rng.IntN(r.p.Commits)
		}
		return []any{r.name, branchName(i), r.token(i), r.commitID(head)}
	})
}

func (r *repository) tags(ctx context.Context, conn *pgx.Conn) error {
	return copyRows(ctx, conn, "graveler_tags", []string{"repository_id", "id", "commit_id"}, r.p.Tags, func(i int) []any {
		return []any{r.name, tagName(i), r.commitID(r.rng.IntN(r.p.Commits))}
	})
}
