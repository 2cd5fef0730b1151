// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/rangefile"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// run runs statements in a database.
func run(t testing.TB, database string, statements ...string) {
	t.Helper()
	within(t, database, func(ctx context.Context, conn *pgx.Conn) error {
		for _, s := range statements {
			if _, err := conn.Exec(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s, err)
			}
		}
		return nil
	})
}

func within(t testing.TB, database string, f func(ctx context.Context, conn *pgx.Conn) error) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, database)
	require.NoError(t, err)
	require.NoError(t, errors.Join(f(ctx, conn), conn.Close(ctx)))
}

// oldDatabase is one that only the old program has written.
func oldDatabase(t testing.TB) (database string) {
	database = testpg.Start(t).NewDatabase(t)
	within(t, database, sqlstore.CreateTables)
	run(t, database,
		`INSERT INTO graveler_repositories VALUES ('bare', 's3://bare', '2022-01-01 00:00:00.000001Z', 'main'), ('lake', 's3://lake', '2022-01-02Z', 'main')`,
		`INSERT INTO graveler_branches VALUES ('lake', 'main', 'lake-main:t1', 'c4'), ('lake', 'Dev', 'lake-Dev:t2', 'c1'), ('lake', 'lost', 'lake-lost:t3', 'none')`,
		`INSERT INTO graveler_commits VALUES
			('lake', 'c1', '', 'Repository created', '2022-01-02Z', '', 'null', NULL, 1, 1),
			('lake', 'c2', 'ann', E'two\nlines', '2022-01-03 00:00:00.123456Z', 'm2', '{"k": "v", "": ""}', '{c1}', 1, NULL),
			('lake', 'c3', 'bob', ' ', '2022-01-03Z', 'm3', '{}', '{c1}', 0, NULL),
			('lake', 'c4', 'ann', 'merge of c2 into c3', '2022-01-04Z', 'm4', NULL, '{c2,c3}', 0, NULL),
			('lake', 'c5', 'ann', 'merge of c2 into c3, in the other order', '2022-01-04Z', 'm4', NULL, '{c3,c2}', 1, 3),
			('lake', 'c6', 'ann', 'no parents', '2022-01-05Z', 'm4', NULL, '{}', 1, NULL)`,
		`INSERT INTO graveler_tags VALUES ('lake', 'v1', 'c2')`,
		`INSERT INTO graveler_staging_kv VALUES ('lake-main:t1', 'a', 'id', 'data'), ('lake-main:t1', 'b', NULL, NULL), ('lake-main:t1', 'c', NULL, ''), ('lake-main:t1', 'd', 'id', NULL), ('lake-gone:t9', 'a', 'id', 'data')`,
	)
	return database
}

