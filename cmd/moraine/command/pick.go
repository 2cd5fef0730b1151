// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"iter"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) revert() *cobra.Command {
	cmd := a.pick((*moraine.Store).Revert, (*moraine.Store).RevertConflicts, "the branch has nothing of it any more; use --allow-empty to commit anyway")
	cmd.Use, cmd.Short = "revert REPO/BRANCH REF", "Undo what a commit changed, by another commit"
	cmd.Long = "Undo on a branch what the commit REF, of the same repository, changed against its parent, and print the ID of the commit that does it. An entry that has changed since is a conflict, " +
		"unless a strategy decides: source-wins undoes it, dest-wins leaves it."
	cmd.Example = "moraine revert lake/main main\nmoraine revert lake/main 3d079eb4deef --parent 1"
	return cmd
}

func (a *app) cherryPick() *cobra.Command {
	cmd := a.pick((*moraine.Store).CherryPick, (*moraine.Store).CherryPickConflicts, "the branch has all of it already; use --allow-empty to commit anyway")
	cmd.Use, cmd.Short = "cherry-pick REPO/BRANCH REF", "Repeat what a commit changed, by another commit"
	cmd.Long = "Repeat on a branch what the commit REF, of the same repository, changed against its parent, and print the ID of the commit that does it. An entry that the branch has otherwise is a conflict, " +
		"unless a strategy decides: source-wins takes it from REF, dest-wins leaves it."
	cmd.Example = "moraine cherry-pick lake/main experiment~2"
	return cmd
}

// picking is what revert and cherry-pick do with a branch and a ref.
type picking func(s *moraine.Store, ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, ref string, p graveler.PickParams) (graveler.Commit, error)

// pickConflicts lists the conflicts that keep it from being done.
type pickConflicts func(s *moraine.Store, ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, ref string, p graveler.PickParams) iter.Seq2[graveler.Conflict, error]

// pick returns a command that does it; none is the hint where there is nothing to do.
func (a *app) pick(do picking, conflicts pickConflicts, none string) *cobra.Command {
	var commit commitFlags
	var p graveler.PickParams
	var strategy string
	cmd := &cobra.Command{
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			if p.CommitParams, err = commit.read(); err != nil {
				return err
			}
			if p.Strategy, err = parseStrategy("strategy", strategy); err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				c, err := do(s, cmd.Context(), at.repo, at.branch(), args[1], p)
				if errors.Is(err, graveler.ErrConflict) {
					err = errors.Join(err, a.printConflicts(conflicts(s, cmd.Context(), at.repo, at.branch(), args[1], p)))
				}
				if err != nil {
					return unmoved(withoutRepository(err, at, args[1]), "decide with --strategy", none)
				}
				return a.printCommit(c)
			})
		},
	}
	flags := cmd.Flags()
	commit.define(flags, "what the commit is about (default: made from REF's)")
	flags.IntVar(&p.Parent, "parent", 0, "take the change against this parent of REF, from 1; required where REF is a merge")
	flags.StringVar(&strategy, "strategy", "none", "what becomes of conflicts: "+strategies)
	flags.BoolVar(&p.AllowDirty, "allow-dirty", false, "keep uncommitted changes, on top of the result")
	return cmd
}
