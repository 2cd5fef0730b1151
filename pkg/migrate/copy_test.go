// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

func (s *sides) copyTo(t fataler, to kv.Store) *migrate.Copy {
	t.Helper()
	return &migrate.Copy{From: s.migration(t).Graveler, To: s.over(t, to).Graveler, KV: to, Files: func(ns string) string { return ns }, Program: "test"}
}

func TestACopyIsTheSame(t *testing.T) {
	s := newSides(t, small(5))
	s.run(t)
	pg, err := kv.Open(t.Context(), testpg.Start(t).NewDatabase(t), all.Engines(), kv.OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Close()) })
	r, err := s.copyTo(t, pg).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, migrate.CopyReport{Copied: 3}, r)
	r, err = s.copyTo(t, pg).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, migrate.CopyReport{AlreadyThere: 3}, r)

	there := *s
	there.kv = pg
	checkAgainstOracle(t, &there)
	back := mem.New()
	_, err = there.copyTo(t, back).Run(t.Context())
	require.NoError(t, err)
	there.kv = back
	checkAgainstOracle(t, &there)
	checkSound(t, &there)
}

func TestACopyThatIsCutOffIsTakenUp(t *testing.T) {
	s := newSides(t, small(5))
	s.run(t)
	for at := int64(1); ; at += 37 {
		to := mem.New()
		_, err := s.copyTo(t, dying(to, at, at%2 == 0)).Run(t.Context())
		if err != nil {
			require.True(t, errorsIsInjected(err), "%v", err)
		}
		r, failed := s.copyTo(t, to).Run(t.Context())
		require.NoError(t, failed, "write %d", at)
		require.Equal(t, 3, r.Copied+r.AlreadyThere)
		there := *s
		there.kv = to
		checkAgainstOracle(t, &there)
		if err == nil {
			return
		}
	}
}

func TestACopyRefusesWhatIsThere(t *testing.T) {
	s := newSides(t, small(5))
	s.run(t)
	to := mem.New()
	_, err := s.over(t, to).Graveler.CreateRepository(t.Context(), "lake-000", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	_, err = s.copyTo(t, to).Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrTargetTaken)
}

func TestADiagnosisHasNumbersAndNoNames(t *testing.T) {
	s := newSides(t, small(5))
	s.exec(t, "CREATE TABLE auth_users (id int, secret text); INSERT INTO auth_users VALUES (1, 'password'), (2, 'x')")
	from, err := migrate.DiagnoseSource(t.Context(), s.url)
	require.NoError(t, err)
	require.EqualValues(t, 2, *from.Users)
	require.EqualValues(t, 1, from.OrphanTokens)
	require.EqualValues(t, 3, from.OrphanRows)
	require.EqualValues(t, 3, from.Tables[0].Rows)
	require.Positive(t, from.Tables[4].Bytes)
	require.Nil(t, from.CutOver)

	s.run(t)
	m := s.migration(t)
	to, err := migrate.Diagnose(context.Background(), m.Graveler, s.kv)
	require.NoError(t, err)
	require.Len(t, to.Repositories, 3)
	require.Equal(t, 3, to.Migrated)
	require.Equal(t, 30, to.Repositories[0].Commits)
	for _, report := range []any{from, to} {
		text, err := json.Marshal(report)
		require.NoError(t, err)
		for _, secret := range []string{"password", "127.0.0.1", "lake", "main", "data/0", "ns-"} {
			require.NotContains(t, string(text), secret)
		}
	}
}

// dumped are the lines of the dumps of all repositories, in order, but for those that begin and end them.
func (s *sides) dumped(t fataler, store kv.Store) (lines []string) {
	t.Helper()
	g := s.over(t, store).Graveler
	for repo, err := range g.ListRepositories(context.Background(), "") {
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, dump.Write(context.Background(), g, repo.ID, "test", &b))
		for line := range strings.Lines(b.String()) {
			if !strings.HasPrefix(line, `{"header"`) && !strings.HasPrefix(line, `{"trailer"`) {
				lines = append(lines, string(repo.ID)+" "+line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

func TestACopyGoesFromAFileToAServerAndBack(t *testing.T) {
	s := emptySides(t)
	open := func(url string) kv.Store {
		store, err := kv.Open(t.Context(), url, all.Engines(), kv.OpenOptions{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, store.Close()) })
		return store
	}
	s.kv = open("bolt:" + t.TempDir() + "/meta.db")
	s.fill(t, small(11))
	s.run(t)
	require.NoError(t, s.verify(t).Err())
	want := s.dumped(t, s.kv)
	require.Greater(t, len(want), 200)
	at := *s
	for _, url := range []string{testpg.Start(t).NewDatabase(t), "bolt:" + t.TempDir() + "/back.db"} {
		to := open(url)
		r, err := at.copyTo(t, to).Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, 3, r.Copied)
		at.kv = to
		require.Equal(t, want, at.dumped(t, to))
		checkAgainstOracle(t, &at)
		checkSound(t, &at)
	}
}

// What a process that was killed had sent to a server may land after the next one has looked for it.
func TestACopyIsTakenUpThoughItsBeginningCameLate(t *testing.T) {
	s := newSides(t, small(5))
	s.run(t)
	to := mem.New()
	const noted = 2 // the write after that of the note
	_, err := s.copyTo(t, dying(to, noted, false)).Run(t.Context())
	require.True(t, errorsIsInjected(err), "%v", err)
	var note migratepb.CopiedRepositoryData
	key := []byte("copies/0ab")
	_, err = kv.GetMessage(t.Context(), to, []byte(migrate.Partition), key, &note)
	require.NoError(t, err)
	_, err = s.copyTo(t, dying(to, noted, false)).Run(t.Context())
	require.True(t, errorsIsInjected(err), "%v", err)
	_, err = s.over(t, to).Graveler.LoadRepository(t.Context(), "0ab", graveler.LoadParams{UID: note.Uid, DefaultBranch: "main"})
	require.NoError(t, err)
	r, err := s.copyTo(t, to).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, r.Copied)
	require.Equal(t, s.dumped(t, s.kv), s.dumped(t, to))
}

func TestOfTwoCopiesAtATimeOneIsTold(t *testing.T) {
	s := newSides(t, small(5))
	s.run(t)
	to := mem.New()
	first := true
	slow := kvtest.Faulty(to, func(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
		err := call(ctx)
		if first && op.Writes == 0 { // what it has read of the target is old when it goes on
			first = false
			_, failed := s.copyTo(t, to).Run(t.Context())
			require.NoError(t, failed)
		}
		return err
	})
	_, err := s.copyTo(t, slow).Run(t.Context())
	require.Error(t, err)
	r, err := s.copyTo(t, to).Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, migrate.CopyReport{AlreadyThere: 3}, r)
}
