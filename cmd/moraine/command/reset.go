// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// resetOptions are the flags of branch reset.
type resetOptions struct {
	to, toMove  string
	allowDirty  bool
	staged      bool
	key, prefix string
}

func (a *app) branchReset() *cobra.Command {
	var o resetOptions
	cmd := &cobra.Command{
		Use: "reset REPO/BRANCH (--to REF | --to-move N|TIME | --staged)", Short: "Give a branch another head, or drop its uncommitted changes",
		Long: "With --to, make the commit REF, of the same repository, the head of a branch. The commits that it reaches no more stay: 'moraine reflog' names them.\n\n" +
			"With --to-move, go back to the head that a move of the branch left: the one with the number N in 'moraine reflog', or the last one at or before TIME. This is a move too, so that it can be undone in the same way.\n\n" +
			"With --staged, drop uncommitted changes: all of the branch, that of one key, or those of the keys with a prefix, together with those of their other versions. They cannot be had back.",
		Example: "moraine branch reset lake/main --to main~1\nmoraine branch reset lake/main --to-move 7\nmoraine branch reset lake/main --staged --prefix photos/",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			changed := cmd.Flags().Changed
			if !changed("to") && !changed("to-move") && !o.staged {
				return usageError{"--staged=false: expected --to, --to-move or --staged"}
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				if err := o.reset(cmd.Context(), s, at, changed); err != nil || !a.printer.json {
					return err
				}
				b, err := s.GetBranch(cmd.Context(), at.repo, at.branch())
				return a.done(err, func() any { return viewBranch(b) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.to, "to", "", "make this ref the head")
	flags.StringVar(&o.toMove, "to-move", "", "go back to the head that this move left, or that there was at this time")
	flags.BoolVar(&o.allowDirty, "allow-dirty", false, "with --to and --to-move: keep uncommitted changes, on top of the new head")
	flags.BoolVar(&o.staged, "staged", false, "drop uncommitted changes")
	flags.StringVar(&o.key, "key", "", "with --staged: only that of this key")
	flags.StringVar(&o.prefix, "prefix", "", "with --staged: only those of keys that start with this")
	cmd.MarkFlagsOneRequired("to", "to-move", "staged")
	cmd.MarkFlagsMutuallyExclusive("to", "to-move", "staged")
	for _, both := range [][2]string{{"to", "key"}, {"to", "prefix"}, {"to-move", "key"}, {"to-move", "prefix"}, {"key", "prefix"}, {"staged", "allow-dirty"}} {
		cmd.MarkFlagsMutuallyExclusive(both[0], both[1])
	}
	return cmd
}

func (o *resetOptions) reset(ctx context.Context, s *moraine.Store, at address, changed func(flag string) bool) error {
	params := graveler.ResetParams{Actor: os.Getenv("USER"), AllowDirty: o.allowDirty}
	switch {
	case changed("to"):
		_, err := s.Reset(ctx, at.repo, at.branch(), o.to, params)
		return unmoved(withoutRepository(err, at, o.to), "", "that is the head; nothing was changed")
	case changed("to-move"):
		when, err := o.moveTime(ctx, s, at)
		if err == nil {
			_, err = s.ResetToMove(ctx, at.repo, at.branch(), when, params)
		}
		return unmoved(err, "", "that is the head; nothing was changed")
	case changed("key"):
		return s.ResetStagedKey(ctx, at.repo, at.branch(), graveler.Key(o.key), catalog.VersionsOf(o.key))
	default:
		return s.ResetStaged(ctx, at.repo, at.branch(), graveler.Key(o.prefix), catalog.VersionsBelow(o.prefix))
	}
}

// moveTime returns the time of the move that --to-move names, or the time that it gives.
func (o *resetOptions) moveTime(ctx context.Context, s *moraine.Store, at address) (int64, error) {
	number, err := strconv.Atoi(o.toMove)
	if err != nil {
		when, err := parseTime(o.toMove)
		if err != nil {
			return 0, usageError{fmt.Sprintf("--to-move %q: expected the number of a move, or a time such as 2026-01-31T23:59:59Z", o.toMove)}
		}
		return when.UnixNano(), nil
	}
	for m, err := range numbered(s.BranchLog(ctx, at.repo, at.branch(), 0)) {
		if err != nil || m.number == number {
			return m.Time, err
		}
	}
	return 0, hinted{fmt.Errorf("move %d of %s/%s: %w", number, at.repo, at.ref, graveler.ErrNotFound), "'moraine reflog REPO/BRANCH' shows what there is"}
}
