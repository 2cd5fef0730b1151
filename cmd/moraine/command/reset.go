// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// resetOptions are the flags of branch reset.
type resetOptions struct {
	to          string
	allowDirty  bool
	staged      bool
	key, prefix string
}

func (a *app) branchReset() *cobra.Command {
	var o resetOptions
	cmd := &cobra.Command{
		Use: "reset REPO/BRANCH (--to REF | --staged)", Short: "Give a branch another head, or drop its uncommitted changes",
		Long: "With --to, make the commit REF, of the same repository, the head of a branch. The commits that it reaches no more stay: 'moraine reflog' names them.\n\n" +
			"With --staged, drop uncommitted changes: all of the branch, that of one key, or those of the keys with a prefix. They cannot be had back.",
		Example: "moraine branch reset lake/main --to main~1\nmoraine branch reset lake/main --staged --prefix photos/",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			changed := cmd.Flags().Changed
			if !changed("to") && !o.staged {
				return usageError{"--staged=false: expected --to or --staged"}
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
	flags.BoolVar(&o.allowDirty, "allow-dirty", false, "with --to: keep uncommitted changes, on top of the new head")
	flags.BoolVar(&o.staged, "staged", false, "drop uncommitted changes")
	flags.StringVar(&o.key, "key", "", "with --staged: only that of this key")
	flags.StringVar(&o.prefix, "prefix", "", "with --staged: only those of keys that start with this")
	cmd.MarkFlagsOneRequired("to", "staged")
	for _, both := range [][2]string{{"to", "staged"}, {"to", "key"}, {"to", "prefix"}, {"key", "prefix"}, {"staged", "allow-dirty"}} {
		cmd.MarkFlagsMutuallyExclusive(both[0], both[1])
	}
	return cmd
}

func (o *resetOptions) reset(ctx context.Context, s *moraine.Store, at address, changed func(flag string) bool) error {
	switch {
	case changed("to"):
		_, err := s.Reset(ctx, at.repo, at.branch(), o.to, graveler.ResetParams{Actor: os.Getenv("USER"), AllowDirty: o.allowDirty})
		return unmoved(withoutRepository(err, at, o.to), "", "that is the head; nothing was changed")
	case changed("key"):
		return s.ResetStagedKey(ctx, at.repo, at.branch(), graveler.Key(o.key))
	default:
		return s.ResetStaged(ctx, at.repo, at.branch(), graveler.Key(o.prefix))
	}
}
