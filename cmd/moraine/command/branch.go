// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) branch() *cobra.Command {
	return group("branch", "Create, list, show, reset, delete and restore branches",
		a.branchCreate(), a.branchList(), a.branchShow(), a.branchReset(), a.branchDelete(), a.branchRestore(),
		a.branchProtect(), a.branchHide(), a.branchUnhide())
}

func (a *app) branchCreate() *cobra.Command {
	var hidden bool
	cmd := &cobra.Command{
		Use: "create REPO/BRANCH REPO/REF", Short: "Create a branch that stands on the commit that REF names",
		Long:    "Create a branch that stands on the commit that REF names. Uncommitted changes do not come along.",
		Example: "moraine branch create lake/experiment lake/main",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			branch, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			from, err := parseRef(args[1], "REPO/REF", "lake/main")
			if err == nil {
				err = sameRepository(branch, from)
			}
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				create := s.CreateBranch
				if hidden {
					create = s.CreateHiddenBranch
				}
				b, err := create(cmd.Context(), branch.repo, branch.branch(), from.ref)
				return a.done(err, func() any { return viewBranch(b) })
			})
		},
	}
	cmd.Flags().BoolVar(&hidden, "hidden", false, "leave it out of listings")
	return cmd
}

func (a *app) branchList() *cobra.Command {
	var all, deleted bool
	var at, contains string
	cmd := &cobra.Command{
		Use: "list REPO", Short: "List the branches of a repository, by name",
		Example: "moraine branch list lake\nmoraine branch list lake --contains v1.0",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				if deleted {
					return a.listDeleted(s.ListDeletedBranches(cmd.Context(), repo))
				}
				branches := s.ListBranches(cmd.Context(), repo, "")
				switch changed := cmd.Flags().Changed; {
				case all:
					branches = s.ListAllBranches(cmd.Context(), repo, "")
				case changed("at"):
					branches = s.BranchesAt(cmd.Context(), repo, at, "")
				case changed("contains"):
					branches = s.BranchesContaining(cmd.Context(), repo, contains, "")
				}
				err := table(a.printer, branches, []string{"NAME", "HEAD", "MOVED", "BY"}, viewBranch, branchCells)
				return withoutRepository(err, address{repo: repo}, at, contains)
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "only those that stand on the commit that this ref, of the same repository, names")
	cmd.Flags().StringVar(&contains, "contains", "", "only those that reach the commit that this ref, of the same repository, names")
	cmd.Flags().BoolVar(&all, "all", false, "also those that are hidden")
	cmd.Flags().BoolVar(&deleted, "deleted", false, "list those that were deleted and can be restored instead")
	cmd.MarkFlagsMutuallyExclusive("all", "at", "contains", "deleted")
	return cmd
}

func branchCells(b graveler.Branch) []string {
	return []string{string(b.ID), shortID(b.Head), formatTime(time.Unix(0, b.LastMove.Time)), opName(b.LastMove.Op)}
}

func (a *app) branchShow() *cobra.Command {
	return &cobra.Command{
		Use: "show REPO/BRANCH", Short: "Show the record of a branch",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error {
				b, err := s.GetBranch(cmd.Context(), at.repo, at.branch())
				if err != nil {
					return err
				}
				return a.printer.record(viewBranch(b), "Name", string(b.ID), "UID", b.UID, "Head", string(b.Head),
					"Moved", formatTime(time.Unix(0, b.LastMove.Time))+" by "+opName(b.LastMove.Op),
					"Base", orDash(b.Base), "Items", strconv.Itoa(len(b.Items)), "Staging token", string(b.Token),
					"Hidden", strconv.FormatBool(b.Hidden), "Protected", orDash(strings.Join(b.Protected.Names(), ",")))
			})
		},
	}
}

func (a *app) branchDelete() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "delete REPO/BRANCH", Short: "Delete a branch; its commits stay",
		Long: "Delete a branch. Its commits and its log stay, so that 'moraine branch restore' can make it again. Uncommitted changes cannot be had back: a branch that has some is deleted only with --force.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				return s.DeleteBranch(cmd.Context(), at.repo, at.branch(), force)
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete it even if it has uncommitted changes, which are lost, or its data is damaged")
	return cmd
}

type itemView struct {
	Number        uint64                `json:"number"`
	SealedToken   graveler.StagingToken `json:"sealed_token,omitempty"`
	DeletedPrefix *keyView              `json:"deleted_prefix,omitempty"`
}

func viewBranch(b graveler.Branch) any {
	items := []itemView{}
	for _, i := range b.Items {
		v := itemView{Number: i.Number, SealedToken: i.Token}
		if i.Token == "" {
			prefix := viewKey(i.Prefix)
			v.DeletedPrefix = &prefix
		}
		items = append(items, v)
	}
	return struct {
		Name         graveler.BranchID     `json:"name"`
		UID          string                `json:"uid"`
		Head         graveler.CommitID     `json:"head"`
		Base         graveler.MetaRangeID  `json:"base,omitempty"`
		StagingToken graveler.StagingToken `json:"staging_token"`
		Items        []itemView            `json:"items"`
		Hidden       bool                  `json:"hidden"`
		Protected    []string              `json:"protected"`
		LastMove     any                   `json:"last_move"`
	}{b.ID, b.UID, b.Head, b.Base, b.Token, items, b.Hidden, append([]string{}, b.Protected.Names()...), viewMove(b.LastMove)}
}
