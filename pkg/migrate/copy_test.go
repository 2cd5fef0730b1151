// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/migrate"
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
