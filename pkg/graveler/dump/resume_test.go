// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rs/xid"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// A load that was cut off is taken up: what was written may be written again, if it is the same.
func TestALoadIsTakenUpWhereItWasCutOff(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	now := time.Unix(1_700_000_000, 0)
	s := newStore(t, mem.New(), trees, func(c *graveler.Config) { c.Now = func() time.Time { return now } })
	p := graveler.LoadParams{DefaultBranch: "main", UID: xid.New().String()}
	_, err := s.ResumeLoad(ctx, "lake", p)
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	first, err := s.LoadRepository(ctx, "lake", p)
	require.NoError(t, err)
	require.Equal(t, p.UID, first.Repository().UID)

	c := &graveler.Commit{ID: graveler.CommitID(strings.Repeat("a", 64)), Version: graveler.CarriedVersion, Tree: trees.EmptyTree(), CreatedAt: now, Generation: 1, LogTime: 1}
	require.ErrorIs(t, first.PutCommit(ctx, c), graveler.ErrInvalidValue, "without its digest")
	c.Nonce = c.Digest()
	b := graveler.Branch{ID: "main", UID: xid.New().String(), Head: c.ID, LastMove: graveler.Move{Time: 1, Op: graveler.OpCreate, New: c.ID}}
	entry := graveler.Entry{Key: graveler.Key("k"), Value: &graveler.Value{Identity: []byte("i")}}
	write := func(l *graveler.Loading, tag graveler.CommitID, uid string) error {
		made := b
		made.UID = uid
		if err := l.PutCommit(ctx, c); err != nil {
			return err
		}
		if err := l.PutTag(ctx, graveler.Tag{ID: "v1", Commit: tag}); err != nil {
			return err
		}
		branch, err := l.PutBranch(ctx, made)
		if err == nil {
			err = l.Stage(ctx, branch, []graveler.Entry{entry})
		}
		if err == nil {
			err = l.Flush(ctx)
		}
		return err
	}
	require.NoError(t, write(first, c.ID, b.UID))

	// Nobody else takes it for his.
	other := p
	other.UID = xid.New().String()
	_, err = s.ResumeLoad(ctx, "lake", other)
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	_, err = s.LoadRepository(ctx, "lake", p)
	require.ErrorIs(t, err, graveler.ErrExists)

	// Long after upkeep might have undone it, but did not.
	now = now.Add(time.Hour)
	second, err := s.ResumeLoad(ctx, "lake", p)
	require.NoError(t, err)
	report, err := s.Maintain(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, report.CreationsWaiting, "it lives")
	require.NoError(t, write(second, c.ID, b.UID))
	repo, err := second.Finish(ctx)
	require.NoError(t, err)
	require.Equal(t, p.UID, repo.UID)
	v, err := s.Get(ctx, "lake", "main", graveler.Key("k"))
	require.NoError(t, err)
	require.Equal(t, "i", string(v.Identity))
	_, err = s.ResumeLoad(ctx, "lake", p)
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound, "it has ended")
	require.ErrorIs(t, write(first, c.ID, b.UID), graveler.ErrRepositoryInDeletion, "the one that stood still is told")
}

func TestALoadThatIsTakenUpDoesNotChangeWhatIsThere(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	s := newStore(t, mem.New(), trees)
	p := graveler.LoadParams{DefaultBranch: "main", UID: xid.New().String()}
	first, err := s.LoadRepository(ctx, "lake", p)
	require.NoError(t, err)
	a, b := graveler.CommitID(strings.Repeat("a", 64)), graveler.CommitID(strings.Repeat("b", 64))
	branch := graveler.Branch{ID: "main", UID: xid.New().String(), Head: a, LastMove: graveler.Move{Time: 1, Op: graveler.OpCreate, New: a}}
	_, err = first.PutBranch(ctx, branch)
	require.NoError(t, err)
	require.NoError(t, first.PutTag(ctx, graveler.Tag{ID: "v1", Commit: a}))
	require.NoError(t, first.Flush(ctx))

	second, err := s.ResumeLoad(ctx, "lake", p)
	require.NoError(t, err)
	moved := branch
	moved.Head, moved.LastMove.New = b, b
	_, err = second.PutBranch(ctx, moved)
	require.ErrorIs(t, err, graveler.ErrExists)
	require.NoError(t, second.PutTag(ctx, graveler.Tag{ID: "v1", Commit: b}))
	require.ErrorIs(t, second.Flush(ctx), graveler.ErrExists)
	require.NoError(t, second.Abort(ctx))
}