func TestAnOldDatabaseIsReadAsItIs(t *testing.T) {
	database := oldDatabase(t)
	ctx, plain := t.Context(), openStore(t, sqlURL(database), kv.OpenOptions{ReadOnly: true})

	repositories := stest.Collect(t, plain.ScanRepositories(ctx, ""))
	require.Len(t, repositories, 2)
	bare, lake := repositories[0], repositories[1]
	require.Equal(t, &graveler.Repository{
		ID: "bare", UID: bare.UID, Namespace: "s3://bare", DefaultBranch: "main", CreatedAt: time.Date(2022, 1, 1, 0, 0, 0, 1000, time.UTC), State: graveler.RepositoryActive, Stamp: bare.Stamp,
	}, bare)
	require.Len(t, bare.UID, 20)
	require.NotEqual(t, bare.UID, lake.UID)
	require.Empty(t, stest.Collect(t, plain.ScanBranches(ctx, bare, "")))

	branches := stest.Collect(t, plain.ScanBranches(ctx, lake, ""))
	require.Len(t, branches, 3)
	dev, lost, main := branches[0], branches[1], branches[2]
	require.Equal(t, &graveler.Branch{
		ID: "main", UID: main.UID, State: graveler.BranchLive, Head: "c4", Token: "lake-main:t1", Stamp: main.Stamp,
		LastMove: graveler.Move{Time: time.Date(2022, 1, 4, 0, 0, 0, 0, time.UTC).UnixNano(), Op: graveler.OpMigrate, New: "c4"},
	}, main)
	require.Equal(t, graveler.BranchID("Dev"), dev.ID)
	require.Equal(t, graveler.Move{Time: 1, Op: graveler.OpMigrate, New: "none"}, lost.LastMove, "nothing says when")
	require.NotEqual(t, dev.UID, main.UID)

	merge := &graveler.Commit{
		ID: "c4", Version: graveler.CarriedVersion, Committer: "ann", Message: "merge of c2 into c3", Tree: "m4", CreatedAt: time.Date(2022, 1, 4, 0, 0, 0, 0, time.UTC),
		Parents: []graveler.CommitID{"c3", "c2"}, Generation: 3, LogTime: time.Date(2022, 1, 4, 0, 0, 0, 0, time.UTC).UnixNano(),
	}
	merge.Nonce = merge.Digest()
	commits := stest.Collect(t, plain.ScanCommits(ctx, lake, ""))
	require.Len(t, commits, 6)
	require.Equal(t, merge, commits[3])
	for i, generation := range []int64{1, 2, 2, 3, 3, 1} {
		require.Equal(t, generation, commits[i].Generation, commits[i].ID)
	}
	require.Nil(t, commits[0].Parents)
	require.Equal(t, rangefile.EmptyID().String(), string(commits[0].Tree), "no metarange is the empty tree")
	require.Nil(t, commits[0].Metadata)
	require.Equal(t, map[string]string{"k": "v", "": ""}, commits[1].Metadata)
	require.Empty(t, commits[2].Metadata)
	require.Equal(t, merge.Parents, commits[4].Parents, "version 1 has the main parent first")
	require.Empty(t, commits[5].Parents)
	require.Equal(t, "v1", string(stest.Collect(t, plain.ScanTags(ctx, lake, ""))[0].ID))

	it, err := plain.Scan(ctx, main.Token, nil, nil)
	require.NoError(t, err)
	var staged []string
	for it.Next() {
		staged = append(staged, fmt.Sprint(string(it.Item().Key), it.Item().Value != nil))
	}
	require.NoError(t, it.Close())
	require.Equal(t, []string{"atrue", "bfalse", "cfalse", "dtrue"}, staged)

	require.Equal(t, []graveler.LogName{{Branch: "Dev", UID: dev.UID}, {Branch: "lost", UID: lost.UID}, {Branch: "main", UID: main.UID}}, stest.Collect(t, plain.ScanLogNames(ctx, lake, "")))
	require.Equal(t, []graveler.LogName{{Branch: "main", UID: main.UID}}, stest.Collect(t, plain.ScanLogNames(ctx, lake, "main")))
	require.Empty(t, stest.Collect(t, plain.ScanLogNames(ctx, lake, "dev")))
	require.Empty(t, stest.Collect(t, plain.ScanMoves(ctx, lake, main.UID, 0, 1<<62)))
	require.Empty(t, stest.Collect(t, plain.ScanPins(ctx, lake)))
	require.Empty(t, stest.Collect(t, plain.ScanExpirations(ctx, lake)))
	require.Empty(t, stest.Collect(t, plain.ScanSettings(ctx, lake)))
	require.Empty(t, stest.Collect(t, plain.ScanCleanups(ctx)))
	_, _, err = plain.GetSetting(ctx, lake, "retention")
	require.ErrorIs(t, err, graveler.ErrSettingNotFound)
	_, err = plain.GetExpiration(ctx, lake, "c1")
	require.ErrorIs(t, err, graveler.ErrNotFound)
	start, err := plain.LogStart(ctx, lake, main.UID)
	require.NoError(t, err)
	require.Zero(t, start)
	mark, err := plain.Watermark(ctx)
	require.NoError(t, err)
	require.Zero(t, mark)

	_, err = plain.PutBranch(ctx, lake, main)
	require.ErrorIs(t, err, graveler.ErrReadOnly)
	require.ErrorIs(t, plain.RemoveBranch(ctx, lake, &graveler.Branch{ID: "x"}), graveler.ErrReadOnly)
	require.ErrorIs(t, plain.DropPartition(ctx, string(main.Token)), graveler.ErrReadOnly)

	// Whoever opens it for writing reads the same, record by record.
	s := openStore(t, sqlURL(database), kv.OpenOptions{})
	require.Equal(t, repositories, stest.Collect(t, s.ScanRepositories(ctx, "")))
	require.Equal(t, branches, stest.Collect(t, s.ScanBranches(ctx, lake, "")))
	require.Equal(t, commits, stest.Collect(t, s.ScanCommits(ctx, lake, "")))
	got, err := s.GetCommit(ctx, lake, "c4")
	require.NoError(t, err)
	require.Equal(t, merge, got)
}

