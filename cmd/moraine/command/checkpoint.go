// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
)

func (a *app) checkpoint() *cobra.Command {
	return &cobra.Command{
		Use: "checkpoint REPO/BRANCH", Short: "Commit what is uncommitted on a branch, if anything is",
		Long:    "Commit what is uncommitted on a branch, as object stores do that show their users no commits. Unlike 'moraine commit' it needs no message, and that there is nothing to commit is no error.",
		Example: "moraine checkpoint lake/main",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				c, err := objectsOf(s)
				if err == nil {
					err = c.Checkpoint(cmd.Context(), at.bucket())
				}
				if err != nil || !a.printer.json {
					return err
				}
				b, err := s.GetBranch(cmd.Context(), at.repo, at.branch())
				return a.done(err, func() any { return viewBranch(b) })
			})
		},
	}
}

func (a *app) mend() *cobra.Command {
	return &cobra.Command{
		Use: "mend REPO/BRANCH", Short: "Put the versions of a branch in form after a merge or a reset of some keys",
		Long: "Put right what a merge, or a reset or commit of some keys, can leave of the versions of objects: a version in two places, a delete marker beside a current object, versions none of which is current (the key gets a delete marker), and parts of " +
			"uploads that are no more, which are listed: nobody needs their bytes. No version is lost. It is an uncommitted change, if anything is.",
		Example: "moraine mend lake/main",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), writing, at, func(c *catalog.Catalog) error {
				r, err := c.Mend(cmd.Context(), at.bucket())
				if err == nil {
					err = a.printer.record(struct {
						Keys  int `json:"keys"`
						Parts int `json:"parts"`
					}{r.Keys, len(r.Parts)}, "Keys", strconv.Itoa(r.Keys), "Parts", strconv.Itoa(len(r.Parts)))
				}
				return a.printParts(r.Parts, err)
			})
		},
	}
}
