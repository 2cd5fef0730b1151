// SPDX-License-Identifier: Apache-2.0

package facade_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/facade"
)

// carried is a database of the old program, and a store into which all of it was carried.
type carried struct {
	tables, store facade.Backend
	kv            kv.Store
	conn          *pgx.Conn
	trees         *memtrees.Store
}

func newCarried(t *testing.T, readOnly bool) *carried {
	t.Helper()
	ctx, url := t.Context(), testpg.Start(t).NewDatabase(t)
	conn, err := pgx.Connect(ctx, url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	c := &carried{conn: conn, kv: mem.New(), trees: memtrees.New()}
	require.NoError(t, oldsql.Write(ctx, conn, oldsql.Params{Seed: 7, Repositories: 2, Branches: 3, Commits: 20, Tags: 3, Staged: 100, Trees: c.trees}))
	g, err := graveler.New(graveler.Config{Refs: ref.New(c.kv), Staging: staging.New(c.kv), Trees: c.trees})
	require.NoError(t, err)
	m := migrate.Migration{Source: url, KV: c.kv, Graveler: g}
	_, err = m.Run(ctx)
	require.NoError(t, err)
	c.tables, c.store = openSQL(t, url, kv.OpenOptions{ReadOnly: readOnly}), backend(c.kv)
	return c
}

// lookAtAll reads all that a store has, and counts it. What cannot be read is left out.
func lookAtAll(ctx context.Context, g *graveler.Graveler) (read int) {
	for repo := range g.ListRepositories(ctx, "") {
		for range g.ListTags(ctx, repo.ID, "") {
			read++
		}
		for range g.ListCommits(ctx, repo.ID, "") {
			read++
		}
		for b := range g.ListBranches(ctx, repo.ID, "") {
			for range g.BranchLog(ctx, repo.ID, b.ID, 0) {
				read++
			}
			for e, err := range g.List(ctx, repo.ID, string(b.ID), graveler.ListOptions{}) {
				if err == nil {
					_, err = g.Get(ctx, repo.ID, string(b.ID), e.Key)
				}
				if err == nil {
					read++
				}
			}
		}
	}
	return read
}

// What a deployment does before it goes over: use the tables, and have all reads compared with the store into which they were carried.
func TestReadsAreComparedWithWhatWasCarriedOver(t *testing.T) {
	for _, inStore := range []bool{false, true} {
		t.Run(fmt.Sprint(inStore), func(t *testing.T) {
			c := newCarried(t, true)
			routes := facade.Routes{}
			for _, k := range facade.Kinds() {
				routes[k] = inStore
			}
			look := func() (read int, all []facade.Difference) {
				var seen reports
				g := open(t, facade.Config{First: c.tables, Second: c.store, Routes: routes, Shadow: facade.Kinds(), Report: seen.add}, c.trees)
				read = lookAtAll(t.Context(), g)
				return read, seen.all
			}
			read, seen := look()
			require.Greater(t, read, 100)
			require.Empty(t, seen)
			for kind, change := range map[facade.Kind]string{
				facade.Tags:         "UPDATE graveler_tags SET commit_id = 'c' WHERE repository_id = 'lake-000' AND id = (SELECT min(id) FROM graveler_tags)",
				facade.Commits:      "UPDATE graveler_commits SET message = message || '.' WHERE repository_id = 'lake-000' AND id = (SELECT commit_id FROM graveler_branches WHERE repository_id = 'lake-000' AND id = 'main')",
				facade.Branches:     "DELETE FROM graveler_staging_kv WHERE ctid = (SELECT s.ctid FROM graveler_staging_kv AS s JOIN graveler_branches AS b USING (staging_token) LIMIT 1)",
				facade.Repositories: "UPDATE graveler_repositories SET default_branch = 'other' WHERE id = 'lake-000'",
			} {
				tag, err := c.conn.Exec(t.Context(), change)
				require.NoError(t, err)
				require.Positive(t, tag.RowsAffected(), change)
				_, seen := look()
				kinds := map[facade.Kind]bool{}
				for _, d := range seen {
					kinds[d.Kind] = true
				}
				require.Contains(t, kinds, kind)
			}
		})
	}
}

// Upkeep through routes that part such a repository would take what belongs to the one for a remnant of the other.
func TestKindsOfARepositoryThatWasCarriedOverAreNotParted(t *testing.T) {
	c := newCarried(t, false)
	ctx := t.Context()
	before := snapshot(t, c.kv)
	for _, routes := range routings() {
		config := facade.Config{First: c.tables, Second: c.store, Routes: routes}
		g := open(t, config, c.trees)
		_, err := g.GetRepository(ctx, "lake-000")
		parted := false
		for _, k := range facade.Kinds() {
			parted = parted || routes[k] != routes[facade.Repositories]
		}
		if !parted {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, facade.ErrOtherRepository)
		require.ErrorIs(t, g.Set(ctx, "lake-000", "main", graveler.Key("k"), graveler.Value{Identity: []byte("i")}), facade.ErrOtherRepository)
		for _, err := range g.ListTags(ctx, "lake-000", "") {
			require.ErrorIs(t, err, facade.ErrOtherRepository)
		}
	}
	require.Equal(t, before, snapshot(t, c.kv))
}

func snapshot(t *testing.T, store kv.Store) (all []string) {
	t.Helper()
	for _, partition := range []string{"graveler"} {
		it, err := store.Scan(t.Context(), []byte(partition), kv.ScanOptions{})
		require.NoError(t, err)
		for it.Next() {
			all = append(all, fmt.Sprintf("%s/%q=%q", partition, it.Key(), it.Value()))
		}
		require.NoError(t, it.Close())
	}
	return all
}

func TestANameThatTheOtherSideHasIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	ctx := t.Context()
	first, second := sqlBackend(t), backend(mem.New())
	own := open(t, facade.Config{First: second, Second: second}, memtrees.New())
	_, err := own.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	g := open(t, facade.Config{First: first, Second: second, Routes: facade.Routes{facade.Tags: true}}, memtrees.New())
	_, err = g.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.ErrorIs(t, err, facade.ErrOtherRepository)
	_, err = first.Refs.GetRepository(ctx, "lake")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	_, err = own.GetRepository(ctx, "lake")
	require.NoError(t, err)
}