func TestWhatTheOldProgramMadeIsWrittenAsAnythingElse(t *testing.T) {
	database := oldDatabase(t)
	ctx, s := t.Context(), openStore(t, sqlURL(database), kv.OpenOptions{})
	lake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	b, err := s.GetBranch(ctx, lake, "main")
	require.NoError(t, err)
	fence := &graveler.Fence{Repository: lake, Branch: b.Clone()}
	stage := func() error {
		return s.Apply(ctx, fence, b.Token, []graveler.StagedWrite{{Key: graveler.Key("new"), Value: &graveler.Value{Identity: []byte("i")}}})
	}
	require.NoError(t, stage())

	run(t, database, `UPDATE graveler_branches SET commit_id = 'c2' WHERE id = 'main'`)
	require.ErrorIs(t, stage(), graveler.ErrFenceFailed, "the old program moved it")
	_, err = s.PutBranch(ctx, lake, b)
	require.ErrorIs(t, err, graveler.ErrChanged)

	b, err = s.GetBranch(ctx, lake, "main")
	require.NoError(t, err)
	b.Nonce, b.Items, b.ItemCounter, b.Token = "n1", []graveler.Item{{Number: 1, Token: b.Token}}, 1, "lake-main:t2"
	b.Stamp, err = s.PutBranch(ctx, lake, b)
	require.NoError(t, err)
	got, err := s.GetBranch(ctx, lake, "main")
	require.NoError(t, err)
	require.Equal(t, b, got)
	require.Equal(t, []graveler.LogName{{Branch: "main", UID: b.UID}}, stest.Collect(t, s.ScanLogNames(ctx, lake, "main")), "it is the log that it had")
	require.Len(t, stest.Collect(t, s.ScanLogNames(ctx, lake, "")), 3)

	lake.ReadOnly, lake.Nonce = true, "n1"
	lake.Stamp, err = s.PutRepository(ctx, lake)
	require.NoError(t, err)
	gotLake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	require.Equal(t, lake, gotLake)
	require.Len(t, stest.Collect(t, s.ScanBranches(ctx, lake, "")), 3, "it is still the same repository")

	// One that the old program made again is another.
	bare, err := s.GetRepository(ctx, "bare")
	require.NoError(t, err)
	run(t, database, `UPDATE graveler_repositories SET creation_date = '2022-02-02Z' WHERE id = 'bare'`, `INSERT INTO graveler_branches VALUES ('bare', 'main', 't', 'c')`)
	_, err = s.GetBranch(ctx, bare, "main")
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	require.ErrorIs(t, s.PutCommit(ctx, bare, &graveler.Commit{ID: "c1"}), graveler.ErrRepositoryNotFound)
	require.ErrorIs(t, s.CreateTag(ctx, bare, &graveler.Tag{ID: "v1", Commit: "c1"}), graveler.ErrRepositoryNotFound)
	_, err = s.PutBranch(ctx, bare, &graveler.Branch{ID: "x", UID: "u", State: graveler.BranchLive})
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)

	require.NoError(t, s.DropPartition(ctx, lake.Partition()))
	require.Empty(t, stest.Collect(t, s.ScanCommits(ctx, lake, "")))
	require.NoError(t, s.RemoveRepository(ctx, lake))
}

