// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
)

func (a *app) compact() *cobra.Command {
	return &cobra.Command{
		Use: "compact REPO/BRANCH", Short: "Fold the uncommitted changes of a branch into a tree, so that reads are quick",
		Long: "Fold the uncommitted changes of a branch into a tree, its base, so that reads look in one place and the next commit has less to do. What the branch shows stays the same.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error { return s.Compact(cmd.Context(), at.repo, at.branch()) })
		},
	}
}

func (a *app) clean() *cobra.Command {
	return &cobra.Command{
		Use: "clean", Short: "Do the store's upkeep: finish deletions, compact, drop what nothing refers to",
		Long: "Do the store's upkeep once: finish deletions that were cut off, undo creations that were, compact branches with much that is uncommitted, and drop what nothing " +
			"refers to any more. Run it now and then; what was given up only minutes ago is kept for the next time.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				r, err := s.Maintain(cmd.Context())
				return errors.Join(err, a.printer.record(struct {
					RepositoriesDeleted int `json:"repositories_deleted"`
					BranchesDeleted     int `json:"branches_deleted"`
					BranchesCompacted   int `json:"branches_compacted"`
					PartitionsDropped   int `json:"partitions_dropped"`
				}(r), "Repositories deleted", strconv.Itoa(r.RepositoriesDeleted), "Branches deleted", strconv.Itoa(r.BranchesDeleted),
					"Branches compacted", strconv.Itoa(r.BranchesCompacted), "Partitions dropped", strconv.Itoa(r.PartitionsDropped)))
			})
		},
	}
}
