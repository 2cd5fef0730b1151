// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use: "status REPO/BRANCH", Short: "Show how much is uncommitted on a branch, and where",
		Long: "Show how many entries of a branch are uncommitted ('moraine diff' lists them), and where they are: items is the number of sealed tokens and deleted prefixes that " +
			"the next commit takes along, base is the tree that compaction has put them into.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error { return a.printStatus(cmd.Context(), s, at) })
		},
	}
}

func (a *app) printStatus(ctx context.Context, s *moraine.Store, at address) error {
	b, err := s.GetBranch(ctx, at.repo, at.branch())
	if err != nil {
		return err
	}
	count, reserved := map[string]int{}, 0
	for d, err := range s.DiffUncommitted(ctx, at.repo, at.branch(), graveler.DiffOptions{}) {
		if err != nil {
			return err
		}
		count[changeOf(d).name]++
		if isReserved(d.Key) {
			reserved++
		}
	}
	view := struct {
		Branch  graveler.BranchID `json:"branch"`
		Head    graveler.CommitID `json:"head"`
		Added   int               `json:"added"`
		Changed int               `json:"changed"`
		Removed int               `json:"removed"`
		// Reserved are those of the three that are no current objects.
		Reserved int                  `json:"reserved,omitempty"`
		Items    int                  `json:"items"`
		Base     graveler.MetaRangeID `json:"base,omitempty"`
	}{b.ID, b.Head, count["added"], count["changed"], count["removed"], reserved, len(b.Items), b.Base}
	uncommitted := fmt.Sprintf("%d added, %d changed, %d removed", view.Added, view.Changed, view.Removed)
	if reserved > 0 {
		uncommitted += fmt.Sprintf("; %d of these of noncurrent versions, delete markers or uploads", reserved)
	}
	return a.printer.record(view, "Branch", string(b.ID), "Head", string(b.Head),
		"Uncommitted", uncommitted,
		"Items", strconv.Itoa(view.Items), "Base", orDash(b.Base))
}
