// SPDX-License-Identifier: Apache-2.0

package cutover_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close(context.Background())) })
	return conn
}

func TestAMarkerKeepsWritersOut(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	writer, other := connect(t, url), connect(t, url)
	guarded := func() error {
		return pgx.BeginFunc(t.Context(), writer, func(tx pgx.Tx) error { return cutover.Guard(t.Context(), tx) })
	}
	require.NoError(t, guarded())
	require.NoError(t, cutover.Set(t.Context(), other))
	require.ErrorIs(t, guarded(), cutover.ErrCutOver)
	first, err := cutover.Read(t.Context(), other)
	require.NoError(t, err)
	require.NoError(t, cutover.Set(t.Context(), other))
	again, err := cutover.Read(t.Context(), other)
	require.NoError(t, err)
	require.Equal(t, first, again)
	for range 2 {
		require.NoError(t, cutover.Back(t.Context(), other))
		require.NoError(t, guarded())
	}
}

func TestAMarkerWaitsForTheWritersUnderWay(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	writer, other, watcher := connect(t, url), connect(t, url), connect(t, url)
	tx, err := writer.Begin(t.Context())
	require.NoError(t, err)
	require.NoError(t, cutover.Guard(t.Context(), tx))
	set := make(chan error, 1)
	go func() { set <- cutover.Set(context.Background(), other) }()
	// Nobody tells that it waits but the server.
	for waiting := 0; waiting == 0; {
		require.NoError(t, watcher.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&waiting))
	}
	_, err = tx.Exec(t.Context(), "CREATE TABLE written()")
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-set)
	m, err := cutover.Read(t.Context(), watcher)
	require.NoError(t, err)
	require.NotNil(t, m)
}

func TestThereIsNoWayBackFromFilesThatWereTakenOver(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	conn := connect(t, url)
	require.ErrorIs(t, cutover.TakeOver(t.Context(), conn, "u1"), cutover.ErrNotCutOver)
	require.NoError(t, cutover.Set(t.Context(), conn))
	require.Error(t, cutover.TakeOver(t.Context(), conn, ""))
	before, err := cutover.Read(t.Context(), conn)
	require.NoError(t, err)
	require.Empty(t, before.By)
	for range 2 {
		require.NoError(t, cutover.TakeOver(t.Context(), conn, "u1"))
		require.NoError(t, cutover.Set(t.Context(), conn))
		m, err := cutover.Read(t.Context(), conn)
		require.NoError(t, err)
		require.Equal(t, &cutover.Marker{At: before.At, By: "u1"}, m)
	}
	require.ErrorIs(t, cutover.TakeOver(t.Context(), conn, "u2"), cutover.ErrTakenOver)
	err = cutover.Back(t.Context(), conn)
	require.ErrorIs(t, err, cutover.ErrTakenOver)
	require.ErrorContains(t, err, "u1")
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error { return cutover.Guard(t.Context(), tx) })
	require.ErrorIs(t, err, cutover.ErrCutOver)
}
