// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
)

func TestFilesAreTakenOverOnlyAfterTheCutover(t *testing.T) {
	s := newSides(t, one())
	m := s.migration(t)
	m.InPlace = true
	_, err := m.Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrNotCutOver)

	marker, err := migrate.Cutover(t.Context(), s.url, false)
	require.NoError(t, err)
	require.NotNil(t, marker)
	again, err := migrate.Cutover(t.Context(), s.url, false)
	require.NoError(t, err)
	require.Equal(t, marker, again)

	_, err = m.Run(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.verify(t).Err())
	checkAgainstOracle(t, s)
	r, err := m.Graveler.GetRepository(t.Context(), "lake-000")
	require.NoError(t, err)
	require.Equal(t, "ns-lake-000", r.Namespace)

	_, err = migrate.Cutover(t.Context(), s.url, true)
	require.ErrorIs(t, err, cutover.ErrTakenOver)
}

func TestFilesThatAreCopiedStayWhereTheyWere(t *testing.T) {
	s := newSides(t, one())
	s.run(t)
	g := s.migration(t).Graveler
	r, err := g.GetRepository(t.Context(), "lake-000")
	require.NoError(t, err)
	require.NotEqual(t, "ns-lake-000", r.Namespace)
	files := collect(t, s.trees.ListFiles(context.Background(), "ns-lake-000"))
	require.NotEmpty(t, files)
	require.NoError(t, g.DeleteRepository(t.Context(), "lake-000"))
	require.Equal(t, files, collect(t, s.trees.ListFiles(context.Background(), "ns-lake-000")))
	require.Equal(t, 1, s.run(t).Copied, "what was deleted is copied again")
}

func TestTwoRepositoriesDoNotTakeOverOneFolder(t *testing.T) {
	s := newSides(t, small(1))
	_, err := migrate.Cutover(t.Context(), s.url, false)
	require.NoError(t, err)
	s.exec(t, "UPDATE graveler_repositories SET storage_namespace = 'ns-lake-000'; UPDATE graveler_commits SET meta_range_id = (SELECT max(meta_range_id) FROM graveler_commits WHERE repository_id = 'lake-000')")
	m := s.migration(t)
	m.InPlace = true
	_, err = m.Run(t.Context())
	require.ErrorIs(t, err, graveler.ErrNamespaceTaken)
	m.InPlace = false
	_, err = m.Run(t.Context())
	require.NoError(t, err)
}

func TestARunThatIsToDoOtherwiseWithTheFilesBeginsAnew(t *testing.T) {
	s := newSides(t, one())
	cut(t, s)
	_, err := migrate.Cutover(t.Context(), s.url, false)
	require.NoError(t, err)
	m := s.migration(t)
	m.InPlace = true
	report, err := m.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, report.Restarted)
	require.NoError(t, s.verify(t).Err())
	checkAgainstOracle(t, s)
	checkSound(t, s)
}

func TestRecordsOfAMigrationAreShownDecoded(t *testing.T) {
	s := newSides(t, one())
	s.run(t)
	it, err := s.kv.Scan(t.Context(), []byte(migrate.Partition), kv.ScanOptions{})
	require.NoError(t, err)
	decoded := 0
	for it.Next() {
		_, ok := migrate.Decode(migrate.Partition, it.Key(), it.Value())
		require.True(t, ok, "%s", it.Key())
		decoded++
	}
	require.NoError(t, it.Close())
	require.Equal(t, 2, decoded)
	_, ok := migrate.Decode("graveler", []byte("source"), nil)
	require.False(t, ok)
}

func TestWhatTheSQLStoreHasBesidesIsNotLostSilently(t *testing.T) {
	s := newSides(t, one())
	s.exec(t, `CREATE TABLE moraine_branches (repository_id text, id text, record text); CREATE TABLE moraine_settings (n int); CREATE TABLE moraine_pins (n int); INSERT INTO moraine_settings VALUES (1), (2);
		INSERT INTO moraine_branches SELECT repository_id, id, '{"uid":"x","counter":1}' FROM graveler_branches`)
	plan, err := s.migration(t).Plan(t.Context())
	require.NoError(t, err)
	require.NoError(t, plan.Err())
	require.Equal(t, []migrate.LeftBehind{{Table: "moraine_branches", Rows: 2}, {Table: "moraine_settings", Rows: 2}}, plan.Left)

	s.exec(t, `UPDATE moraine_branches SET record = '{"uid":"x","counter":1,"items":[{"number":1,"token":"sealed"}]}' WHERE id = 'main'`)
	_, err = s.migration(t).Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrSealed)
	require.ErrorContains(t, err, "moraine_branches, repository lake-000, main")
}
