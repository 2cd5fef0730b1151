// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) branchProtect() *cobra.Command {
	var forbid []string
	var off bool
	cmd := &cobra.Command{
		Use: "protect REPO[/PATTERN]", Short: "Forbid actions on the branches that a pattern matches, or list the rules",
		Long: "Forbid actions on the branches that a pattern matches, those that exist and those to come. In a pattern '*' stands for any characters, slashes included, and '?' for one. " +
			"What any matching rule forbids is forbidden. Without a pattern the rules are listed.\n\n" +
			"The actions: stage (every change of what is uncommitted), commit, move (merge, revert, cherry-pick, import and reset of the head) and delete.",
		Example: "moraine branch protect 'lake/release/*' --forbid stage,commit,delete\nmoraine branch protect lake",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, pattern, hasPattern := strings.Cut(args[0], "/")
			id, err := parseRepo(repo)
			switch {
			case err != nil:
				return err
			case hasPattern == (len(forbid) == 0 && !off):
				return usageError{"give a pattern together with --forbid or --off, or neither to list the rules"}
			case !hasPattern:
				return a.listProtection(cmd.Context(), id)
			case off:
				return a.changeProtection(cmd.Context(), id, graveler.ProtectionRule{Pattern: pattern})
			}
			rule := graveler.ProtectionRule{Pattern: pattern}
			for _, name := range forbid {
				action, err := graveler.ParseAction(name)
				if err != nil {
					return err
				}
				rule.Forbid |= action
			}
			return a.changeProtection(cmd.Context(), id, rule)
		},
	}
	cmd.Flags().StringSliceVar(&forbid, "forbid", nil, "what to forbid, of stage, commit, move and delete; replaces what the pattern's rule said before")
	cmd.Flags().BoolVar(&off, "off", false, "remove the pattern's rule")
	cmd.MarkFlagsMutuallyExclusive("forbid", "off")
	return cmd
}

func (a *app) listProtection(ctx context.Context, id graveler.RepositoryID) error {
	return a.use(ctx, reading, func(s *moraine.Store) error {
		rules, err := s.BranchProtection(ctx, id)
		if err != nil {
			return err
		}
		return table(a.printer, func(yield func(graveler.ProtectionRule, error) bool) {
			for _, r := range rules {
				if !yield(r, nil) {
					return
				}
			}
		}, []string{"BRANCHES", "FORBIDDEN"}, viewProtection, func(r graveler.ProtectionRule) []string {
			return []string{r.Pattern, strings.Join(r.Forbid.Names(), ",")}
		})
	})
}

// changeProtection puts a rule in the place of the one with its pattern, or removes that where the rule forbids nothing.
func (a *app) changeProtection(ctx context.Context, id graveler.RepositoryID, rule graveler.ProtectionRule) error {
	return a.use(ctx, writing, func(s *moraine.Store) error {
		err := s.ProtectBranches(ctx, id, func(rules []graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
			i := slices.IndexFunc(rules, func(r graveler.ProtectionRule) bool { return r.Pattern == rule.Pattern })
			switch {
			case rule.Forbid == 0 && i < 0:
				return nil, fmt.Errorf("rule for %q %w", rule.Pattern, graveler.ErrNotFound)
			case rule.Forbid == 0:
				return slices.Delete(rules, i, i+1), nil
			case i < 0:
				return append(rules, rule), nil
			}
			rules[i] = rule
			return rules, nil
		})
		return a.done(err, func() any { return viewProtection(rule) })
	})
}

func viewProtection(r graveler.ProtectionRule) any {
	return struct {
		Branches string   `json:"branches"`
		Forbid   []string `json:"forbid"`
	}{r.Pattern, append([]string{}, r.Forbid.Names()...)}
}

func (a *app) branchHide() *cobra.Command {
	return a.setHidden("hide REPO/BRANCH", "Leave a branch out of listings", true)
}

func (a *app) branchUnhide() *cobra.Command {
	return a.setHidden("unhide REPO/BRANCH", "Show a hidden branch in listings again", false)
}

func (a *app) setHidden(use, short string, hidden bool) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				return s.SetBranchHidden(cmd.Context(), at.repo, at.branch(), hidden)
			})
		},
	}
}
