// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// interrupted calls meanwhile once, in the middle of the next build of a tree.
type interrupted struct {
	graveler.Trees
	meanwhile func()
}

func (i *interrupted) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	built, err := i.Trees.Apply(ctx, ns, tree, changes)
	if do := i.meanwhile; do != nil {
		i.meanwhile = nil
		do()
	}
	return built, err
}

// meeting is a commit of "mine" that is interrupted by operations of another process.
type meeting struct {
	name      string
	before    func(t *testing.T, g *graveler.Graveler)
	meanwhile func(t *testing.T, g *graveler.Graveler)
	params    graveler.CommitParams
	already   bool
	err       error
	head      []string // as the commit leaves it
	view      []string
}

func meetings() []meeting {
	ctx := context.Background()
	set := func(t *testing.T, g *graveler.Graveler, k string) {
		require.NoError(t, g.Set(ctx, "lake", "main", key(k), value("x")))
	}
	commit := func(t *testing.T, g *graveler.Graveler) {
		_, err := g.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "other"})
		require.NoError(t, err)
	}
	return []meeting{
		{
			name:      "another commit takes the changes along",
			meanwhile: commit, already: true,
			head: []string{"mine=x", "old=x"}, view: []string{"mine=x", "old=x"},
		}, {
			name:      "another commit takes the changes along, and an empty commit is allowed",
			meanwhile: commit, params: graveler.CommitParams{AllowEmpty: true},
			head: []string{"mine=x", "old=x"}, view: []string{"mine=x", "old=x"},
		}, {
			name: "another write is sealed by a compaction, which folds all",
			meanwhile: func(t *testing.T, g *graveler.Graveler) {
				set(t, g, "new")
				require.NoError(t, g.Compact(ctx, "lake", "main"))
			},
			head: []string{"mine=x", "new=x", "old=x"}, view: []string{"mine=x", "new=x", "old=x"},
		}, {
			name: "a compaction folds all, and more is written and sealed",
			meanwhile: func(t *testing.T, g *graveler.Graveler) {
				require.NoError(t, g.Compact(ctx, "lake", "main"))
				set(t, g, "new")
				require.NoError(t, g.DeletePrefix(ctx, "lake", "main", key("mi")))
			},
			head: []string{"mine=x", "old=x"}, view: []string{"new=x", "old=x"},
		}, {
			name: "everything is deleted, which is newer than the commit",
			meanwhile: func(t *testing.T, g *graveler.Graveler) {
				set(t, g, "new")
				require.NoError(t, g.DeletePrefix(ctx, "lake", "main", nil))
			},
			head: []string{"mine=x", "old=x"}, view: []string{},
		}, {
			name: "all changes are undone and folded away, and others are sealed",
			meanwhile: func(t *testing.T, g *graveler.Graveler) {
				require.NoError(t, g.Delete(ctx, "lake", "main", key("mine")))
				require.NoError(t, g.Compact(ctx, "lake", "main")) // the head's tree again: neither items nor a base
				set(t, g, "new")
				require.NoError(t, g.DeletePrefix(ctx, "lake", "main", key("nothing")))
			},
			err:  graveler.ErrNoChanges,
			head: []string{"old=x"}, view: []string{"new=x", "old=x"},
		}, {
			name: "all changes are undone and folded away",
			meanwhile: func(t *testing.T, g *graveler.Graveler) {
				require.NoError(t, g.Delete(ctx, "lake", "main", key("mine")))
				require.NoError(t, g.Compact(ctx, "lake", "main"))
			},
			err:  graveler.ErrNoChanges,
			head: []string{"old=x"}, view: []string{"old=x"},
		}, {
			name:   "all changes were in the base, and another joins them there",
			before: func(t *testing.T, g *graveler.Graveler) { require.NoError(t, g.Compact(ctx, "lake", "main")) },
			meanwhile: func(t *testing.T, g *graveler.Graveler) {
				set(t, g, "new")
				require.NoError(t, g.Compact(ctx, "lake", "main"))
			},
			head: []string{"mine=x", "new=x", "old=x"}, view: []string{"mine=x", "new=x", "old=x"},
		}, {
			name: "the branch is deleted and made again",
			meanwhile: func(t *testing.T, g *graveler.Graveler) {
				_, err := g.CreateBranch(ctx, "lake", "copy", "main")
				require.NoError(t, err)
				require.NoError(t, g.DeleteBranch(ctx, "lake", "dev", true))
				_, err = g.CreateBranch(ctx, "lake", "dev", "main")
				require.NoError(t, err)
			},
			err:  graveler.ErrBranchNotFound,
			head: []string{"old=x"}, view: []string{"old=x"},
		},
	}
}