// failing fails a call that changes the record of a repository, before or after it was made.
type failing struct {
	graveler.Refs
	calls      *int
	fail       int
	afterwards bool
}

var errCutOff = errors.New("cut off")

func (f failing) cut(do func() error) error {
	*f.calls++
	if *f.calls < f.fail {
		return do()
	}
	if *f.calls == f.fail && f.afterwards {
		return errors.Join(do(), errCutOff)
	}
	return errCutOff // as every later call of a process that is gone
}

func (f failing) PutRepository(ctx context.Context, r *graveler.Repository) (stamp graveler.Stamp, err error) {
	err = f.cut(func() error {
		stamp, err = f.Refs.PutRepository(ctx, r)
		return err
	})
	return stamp, err
}

func (f failing) RemoveRepository(ctx context.Context, r *graveler.Repository) error {
	return f.cut(func() error { return f.Refs.RemoveRepository(ctx, r) })
}

// Wherever the creation or deletion of a repository is cut off, the next one finishes it, on both sides.
func TestACompanionFollowsWhereverItIsCutOff(t *testing.T) {
	ctx := t.Context()
	for fail := 1; ; fail++ {
		for _, afterwards := range []bool{false, true} {
			first, second, trees, calls := sqlBackend(t), backend(mem.New()), memtrees.New(), 0
			routes := facade.Routes{facade.Branches: fail%2 == 0, facade.Tags: true}
			now := time.Now()
			with := func(fail int) *graveler.Graveler {
				c := facade.Config{First: first, Second: second, Routes: routes}
				c.First.Refs, c.Second.Refs = failing{first.Refs, &calls, fail, afterwards}, failing{second.Refs, &calls, fail, afterwards}
				b, err := facade.New(c)
				require.NoError(t, err)
				g, err := graveler.New(graveler.Config{Refs: b.Refs, Staging: b.Staging, Trees: trees, Now: func() time.Time { return now }})
				require.NoError(t, err)
				return g
			}
			dying := with(fail)
			_, err := dying.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			if err == nil {
				err = dying.DeleteRepository(ctx, "lake")
			}
			if err != nil {
				require.ErrorIs(t, err, errCutOff)
			}
			now = now.Add(time.Hour) // longer than a creation may stand still
			g := with(1 << 30)
			_, err2 := g.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			if err2 != nil { // it was there
				require.ErrorIs(t, err2, graveler.ErrExists)
			}
			require.NoError(t, g.Set(ctx, "lake", "main", graveler.Key("k"), graveler.Value{Identity: []byte("i")}))
			_, err2 = g.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "m"})
			require.NoError(t, err2)
			a, err2 := first.Refs.GetRepository(ctx, "lake")
			require.NoError(t, err2)
			b, err2 := second.Refs.GetRepository(ctx, "lake")
			require.NoError(t, err2)
			require.Equal(t, a.UID, b.UID)
			require.NoError(t, g.DeleteRepository(ctx, "lake"))
			for _, side := range []facade.Backend{first, second} {
				require.Zero(t, count(t, side.Refs.ScanRepositories(ctx, "")))
			}
			if err == nil {
				return
			}
		}
	}
}
