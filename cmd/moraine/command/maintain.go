// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
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
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				if err := s.Compact(cmd.Context(), at.repo, at.branch()); err != nil || !a.printer.json {
					return err
				}
				b, err := s.GetBranch(cmd.Context(), at.repo, at.branch())
				return a.done(err, func() any { return viewBranch(b) })
			})
		},
	}
}

func (a *app) clean() *cobra.Command {
	return &cobra.Command{
		Use: "clean", Short: "Do the store's upkeep: finish deletions, compact, drop what nothing refers to",
		Long: "Do the store's upkeep once: finish deletions that were cut off, undo creations that were, compact branches with much that is uncommitted, and drop what nothing " +
			"refers to any more. Run it now and then; what was begun or given up only minutes ago is left for the next time. It says how much it did, and how much is waiting: creations that may still go on, partitions " +
			"that were given up minutes ago, and listed ones, which a branch has not given up yet.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				r, err := s.Maintain(cmd.Context())
				if n := r.CreationsWaiting; n > 0 {
					a.note("%s not finished: after 10 minutes it counts as cut off, and is undone", plural(n, "creation of a repository has", "creations of repositories have"))
				}
				if n := r.PartitionsWaiting; n > 0 {
					a.note("%s kept for up to 10 minutes, since somebody may still be reading them", plural(n, "partition is", "partitions are"))
				}
				return errors.Join(err, a.printReport(r))
			})
		},
	}
}

func (a *app) printReport(r graveler.MaintainReport) error {
	view := struct {
		RepositoriesDeleted int `json:"repositories_deleted"`
		CreationsUndone     int `json:"creations_undone"`
		CreationsWaiting    int `json:"creations_waiting"`
		BranchesDeleted     int `json:"branches_deleted"`
		BranchesCompacted   int `json:"branches_compacted"`
		PartitionsDropped   int `json:"partitions_dropped"`
		PartitionsWaiting   int `json:"partitions_waiting"`
		PartitionsListed    int `json:"partitions_listed"`
	}(r)
	return a.printer.record(view, "Repositories deleted", strconv.Itoa(r.RepositoriesDeleted), "Creations undone", strconv.Itoa(r.CreationsUndone),
		"Creations waiting", strconv.Itoa(r.CreationsWaiting), "Branches deleted", strconv.Itoa(r.BranchesDeleted), "Branches compacted", strconv.Itoa(r.BranchesCompacted),
		"Partitions dropped", strconv.Itoa(r.PartitionsDropped), "Partitions waiting", strconv.Itoa(r.PartitionsWaiting), "Partitions listed", strconv.Itoa(r.PartitionsListed))
}
