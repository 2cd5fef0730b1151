// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
)

// held has a transaction of another program hold the row of a branch, while f runs.
func held(t *testing.T, database string, f func(ctx context.Context, tx pgx.Tx)) {
	within(t, database, func(ctx context.Context, conn *pgx.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, "SELECT FROM graveler_branches WHERE id = 'main' FOR UPDATE")
			if err == nil {
				f(ctx, tx)
			}
			return err
		})
	})
}

// waiting waits until so many sessions of stores wait for a lock.
func waiting(t *testing.T, ctx context.Context, tx pgx.Tx, sessions int) {
	require.Eventually(t, func() bool {
		var n int
		err := tx.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'moraine' AND wait_event_type = 'Lock' AND datname = current_database()").Scan(&n)
		return err == nil && n == sessions
	}, 30*time.Second, time.Millisecond)
}

func TestAnUnknownOutcomeIsNotThatTheRecordChanged(t *testing.T) {
	database := testpg.Start(t).NewDatabase(t)
	s := openStore(t, sqlURL(database), kv.OpenOptions{})
	ctx, repo := t.Context(), stest.Repository(t, s)
	b := &graveler.Branch{ID: "main", UID: "u", State: graveler.BranchLive, Nonce: "n1"}
	var err error
	b.Stamp, err = s.PutBranch(ctx, repo, b)
	require.NoError(t, err)

	outcome := make(chan error, 1)
	held(t, database, func(ctx context.Context, tx pgx.Tx) {
		next := b.Clone()
		next.Nonce = "n2"
		go func() {
			_, err := s.PutBranch(ctx, repo, next)
			outcome <- err
		}()
		waiting(t, ctx, tx, 1)
		_, err := tx.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'moraine' AND wait_event_type = 'Lock' AND datname = current_database()")
		require.NoError(t, err)
		err = <-outcome
		require.Error(t, err)
		require.NotErrorIs(t, err, graveler.ErrChanged)
	})
	got, err := s.GetBranch(ctx, repo, "main")
	require.NoError(t, err, "reads go on")
	require.Equal(t, b, got)
}

func TestAWriterWaitsForTheRowAndThenSeesWhatItBecame(t *testing.T) {
	database := testpg.Start(t).NewDatabase(t)
	s := openStore(t, sqlURL(database), kv.OpenOptions{})
	ctx, repo := t.Context(), stest.Repository(t, s)
	b := &graveler.Branch{ID: "main", UID: "u", State: graveler.BranchLive, Nonce: "n1", Head: "c1"}
	var err error
	b.Stamp, err = s.PutBranch(ctx, repo, b)
	require.NoError(t, err)
	outcome := make(chan error, 1)
	held(t, database, func(ctx context.Context, tx pgx.Tx) {
		go func() {
			_, err := s.PutBranch(ctx, repo, b)
			outcome <- err
		}()
		waiting(t, ctx, tx, 1)
		_, err := tx.Exec(ctx, "UPDATE graveler_branches SET commit_id = 'c2' WHERE id = 'main'")
		require.NoError(t, err)
	})
	require.ErrorIs(t, <-outcome, graveler.ErrChanged)
}

func TestAContextThatEndsEndsTheWait(t *testing.T) {
	database := testpg.Start(t).NewDatabase(t)
	s := openStore(t, sqlURL(database), kv.OpenOptions{})
	repo := stest.Repository(t, s)
	b := &graveler.Branch{ID: "main", UID: "u", State: graveler.BranchLive, Nonce: "n1"}
	var err error
	b.Stamp, err = s.PutBranch(t.Context(), repo, b)
	require.NoError(t, err)
	held(t, database, func(ctx context.Context, tx pgx.Tx) {
		ending, end := context.WithCancel(ctx)
		outcome := make(chan error, 1)
		go func() {
			_, err := s.PutBranch(ending, repo, b)
			outcome <- err
		}()
		waiting(t, ctx, tx, 1)
		closed := make(chan error, 1)
		go func() { closed <- s.Close() }()
		select {
		case <-closed:
			t.Error("Close did not wait")
		default:
		}
		end()
		require.ErrorIs(t, <-outcome, context.Canceled)
		require.NoError(t, <-closed)
	})
}
