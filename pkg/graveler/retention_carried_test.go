// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// carry stores a carried commit that nothing leads to, with a value of its own under a key.
func (a *aged) carry(n int, made time.Time, k, text string, parents ...graveler.CommitID) graveler.CommitID {
	ctx, id := a.t.Context(), graveler.BranchID(fmt.Sprint("carrier", n))
	r, err := a.config.Refs.GetRepository(ctx, "lake")
	require.NoError(a.t, err)
	_, err = a.CreateBranch(ctx, "lake", id, "main")
	require.NoError(a.t, err)
	require.NoError(a.t, a.Set(ctx, "lake", id, key(k), value(text)))
	require.NoError(a.t, a.Compact(ctx, "lake", id))
	b, err := a.config.Refs.GetBranch(ctx, r, id)
	require.NoError(a.t, err)
	c := &graveler.Commit{ID: idOfLoad(n), Version: graveler.CarriedVersion + 1, Tree: b.Base, Parents: parents, Generation: 1, LogTime: made.UnixNano()}
	for _, p := range parents {
		parent, err := a.config.Refs.GetCommit(ctx, r, p)
		require.NoError(a.t, err)
		c.Generation = max(c.Generation, parent.Generation+1)
	}
	c.Nonce = c.Digest()
	require.NoError(a.t, a.config.Refs.PutCommit(ctx, r, c))
	require.NoError(a.t, a.DeleteBranch(ctx, "lake", id, true))
	return c.ID
}

// What a migration brought along that no branch had any more goes by no run until a rule says so.
func TestCarriedCommitsThatNothingLeadsToStayWithoutARuleForAllBranches(t *testing.T) {
	for name, rules := range map[string][]graveler.RetentionRule{
		"no rules":                 nil,
		"rules for other branches": {{Pattern: "main", Days: 1}, {Pattern: "carrier*", Days: 1}},
		"forever":                  {{Pattern: "main", Days: 1}, {Pattern: "*", Days: 0}},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAged(t, rules...)
			ancient := a.now.Add(-1000 * day)
			first := a.carry(1, ancient, "a", "1")
			second := a.carry(2, ancient.Add(time.Hour), "a", "2", first)
			a.now = a.now.Add(100 * day)
			require.Zero(t, a.retain(graveler.RetainParams{DryRun: true}).FilesRemoved)
			a.settle()
			require.Equal(t, "1", a.get(string(first), "a"))
			require.Equal(t, "2", a.get(string(second), "a"))
		})
	}
}

func TestCarriedCommitsThatNothingLeadsToGoByTheRuleForAllBranches(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "main", Days: 0}, graveler.RetentionRule{Pattern: "*", Days: 30})
	root := a.carry(1, a.now.Add(-90*day), "a", "root")
	side := a.carry(2, a.now.Add(-80*day), "a", "side", root)
	parting := a.carry(3, a.now.Add(-60*day), "b", "parting", root)
	followed := a.carry(4, a.now.Add(-40*day), "b", "followed", parting)
	left := a.carry(5, a.now.Add(-20*day), "b", "left", followed)
	before := a.carry(6, a.now.Add(-35*day), "c", "before", parting)
	other := a.carry(7, a.now.Add(-10*day), "c", "other", before)
	a.settle()
	for id, want := range map[graveler.CommitID]string{
		followed: "followed", // what the next one followed
		left:     "left",
		parting:  "parting", // where a merge of left and other starts
	} {
		require.Equal(t, want, a.get(string(id), "b"))
	}
	require.Equal(t, "other", a.get(string(other), "c"))
	require.Equal(t, "expired", a.get(string(root), "a"))
	require.Equal(t, "expired", a.get(string(side), "a"))

	_, err := a.CreateBranch(t.Context(), "lake", "rescued", string(left))
	require.NoError(t, err)
	_, err = a.Merge(t.Context(), "lake", string(other), "rescued", graveler.MergeParams{Strategy: graveler.DestWins})
	require.NoError(t, err)
	a.now = a.now.Add(60 * day)
	a.settle()
	require.Equal(t, "left", a.get("rescued", "b"))
	require.Equal(t, "expired", a.get(string(followed), "b"))
}

// A commit of this program that nothing leads to was never shown by any branch: the same record, but for its version, goes without a rule.
func TestWhatWasCutOffGoesWithoutARule(t *testing.T) {
	a := newAged(t)
	ctx := t.Context()
	a.commit("main", "a", "1")
	r, err := a.config.Refs.GetRepository(ctx, "lake")
	require.NoError(t, err)
	head, err := a.ResolveRef(ctx, "lake", "main")
	require.NoError(t, err)
	cut := head.Clone()
	cut.Nonce = "cut off"
	cut.ID = cut.ComputeID()
	require.NoError(t, a.config.Refs.PutCommit(ctx, r, cut))
	a.settle()
	require.Equal(t, "expired", a.get(string(cut.ID), "a"))
	require.Equal(t, "1", a.get(string(head.ID), "a"))
}

// withoutFiles does not list some files.
type withoutFiles struct {
	graveler.Trees
	without map[string]bool
}

func (w withoutFiles) ListFiles(ctx context.Context, ns string) iter.Seq2[graveler.StoredFile, error] {
	return func(yield func(graveler.StoredFile, error) bool) {
		for f, err := range w.Trees.ListFiles(ctx, ns) {
			if w.without[f.ID] {
				continue
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

func TestARunThatMissesFilesNamesThem(t *testing.T) {
	a := newAged(t)
	ids := []string{}
	for i := range 5 {
		a.commit("main", "a", fmt.Sprint(i))
		c, err := a.ResolveRef(t.Context(), "lake", "main")
		require.NoError(t, err)
		ids = append(ids, string(c.Tree))
	}
	retain := func(missing ...string) string {
		c := a.config
		trees := withoutFiles{c.Trees, map[string]bool{}}
		for _, id := range missing {
			trees.without[id] = true
		}
		c.Trees = trees
		g, err := graveler.New(c)
		require.NoError(t, err)
		_, err = g.Retain(t.Context(), "lake", graveler.RetainParams{})
		require.ErrorIs(t, err, graveler.ErrCorrupt)
		return err.Error()
	}
	require.Contains(t, retain(ids[3]), ": 1 file of a tree is missing, nothing is removed: "+ids[3])
	slices.Sort(ids)
	require.Contains(t, retain(ids[1], ids[0]), ": 2 files of trees are missing, nothing is removed: "+ids[0]+", "+ids[1])
	require.Contains(t, retain(ids...), ": 5 files of trees are missing, nothing is removed: "+ids[0]+", "+ids[1]+", "+ids[2]+" and others")
}
