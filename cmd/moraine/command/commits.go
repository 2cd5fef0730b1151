// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) commits() *cobra.Command {
	var after string
	var limit uint
	var tips bool
	cmd := &cobra.Command{
		Use: "commits REPO", Short: "List all commits of a repository, by ID",
		Long: "List all commits of a repository, by ID, whether a branch or tag reaches them or not. With --tips list only those that are no commit's first parent: the ends of all lines " +
			"of commits, such as the heads of branches that were reset or deleted.",
		Example: "moraine commits lake --limit 100\nmoraine commits lake --tips",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				list := s.ListCommits
				if tips {
					list = s.ListTips
				}
				return a.printCommits(limited(list(cmd.Context(), repo, graveler.CommitID(after)), int(limit)))
			})
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "leave out the commits up to this ID, or up to those that begin with it")
	cmd.Flags().UintVar(&limit, "limit", 0, "end after so many commits (0: no limit)")
	cmd.Flags().BoolVar(&tips, "tips", false, "only commits that are no commit's first parent")
	return cmd
}
