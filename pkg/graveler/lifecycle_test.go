// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

var errBroken = errors.New("connection broken")

// brokenRefs fails chosen calls, before or after they did their work.
type brokenRefs struct {
	graveler.Refs
	mu   sync.Mutex
	fail func(call string) (before, after bool)
	// apart publishes one record after the other.
	apart bool
	// afterwards is called once between the work of a call and its failure.
	afterwards func()
}

func (b *brokenRefs) around(call string, do func() error) error {
	b.mu.Lock()
	before, after := b.fail(call)
	b.mu.Unlock()
	if before {
		return fmt.Errorf("%s: %w", call, errBroken)
	}
	err := do()
	if err == nil && after {
		if do := b.afterwards; do != nil {
			b.afterwards = nil
			do()
		}
		return fmt.Errorf("%s: %w", call, errBroken)
	}
	return err
}

func (b *brokenRefs) PutRepository(ctx context.Context, r *graveler.Repository) (s graveler.Stamp, err error) {
	err = b.around("PutRepository", func() error { s, err = b.Refs.PutRepository(ctx, r); return err })
	return s, err
}

func (b *brokenRefs) RemoveRepository(ctx context.Context, r *graveler.Repository) error {
	return b.around("RemoveRepository", func() error { return b.Refs.RemoveRepository(ctx, r) })
}

func (b *brokenRefs) PutBranch(ctx context.Context, r *graveler.Repository, br *graveler.Branch) (s graveler.Stamp, err error) {
	err = b.around("PutBranch", func() error { s, err = b.Refs.PutBranch(ctx, r, br); return err })
	return s, err
}

func (b *brokenRefs) PublishBranch(ctx context.Context, r *graveler.Repository, br *graveler.Branch, before graveler.Preceding) (s graveler.Stamp, err error) {
	if b.apart {
		return b.publishApart(ctx, r, br, before)
	}
	err = b.around("PutBranch", func() error { s, err = b.Refs.PublishBranch(ctx, r, br, before); return err })
	return s, err
}

func (b *brokenRefs) publishApart(ctx context.Context, r *graveler.Repository, br *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	if before.Commit != nil {
		if err := b.PutCommit(ctx, r, before.Commit); err != nil {
			return nil, err
		}
	}
	if before.Move != nil {
		if err := b.PutMove(ctx, r, br.UID, *before.Move); err != nil {
			return nil, err
		}
	}
	for _, c := range before.Cleanups {
		if err := b.PutCleanup(ctx, c); err != nil {
			return nil, err
		}
	}
	return b.PutBranch(ctx, r, br)
}

func (b *brokenRefs) RemoveBranch(ctx context.Context, r *graveler.Repository, br *graveler.Branch) error {
	return b.around("RemoveBranch", func() error { return b.Refs.RemoveBranch(ctx, r, br) })
}

func (b *brokenRefs) PutMove(ctx context.Context, r *graveler.Repository, uid string, m graveler.Move) error {
	return b.around("PutMove", func() error { return b.Refs.PutMove(ctx, r, uid, m) })
}

func (b *brokenRefs) PutCommit(ctx context.Context, r *graveler.Repository, c *graveler.Commit) error {
	return b.around("PutCommit", func() error { return b.Refs.PutCommit(ctx, r, c) })
}

func (b *brokenRefs) PutCleanup(ctx context.Context, c graveler.Cleanup) error {
	return b.around("PutCleanup", func() error { return b.Refs.PutCleanup(ctx, c) })
}

func (b *brokenRefs) DropPartition(ctx context.Context, p string) error {
	return b.around("DropPartition", func() error { return b.Refs.DropPartition(ctx, p) })
}

// breakable returns an edit that puts broken refs in place, and the knob that breaks them.
func breakable() (edit func(*graveler.Config), breaks *func(call string) (before, after bool)) {
	never := func(string) (bool, bool) { return false, false }
	breaks = &never
	return func(c *graveler.Config) {
		c.Refs = &brokenRefs{Refs: c.Refs, fail: func(call string) (bool, bool) { return (*breaks)(call) }}
	}, breaks
}

// Every call of a commit fails once, before or after its work. Then all is as if nothing had happened, or as if the commit had
// been made; a second try succeeds either way.
func TestCommitCutOffAnywhereLosesNothing(t *testing.T) {
	for apart, calls := range map[bool]int{false: 2, true: 6} { // seal and publish; seal, commit, move, two tokens, record
		at := 1
		for cutOffCommit(t, apart, at, false) && cutOffCommit(t, apart, at, true) {
			at++
		}
		require.Equal(t, calls, at-1, "calls of a commit, published apart: %v", apart)
	}
}

