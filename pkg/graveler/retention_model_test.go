// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// retained is a repository that is used and shortened at random.
type retained struct {
	*fixture
	trees graveler.Trees
	ns    string
	now   time.Time
	days  map[graveler.BranchID]int // rules; "": of those that it does not have
	moves map[graveler.LogName][]graveler.Move
	shown map[graveler.CommitID]string // what commits hold
	texts int
}

// movesNoted keeps the moves that branch records go through.
type movesNoted struct {
	graveler.Refs
	moves map[graveler.LogName][]graveler.Move
}

func (n movesNoted) PutBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch) (graveler.Stamp, error) {
	stamp, err := n.Refs.PutBranch(ctx, r, b)
	n.note(b, err)
	return stamp, err
}

func (n movesNoted) PublishBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	stamp, err := n.Refs.PublishBranch(ctx, r, b, before)
	n.note(b, err)
	return stamp, err
}

func (n movesNoted) note(b *graveler.Branch, err error) {
	log := graveler.LogName{Branch: b.ID, UID: b.UID}
	if all := n.moves[log]; err == nil && (len(all) == 0 || all[len(all)-1] != b.LastMove) {
		n.moves[log] = append(all, b.LastMove)
	}
}

// someCarried makes two of three commits, as far as anybody sees, ones that were carried over.
type someCarried struct {
	graveler.Refs
	carried map[graveler.CommitID]bool // of all that were stored
}

func (s someCarried) PutCommit(ctx context.Context, r *graveler.Repository, c *graveler.Commit) error {
	if _, ok := s.carried[c.ID]; !ok {
		s.carried[c.ID] = len(s.carried)%3 > 0
	}
	return s.Refs.PutCommit(ctx, r, c)
}

func (s someCarried) GetCommit(ctx context.Context, r *graveler.Repository, id graveler.CommitID) (*graveler.Commit, error) {
	c, err := s.Refs.GetCommit(ctx, r, id)
	return s.seen(c), err
}

func (s someCarried) ScanCommits(ctx context.Context, r *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	return func(yield func(*graveler.Commit, error) bool) {
		for c, err := range s.Refs.ScanCommits(ctx, r, from) {
			if !yield(s.seen(c), err) {
				return
			}
		}
	}
}

func (s someCarried) seen(c *graveler.Commit) *graveler.Commit {
	if c == nil || !s.carried[c.ID] {
		return c
	}
	c = c.Clone()
	c.Version = graveler.CarriedVersion
	return c
}

// TestRetentionFollowsItsDefinition runs random programs and compares what is left with what the definition says.
func TestRetentionFollowsItsDefinition(t *testing.T) {
	for name, trees := range map[string]func(t *rapid.T, clock func() time.Time) graveler.Trees{"plain": plainTrees, "files": fileTrees} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { runRetained(t, trees) })
		})
	}
}

func runRetained(t *rapid.T, trees func(*rapid.T, func() time.Time) graveler.Trees) {
	// The same program makes the same commits wherever and whenever it runs, so that one that fails can be repeated.
	uuid.SetRand(rand.NewChaCha8([32]byte(binary.BigEndian.AppendUint64(make([]byte, 24), rapid.Uint64().Draw(t, "nonces")))))
	defer uuid.SetRand(nil)
	x := &retained{now: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), days: map[graveler.BranchID]int{"": 1}, moves: map[graveler.LogName][]graveler.Move{}, shown: map[graveler.CommitID]string{}}
	clock := func() time.Time { return x.now }
	x.trees = trees(t, clock)
	x.fixture = newFixtureAt(t, "mem:", func(c *graveler.Config) {
		c.Now, c.Trees, c.Grace = clock, x.trees, time.Nanosecond
		c.Refs = movesNoted{someCarried{c.Refs, map[graveler.CommitID]bool{}}, x.moves}
	})
	r, err := x.GetRepository(t.Context(), "lake")
	require.NoError(t, err)
	x.ns = r.Namespace
	x.setRules(t)
	actions := x.actions()
	actions[""] = func(t *rapid.T) { x.learn(t) }
	t.Repeat(actions)

	x.days = map[graveler.BranchID]int{"": 1}
	x.setRules(t)
	for range 8 {
		x.now = x.now.Add(25 * time.Hour)
		x.retain(t, true)
	}
	require.NoError(t, checkNothingElse(t.Context(), x.Graveler, x.trees, x.ns, x.kept(t)))
}

func (x *retained) setRules(t *rapid.T) {
	var rules []graveler.RetentionRule
	for _, pattern := range slices.Sorted(maps.Keys(x.days)) {
		if pattern != "" {
			rules = append(rules, graveler.RetentionRule{Pattern: string(pattern), Days: x.days[pattern]})
		}
	}
	rules = append(rules, graveler.RetentionRule{Pattern: "*", Days: x.days[""]})
	require.NoError(t, x.SetRetention(t.Context(), "lake", rules))
}

func (x *retained) horizon(id graveler.BranchID) int64 {
	days, ok := x.days[id]
	if !ok {
		days = x.days[""]
	}
	if days == 0 {
		return 0
	}
	return x.now.Add(-time.Duration(days) * day).UnixNano()
}

func (x *retained) kept(t *rapid.T) map[graveler.CommitID]bool {
	kept, err := keptNow(t.Context(), x.Graveler, x.moves, x.horizon, func(graveler.CommitID) bool { return true })
	require.NoError(t, err)
	return kept
}