func TestDamagedRowsAreErrorsThatNameThem(t *testing.T) {
	database := oldDatabase(t)
	ctx, s := t.Context(), openStore(t, sqlURL(database), kv.OpenOptions{})
	lake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	branchErr := func() error { _, err := s.GetBranch(ctx, lake, "main"); return err }
	commitErr := func() error { _, err := s.GetCommit(ctx, lake, "c2"); return err }
	for name, c := range map[string]struct {
		damage, repair, names string
		read                  func() error
	}{
		"branch without token":    {`UPDATE graveler_branches SET staging_token = NULL WHERE id = 'main'`, `UPDATE graveler_branches SET staging_token = 'lake-main:t1' WHERE id = 'main'`, "graveler_branches", branchErr},
		"branch without commit":   {`UPDATE graveler_branches SET commit_id = '' WHERE id = 'main'`, `UPDATE graveler_branches SET commit_id = 'c4' WHERE id = 'main'`, "graveler_branches", branchErr},
		"branch, no JSON":         {`INSERT INTO moraine_branches VALUES ('lake', 'main', '?')`, `DELETE FROM moraine_branches`, "moraine_branches", branchErr},
		"branch, no UID":          {`INSERT INTO moraine_branches VALUES ('lake', 'main', '{"state":1}')`, `DELETE FROM moraine_branches`, "moraine_branches", branchErr},
		"branch, item of nowhere": {`INSERT INTO moraine_branches VALUES ('lake', 'main', '{"uid":"u","state":1,"items":[{"number":1}]}')`, `DELETE FROM moraine_branches`, "moraine_branches", branchErr},
		"branches":                {`INSERT INTO moraine_branches VALUES ('lake', 'main', '[]')`, `DELETE FROM moraine_branches`, "moraine_branches", func() error { return stest.LastError(s.ScanBranches(ctx, lake, "")) }},
		"metadata of numbers":     {`UPDATE graveler_commits SET metadata = '{"k": 1}' WHERE id = 'c2'`, `UPDATE graveler_commits SET metadata = NULL`, "graveler_commits", commitErr},
		"commit of far away":      {`UPDATE graveler_commits SET creation_date = '9999-01-01Z' WHERE id = 'c2'`, `UPDATE graveler_commits SET creation_date = '2022-01-01Z'`, "graveler_commits", commitErr},
		"commit its own ancestor": {`UPDATE graveler_commits SET parents = '{c4}' WHERE id = 'c2'`, `UPDATE graveler_commits SET parents = '{c1}' WHERE id = 'c2'`, "own ancestor", commitErr},
		"commit, no JSON":         {`INSERT INTO moraine_commits VALUES ('lake', 'c2', '')`, `DELETE FROM moraine_commits`, "moraine_commits", commitErr},
		"repository, no JSON":     {`INSERT INTO moraine_repositories VALUES ('lake', 'u', '')`, `DELETE FROM moraine_repositories`, "moraine_repositories", func() error { _, err := s.GetRepository(ctx, "lake"); return err }},
		"move of another time": {`INSERT INTO moraine_moves VALUES ('` + lake.Partition() + `', 'u', 3, '{"time":4,"op":1}')`, `DELETE FROM moraine_moves`, "moraine_moves",
			func() error { return stest.LastError(s.ScanMoves(ctx, lake, "u", 0, 9)) }},
		"pin, no JSON":     {`INSERT INTO moraine_pins VALUES ('` + lake.Partition() + `', 'o', '')`, `DELETE FROM moraine_pins`, "moraine_pins", func() error { return stest.LastError(s.ScanPins(ctx, lake)) }},
		"cleanup, another": {`INSERT INTO moraine_cleanups VALUES ('p', '{"partition":"q"}')`, `DELETE FROM moraine_cleanups`, "moraine_cleanups", func() error { return stest.LastError(s.ScanCleanups(ctx)) }},
		"empty identity": {`UPDATE graveler_staging_kv SET identity = '' WHERE key = 'a'`, `UPDATE graveler_staging_kv SET identity = 'id' WHERE key = 'a'`, "graveler_staging_kv", func() error {
			_, err := s.Get(ctx, "lake-main:t1", graveler.Key("a"))
			return err
		}},
		"scan of an empty identity": {`UPDATE graveler_staging_kv SET identity = '' WHERE key = 'a'`, `UPDATE graveler_staging_kv SET identity = 'id' WHERE key = 'a'`, "graveler_staging_kv", func() error {
			it, err := s.Scan(ctx, "lake-main:t1", nil, nil)
			require.NoError(t, err)
			for it.Next() {
			}
			if it.Err() != nil {
				it.SeekGE(graveler.Key("b"))
				require.False(t, it.Next(), "nothing is skipped")
			}
			return errors.Join(it.Err(), it.Close())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.read())
			run(t, database, c.damage)
			err := c.read()
			require.ErrorIs(t, err, graveler.ErrCorrupt)
			require.ErrorContains(t, err, c.names)
			run(t, database, c.repair)
		})
	}
}

func TestTextsThatTheDatabaseCannotHoldAreRefused(t *testing.T) {
	s := newStore(t)
	ctx, repo := t.Context(), stest.Repository(t, s)
	require.ErrorIs(t, s.PutCommit(ctx, repo, &graveler.Commit{ID: "c1", Message: "a\x00b"}), graveler.ErrInvalidValue)
	require.ErrorIs(t, s.PutCommit(ctx, repo, &graveler.Commit{ID: "c1", Generation: 1 << 40}), graveler.ErrInvalidValue)
	require.Empty(t, stest.Collect(t, s.ScanCommits(ctx, repo, "")))
	_, err := s.PutSetting(ctx, repo, "retention", nil, graveler.Stamp("\xff\x00"))
	require.ErrorIs(t, err, graveler.ErrChanged, "no record has such a stamp")
}

func TestCommitsThatTheOldProgramGoesOnToMakeFollowTheOthers(t *testing.T) {
	database := oldDatabase(t)
	ctx, s := t.Context(), openStore(t, sqlURL(database), kv.OpenOptions{ReadOnly: true})
	lake, err := s.GetRepository(ctx, "lake")
	require.NoError(t, err)
	for i, id := range []string{"d1", "d2", "d3"} {
		run(t, database, fmt.Sprintf(`INSERT INTO graveler_commits VALUES ('lake', '%s', '', '', '1960-01-01Z', '', NULL, '{%s}', 1, 77)`, id, []string{"c4", "d1", "d2"}[i]))
		var readers errgroup.Group
		for range 8 {
			readers.Go(func() error {
				c, err := s.GetCommit(ctx, lake, graveler.CommitID(id))
				if err == nil && (c.Generation != int64(4+i) || c.LogTime != time.Date(2022, 1, 4, 0, 0, 0, 1+i, time.UTC).UnixNano()) {
					err = fmt.Errorf("generation %d, log time %d", c.Generation, c.LogTime)
				}
				return err
			})
		}
		require.NoError(t, readers.Wait())
	}
}