// cutOffCommit reports whether a commit makes so many calls.
func cutOffCommit(t *testing.T, apart bool, at int, after bool) bool {
	ctx := context.Background()
	edit, breaks := breakable()
	f := newFixture(t, edit, dropAtOnce)
	f.config.Refs.(*brokenRefs).apart = apart
	f.set(t, "a", "1")
	first := f.commit(t, "first")
	f.set(t, "b", "2")
	require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("a")))
	f.set(t, "c", "3")
	calls := 0
	*breaks = func(string) (bool, bool) { calls++; return calls == at && !after, calls == at && after }
	res, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "second"})
	if calls < at {
		require.NoError(t, err)
		return false
	}
	*breaks = func(string) (bool, bool) { return false, false }
	if err != nil {
		require.ErrorIs(t, err, errBroken)
		res, err = f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "again"})
		require.NoError(t, err)
	}
	require.Equal(t, []graveler.CommitID{first.ID}, res.Commit.Parents)
	require.Equal(t, []string{"b=2", "c=3"}, show(t, f.Graveler, "main@", graveler.ListOptions{}))
	require.Len(t, collect(t, f.BranchLog(ctx, "lake", "main", 0)), 3)
	return true
}

// An unknown outcome of the last write of a commit is settled by looking, so that the caller is told the truth.
func TestCommitWithUnknownOutcomeOfItsPublishSucceeds(t *testing.T) {
	ctx := context.Background()
	for _, after := range []bool{false, true} {
		edit, breaks := breakable()
		f := newFixture(t, edit)
		f.set(t, "a", "1")
		puts := 0
		*breaks = func(call string) (bool, bool) {
			if call == "PutBranch" {
				puts++
			}
			hit := call == "PutBranch" && puts == 2 // the first seals
			return hit && !after, hit && after
		}
		res, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "m"})
		require.NoError(t, err)
		head, err := f.ResolveRef(ctx, "lake", "main")
		require.NoError(t, err)
		require.Equal(t, res.Commit.ID, head.ID)
		require.Len(t, collect(t, f.BranchLog(ctx, "lake", "main", 0)), 2)
	}
}

func TestBranchLifecycle(t *testing.T) {
	f := newFixture(t, dropAtOnce)
	ctx := context.Background()
	f.set(t, "a", "1")
	c := f.commit(t, "first")
	f.set(t, "b", "2")

	b, err := f.CreateBranch(ctx, "lake", "feature/x", "main")
	require.NoError(t, err)
	require.Equal(t, c.ID, b.Head)
	require.Equal(t, []string{"a=1"}, show(t, f.Graveler, "feature/x", graveler.ListOptions{}), "uncommitted changes stay behind")
	_, err = f.CreateBranch(ctx, "lake", "feature/x", "main")
	require.ErrorIs(t, err, graveler.ErrExists)
	_, err = f.CreateBranch(ctx, "lake", "y", "nowhere")
	require.ErrorIs(t, err, graveler.ErrRefNotFound)

	require.NoError(t, f.Set(ctx, "lake", "feature/x", key("c"), value("3")))
	require.ErrorIs(t, f.DeleteBranch(ctx, "lake", "feature/x", false), graveler.ErrDirtyBranch)
	require.NoError(t, f.DeleteBranch(ctx, "lake", "feature/x", true))
	require.ErrorIs(t, f.DeleteBranch(ctx, "lake", "feature/x", true), graveler.ErrBranchNotFound)
	require.ErrorIs(t, f.Set(ctx, "lake", "feature/x", key("c"), value("3")), graveler.ErrBranchNotFound)
	require.ErrorIs(t, f.DeleteBranch(ctx, "lake", "main", true), graveler.ErrDefaultBranch)

	again, err := f.CreateBranch(ctx, "lake", "feature/x", "main~1")
	require.NoError(t, err)
	require.NotEqual(t, b.UID, again.UID)
	require.Empty(t, show(t, f.Graveler, "feature/x", graveler.ListOptions{}))
	names := []string{}
	for _, b := range collect(t, f.ListBranches(ctx, "lake", "")) {
		names = append(names, string(b.ID))
	}
	require.Equal(t, []string{"feature/x", "main"}, names)

	repo, err := f.config.Refs.GetRepository(ctx, "lake")
	require.NoError(t, err)
	require.Equal(t, []graveler.LogName{{Branch: "feature/x", UID: b.UID}, {Branch: "feature/x", UID: again.UID}}, collect(t, f.config.Refs.ScanLogNames(ctx, repo, "feature/x")))
	moves := collect(t, f.config.Refs.ScanMoves(ctx, repo, b.UID, 0, time.Now().UnixNano()))
	require.Len(t, moves, 2, "the log of the deleted branch is whole without its record")
	require.Equal(t, graveler.OpDelete, moves[1].Op)
	require.Equal(t, c.ID, moves[1].Old)
}