// What others do between a commit's reading of the branch and its publish shows neither twice nor not at all.
func TestCommitsThatAreOvertakenWhileTheyBuild(t *testing.T) {
	ctx := context.Background()
	for _, m := range meetings() {
		t.Run(m.name, func(t *testing.T) {
			trees := &interrupted{}
			f := newFixture(t, dropAtOnce, func(c *graveler.Config) { trees.Trees = c.Trees; c.Trees = trees })
			branch := graveler.BranchID("main")
			f.set(t, "old", "x")
			f.commit(t, "old")
			if m.name == "the branch is deleted and made again" {
				branch = "dev"
				_, err := f.CreateBranch(ctx, "lake", branch, "main")
				require.NoError(t, err)
			}
			require.NoError(t, f.Set(ctx, "lake", branch, key("mine"), value("x")))
			if m.before != nil {
				m.before(t, f.Graveler)
			}
			other := f.another(t)
			trees.meanwhile = func() {
				m.meanwhile(t, other)
				_, err := other.Maintain(ctx)
				require.NoError(t, err)
			}
			m.params.Message = "mine"
			res, err := f.Commit(ctx, "lake", branch, m.params)
			if m.err != nil {
				require.ErrorIs(t, err, m.err)
			} else {
				require.NoError(t, err)
				require.Equal(t, m.already, res.AlreadyCommitted)
				require.Equal(t, m.already, res.Commit.Message == "other")
				head, err := f.ResolveRef(ctx, "lake", string(branch))
				require.NoError(t, err)
				require.Equal(t, res.Commit.ID, head.ID)
			}
			require.Equal(t, m.head, show(t, f.Graveler, string(branch)+"@", graveler.ListOptions{}))
			require.Equal(t, m.view, show(t, f.Graveler, string(branch), graveler.ListOptions{}))
		})
	}
}

// interruptedStaging calls meanwhile once, before the next look into a token.
type interruptedStaging struct {
	graveler.Staging
	meanwhile func()
}

func (i *interruptedStaging) interrupt() {
	if do := i.meanwhile; do != nil {
		i.meanwhile = nil
		do()
	}
}

func (i *interruptedStaging) Get(ctx context.Context, token graveler.StagingToken, k graveler.Key) (graveler.Staged, error) {
	i.interrupt()
	return i.Staging.Get(ctx, token, k)
}

func (i *interruptedStaging) Scan(ctx context.Context, token graveler.StagingToken, from, prefix graveler.Key) (graveler.Iterator[graveler.Entry], error) {
	i.interrupt()
	return i.Staging.Scan(ctx, token, from, prefix)
}

// Between a reader's look at the branch record and its look into the token a commit takes the token off the list, and it is dropped.
func TestReadersWhoseTokenIsDroppedStartOver(t *testing.T) {
	ctx := context.Background()
	for _, known := range []bool{false, true} { // whether the reader knows the record from before
		staging := &interruptedStaging{}
		f := newFixture(t, dropAtOnce, func(c *graveler.Config) { staging.Staging = c.Staging; c.Staging = staging })
		f.set(t, "k", "x")
		reader, other := f.another(t), f.another(t)
		commitAndClean := func() {
			_, err := other.Commit(ctx, "lake", "main", graveler.CommitParams{Message: "other", AllowEmpty: true})
			require.NoError(t, err)
			_, err = other.Maintain(ctx)
			require.NoError(t, err)
		}
		if known {
			show(t, reader, "main", graveler.ListOptions{})
		}
		staging.meanwhile = commitAndClean
		require.Equal(t, []string{"k=x"}, show(t, reader, "main", graveler.ListOptions{}))

		require.NoError(t, other.Set(ctx, "lake", "main", key("l"), value("x")))
		if !known {
			reader = f.another(t)
		}
		staging.meanwhile = commitAndClean
		_, err := reader.Get(ctx, "lake", "main", key("l"))
		require.NoError(t, err)

		// The same once more for a reader that has just read the record for the second time.
		require.NoError(t, other.Set(ctx, "lake", "main", key("m"), value("x")))
		staging.meanwhile = func() {
			require.NoError(t, other.DeletePrefix(ctx, "lake", "main", key("nothing")))
			staging.meanwhile = commitAndClean
		}
		_, err = reader.Get(ctx, "lake", "main", key("m"))
		require.NoError(t, err)
	}
}