// learn remembers what new commits hold, and compares that of the others with what they held.
func (x *retained) learn(t *rapid.T) {
	commits, err := allCommits(t.Context(), x.Graveler)
	require.NoError(t, err)
	for id := range commits {
		now, err := listed(t.Context(), x.Graveler, "lake", string(id))
		if errors.Is(err, graveler.ErrExpired) {
			require.Contains(t, x.shown, id)
			continue
		}
		require.NoError(t, err)
		if before, ok := x.shown[id]; ok {
			require.Equal(t, before, now)
		}
		x.shown[id] = now
	}
}

func (x *retained) expired(t *rapid.T) map[graveler.CommitID]bool {
	contents, err := x.Contents(t.Context(), "lake")
	require.NoError(t, err)
	all := map[graveler.CommitID]bool{}
	for e, err := range contents.Expirations(t.Context()) {
		require.NoError(t, err)
		all[e.Commit] = true
	}
	return all
}

// views is what all branches show.
func (x *retained) views(t *rapid.T) map[graveler.BranchID]string {
	views := map[graveler.BranchID]string{}
	for b, err := range x.ListAllBranches(t.Context(), "lake", "") {
		require.NoError(t, err)
		views[b.ID], err = listed(t.Context(), x.Graveler, "lake", string(b.ID))
		require.NoError(t, err)
	}
	return views
}

// held are the texts in files.
func (x *retained) held(t *rapid.T) map[string]bool {
	texts := map[string]bool{}
	for f, err := range x.trees.ListFiles(t.Context(), x.ns) {
		require.NoError(t, err)
		if f.ID == "" {
			continue
		}
		for e, err := range x.trees.ScanFile(t.Context(), x.ns, f.ID) {
			require.NoError(t, err)
			texts[string(e.Value.Data)] = true
		}
	}
	return texts
}

func (x *retained) staged(t *rapid.T) map[string]bool {
	texts := map[string]bool{}
	for b, err := range x.ListAllBranches(t.Context(), "lake", "") {
		require.NoError(t, err)
		for d, err := range x.DiffUncommitted(t.Context(), "lake", b.ID, graveler.DiffOptions{}) {
			require.NoError(t, err)
			if d.Right != nil {
				texts[string(d.Right.Data)] = true
			}
		}
	}
	return texts
}

// retain applies retention, and sees to it that nothing went that is kept, and that the values were released which have gone.
func (x *retained) retain(t *rapid.T, release bool) {
	views, expired, held := x.views(t), x.expired(t), x.held(t)
	released := map[string]bool{}
	p := graveler.RetainParams{}
	if release {
		p.Release = func(e graveler.Entry) error {
			released[string(e.Value.Data)] = true
			return nil
		}
	}
	_, err := x.Retain(t.Context(), "lake", p)
	require.NoError(t, err)
	require.Equal(t, views, x.views(t))
	require.NoError(t, checkViewsAndLogs(t.Context(), x.Graveler, x.moves, x.horizonOrStart(t)))
	kept := x.kept(t)
	for id := range x.expired(t) {
		require.False(t, kept[id] && !expired[id], "commit %s is kept", id)
	}
	if !release {
		return
	}
	now, staged := x.held(t), x.staged(t)
	maps.DeleteFunc(held, func(text string, _ bool) bool { return now[text] || staged[text] })
	require.Equal(t, held, released)
}

// horizonOrStart is the latest at which a log may begin: rules that keep more than those before bring nothing back.
func (x *retained) horizonOrStart(t *rapid.T) func(graveler.BranchID) int64 {
	return func(id graveler.BranchID) int64 {
		latest := x.horizon(id)
		for log, err := range x.LogNames(t.Context(), "lake", id) {
			require.NoError(t, err)
			start, err := x.LogStart(t.Context(), "lake", log)
			require.NoError(t, err)
			latest = max(latest, start)
		}
		return latest
	}
}

// checkNothingElse returns an error where something is left that nothing keeps.
func checkNothingElse(ctx context.Context, g *graveler.Graveler, trees graveler.Trees, ns string, kept map[graveler.CommitID]bool) error {
	commits, err := allCommits(ctx, g)
	if err != nil {
		return err
	}
	files := map[string]bool{}
	note := func(tree graveler.MetaRangeID) error {
		err := trees.Walk(ctx, ns, tree, func(f graveler.TreeFile) (bool, error) { files[f.ID] = true; return true, nil })
		if errors.Is(err, graveler.ErrCorrupt) {
			return nil // it had expired before it was kept
		}
		return err
	}
	for id, c := range commits {
		_, err := listed(ctx, g, "lake", string(id))
		switch {
		case err != nil && !errors.Is(err, graveler.ErrExpired):
			return err
		case err == nil && !kept[id]:
			return fmt.Errorf("commit %s is there for ever", id)
		case kept[id]:
			if err := note(c.Tree); err != nil {
				return err
			}
		}
	}
	for b, err := range g.ListAllBranches(ctx, "lake", "") {
		if err == nil && b.Base != "" {
			err = note(b.Base)
		}
		if err != nil {
			return err
		}
	}
	for f, err := range trees.ListFiles(ctx, ns) {
		if err != nil || f.ID != "" && !files[f.ID] {
			return fmt.Errorf("file %s is there for ever (%w)", f.ID, err)
		}
	}
	return nil
}

func one(e graveler.Entry) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) { yield(e, nil) }
}