// A branch whose files have gone can still be deleted, with force.
func TestABranchWithDamagedDataCanBeDeleted(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.commit(t, "first")
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	require.NoError(t, f.Set(ctx, "lake", "dev", key("a"), value("2")))
	r, err := f.GetRepository(ctx, "lake")
	require.NoError(t, err)
	require.NoError(t, f.trees.Drop(ctx, r.Namespace))
	require.ErrorIs(t, f.DeleteBranch(ctx, "lake", "dev", false), graveler.ErrCorrupt)
	require.NoError(t, f.DeleteBranch(ctx, "lake", "dev", true))
}

func TestTags(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	c := f.commit(t, "first")
	tag, err := f.CreateTag(ctx, "lake", "v1", "main")
	require.NoError(t, err)
	require.Equal(t, c.ID, tag.Commit)
	_, err = f.CreateTag(ctx, "lake", "v1", "main~1")
	require.ErrorIs(t, err, graveler.ErrExists)
	_, err = f.CreateTag(ctx, "lake", "main", "main")
	require.ErrorIs(t, err, graveler.ErrExists, "a branch's name")
	_, err = f.CreateBranch(ctx, "lake", "v1", "main")
	require.ErrorIs(t, err, graveler.ErrExists, "a tag's name")
	f.set(t, "a", "2")
	f.commit(t, "second")
	require.Equal(t, []string{"a=1"}, show(t, f.Graveler, "v1", graveler.ListOptions{}))
	require.Len(t, collect(t, f.ListTags(ctx, "lake", "")), 1)
	require.Empty(t, collect(t, f.ListTags(ctx, "lake", "v1")))
	require.NoError(t, f.DeleteTag(ctx, "lake", "v1"))
	require.ErrorIs(t, f.DeleteTag(ctx, "lake", "v1"), graveler.ErrTagNotFound)
	_, err = f.GetTag(ctx, "lake", "v1")
	require.ErrorIs(t, err, graveler.ErrTagNotFound)
}

func TestReadOnlyRepositoriesRefuseWrites(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.CreateRepository(ctx, "frozen", graveler.CreateRepositoryParams{ReadOnly: true})
	require.NoError(t, err)
	_, branchErr := f.CreateBranch(ctx, "frozen", "b", "main")
	_, tagErr := f.CreateTag(ctx, "frozen", "t", "main")
	_, commitErr := f.Commit(ctx, "frozen", "main", graveler.CommitParams{AllowEmpty: true})
	for _, err := range []error{
		f.Set(ctx, "frozen", "main", key("k"), value("v")),
		f.SetIfAbsent(ctx, "frozen", "main", key("k"), value("v")),
		f.Delete(ctx, "frozen", "main", key("k")),
		f.DeletePrefix(ctx, "frozen", "main", nil),
		f.Compact(ctx, "frozen", "main"),
		branchErr, tagErr, commitErr,
	} {
		require.ErrorIs(t, err, graveler.ErrReadOnly)
	}
}

