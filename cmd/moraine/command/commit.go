// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) commit() *cobra.Command {
	var f commitFlags
	var date string
	var prefixes []string
	cmd := &cobra.Command{
		Use: "commit REPO/BRANCH -m MESSAGE", Short: "Commit what is uncommitted on a branch",
		Long:    "Commit everything that is uncommitted on a branch, or with --prefix a part of it (with the other versions of its objects), and print the ID of the commit.",
		Example: "moraine commit lake/main -m \"Data of January\"\nmoraine commit lake/main -m \"Only the raw data\" --prefix raw/",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			p, err := f.read()
			if err != nil {
				return err
			}
			if p.Message == "" {
				return usageError{"--message must not be empty"}
			}
			if date != "" {
				if p.CreatedAt, err = parseTime(date); err != nil {
					return err
				}
			}
			for _, prefix := range prefixes {
				p.Prefixes = append(p.Prefixes, graveler.Key(prefix), catalog.VersionsBelow(prefix))
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				result, err := s.Commit(cmd.Context(), at.repo, at.branch(), p)
				if err != nil {
					return err
				}
				return a.printCommit(result.Commit)
			})
		},
	}
	f.define(cmd.Flags(), "what the commit is about")
	cmd.Flags().StringVar(&date, "date", "", "when the commit was made, such as 2026-01-31T23:59:59Z (default: now)")
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "commit only the changes of keys that begin so, and leave the others uncommitted (may be repeated)")
	cmd.Flags().Float64Var(&f.params.Share, "share", 0, "how much of the machine the commit may take beside other work, from 0 to 1 (default: all of it)")
	mustRequire(cmd, "message")
	return cmd
}

// mustRequire marks a flag that has just been defined as required.
func mustRequire(cmd *cobra.Command, flag string) {
	if err := cmd.MarkFlagRequired(flag); err != nil {
		panic(err)
	}
}
