// SPDX-License-Identifier: Apache-2.0

package command

import (
	"iter"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) diff() *cobra.Command {
	var prefix string
	var limit uint
	cmd := &cobra.Command{
		Use: "diff REPO/REF [REPO/REF]", Short: "List the keys in which two refs differ, or the uncommitted changes of a branch",
		Long:    "List the keys in which the second ref differs from the first, by key: + was added, - was removed, ~ was changed. With one branch alone, list its uncommitted changes.",
		Example: "moraine diff lake/main lake/experiment --prefix data/\nmoraine diff lake/main",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := graveler.DiffOptions{Prefix: graveler.Key(prefix)}
			if len(args) == 1 {
				at, err := parseBranch(args[0])
				if err != nil {
					return err
				}
				return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error {
					return a.printDiff(limited(s.DiffUncommitted(cmd.Context(), at.repo, at.branch(), o), int(limit)))
				})
			}
			left, err := parseRef(args[0], "REPO/REF", "lake/main")
			if err != nil {
				return err
			}
			right, err := parseRef(args[1], "REPO/REF", "lake/experiment")
			if err == nil {
				err = sameRepository(left, right)
			}
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				return a.printDiff(limited(s.Diff(cmd.Context(), left.repo, left.ref, right.ref, o), int(limit)))
			})
		},
	}
	cmd.Flags().StringVar(&prefix, "prefix", "", "only keys that start with this")
	cmd.Flags().UintVar(&limit, "limit", 0, "end after so many keys (0: no limit)")
	return cmd
}

// change is what happened to a key.
type change struct{ sign, color, name string }

func changeOf(d graveler.Diff) change {
	switch {
	case d.Left == nil:
		return change{"+", green, "added"}
	case d.Right == nil:
		return change{"-", red, "removed"}
	default:
		return change{"~", yellow, "changed"}
	}
}

func (a *app) printDiff(diffs iter.Seq2[graveler.Diff, error]) error {
	for d, err := range diffs {
		if err != nil {
			return err
		}
		c := changeOf(d)
		if a.printer.json {
			err = a.printer.object(viewDiff(c.name, d))
		} else {
			err = a.printer.line(a.colored(c.color, c.sign+" "+escape(d.Key)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func viewDiff(name string, d graveler.Diff) any {
	side := func(v *graveler.Value) *valueView {
		if v == nil {
			return nil
		}
		view := viewValue(*v)
		return &view
	}
	return struct {
		Change string `json:"change"`
		keyView
		Left  *valueView `json:"left,omitempty"`
		Right *valueView `json:"right,omitempty"`
	}{name, viewKey(d.Key), side(d.Left), side(d.Right)}
}