func TestMaintainCompactsLongListsAndDropsTokens(t *testing.T) {
	f := newFixture(t, dropAtOnce)
	ctx := context.Background()
	for i := range 70 { // more than a list may be long
		f.set(t, fmt.Sprintf("k%02d", i), "x")
		require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key(fmt.Sprintf("k%02d", i-1))))
	}
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	require.LessOrEqual(t, len(b.Items), 66)
	require.NotEmpty(t, b.Base)
	report, err := f.Maintain(ctx)
	require.NoError(t, err)
	if len(b.Items) >= 8 {
		require.Equal(t, 1, report.BranchesCompacted)
	}
	require.Equal(t, []string{"k69=x"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	require.NoError(t, f.Compact(ctx, "lake", "main"))
	_, err = f.Maintain(ctx)
	require.NoError(t, err)
	require.Empty(t, leftovers(t, f))
}

func TestNothingIsDroppedBeforeTheGracePeriodOrWhileListed(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := newFixture(t, func(c *graveler.Config) { c.Now = func() time.Time { return now } })
	ctx := context.Background()
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	// Somebody registered the token and died before the record stopped listing it.
	repo, err := f.GetRepository(ctx, "lake")
	require.NoError(t, err)
	require.NoError(t, f.config.Refs.PutCleanup(ctx, graveler.Cleanup{
		Partition: string(b.Token), Registered: now.UnixNano(), RepositoryID: "lake", RepositoryUID: repo.UID, Branch: "main",
	}))
	f.set(t, "a", "1")
	now = now.Add(time.Hour)
	report, err := f.Maintain(ctx)
	require.NoError(t, err)
	require.Zero(t, report.PartitionsDropped)
	require.Equal(t, []string{"a=1"}, show(t, f.Graveler, "main", graveler.ListOptions{}))

	f.commit(t, "first")
	report, err = f.Maintain(ctx)
	require.NoError(t, err)
	require.Zero(t, report.PartitionsDropped, "registered again just now")
	now = now.Add(time.Hour)
	report, err = f.Maintain(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, report.PartitionsDropped)
}

func TestClocksThatAreTooFarApartAreRefused(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	f := newFixture(t, func(c *graveler.Config) { c.Now = func() time.Time { return now } })
	ctx := context.Background()
	f.set(t, "a", "1")
	start := now
	now = start.Add(-10 * time.Minute)
	_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "late clock"})
	require.ErrorIs(t, err, graveler.ErrClockSkew)
	_, err = f.another(t).Commit(ctx, "lake", "main", graveler.CommitParams{Message: "late clock"})
	require.ErrorIs(t, err, graveler.ErrClockSkew)
	now = start.Add(-time.Minute)
	first := f.commit(t, "a little late is fine")
	require.Greater(t, first.LogTime, start.UnixNano()-1)
	moves := collect(t, f.BranchLog(ctx, "lake", "main", 0))
	require.Greater(t, moves[1].Time, moves[0].Time, "and times still increase")
}

func TestHooks(t *testing.T) {
	var refuse error
	var seen []string
	var posted []graveler.CommitID
	f := newFixture(t, func(c *graveler.Config) {
		c.Hooks = graveler.Hooks{
			PreCommit: func(_ context.Context, e graveler.PreCommitEvent) error {
				for d, err := range e.Changes {
					if err != nil {
						return err
					}
					seen = append(seen, string(d.Key))
				}
				return refuse
			},
			PostCommit: func(_ context.Context, _ graveler.RepositoryID, _ graveler.BranchID, c graveler.Commit) {
				posted = append(posted, c.ID)
			},
		}
	})
	ctx := context.Background()
	f.set(t, "a", "1")
	refuse = errors.New("not on a Friday")
	_, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "m"})
	require.ErrorIs(t, err, graveler.ErrRefused)
	require.ErrorIs(t, err, refuse)
	require.Equal(t, []string{"a"}, seen)
	refuse = nil
	c := f.commit(t, "m")
	require.Equal(t, []string{"a", "a"}, seen)
	require.Equal(t, []graveler.CommitID{c.ID}, posted)
}

func TestCommitFields(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	at := time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("", 3600))
	metadata := map[string]string{"k": "v"}
	res, err := f.Commit(ctx, "lake", "main", graveler.CommitParams{
		Message: "m", Committer: "ada", Metadata: metadata, CreatedAt: at, AllowEmpty: true,
	})
	require.NoError(t, err)
	metadata["k"] = "changed by the caller"
	c, err := f.another(t).ResolveRef(ctx, "lake", string(res.Commit.ID))
	require.NoError(t, err)
	require.Equal(t, res.Commit, *c)
	require.Equal(t, at.UTC(), c.CreatedAt)
	require.Equal(t, map[string]string{"k": "v"}, c.Metadata)
	require.EqualValues(t, 2, c.Generation)
	require.Equal(t, c.ID, c.ComputeID())

	_, err = f.Commit(ctx, "lake", "main", graveler.CommitParams{Message: strings.Repeat("x", 1<<20), AllowEmpty: true})
	require.ErrorIs(t, err, graveler.ErrTooLarge)
}

func TestResultsAreCopies(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	b.Token, b.Stamp[0] = "changed", b.Stamp[0]+1
	v, err := f.Get(ctx, "lake", "main", key("a"))
	require.NoError(t, err)
	v.Data[0] = 'x'
	c := f.commit(t, "m")
	c.Parents[0] = "changed"
	require.Equal(t, []string{"a=1"}, show(t, f.Graveler, "main", graveler.ListOptions{}))
	require.Len(t, collect(t, f.Log(ctx, "lake", "main", graveler.LogOptions{})), 2)
}
