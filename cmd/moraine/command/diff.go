// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) diff() *cobra.Command {
	var r diffRange
	var threeDot bool
	cmd := &cobra.Command{
		Use: "diff REPO/REF [REPO/REF]", Short: "List the keys in which two refs differ, or the uncommitted changes of a branch",
		Long: "List the keys in which the second ref differs from the first, by key: + was added, - was removed, ~ was changed. With one branch alone, list its uncommitted changes. --three-dot is for two refs: it does what 'moraine compare' does.\n\n" +
			aboutStat,
		Example: "moraine diff lake/main lake/experiment --prefix data/\nmoraine diff lake/main\nmoraine diff lake/main --stat",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && threeDot {
				return a.compareRefs(cmd, args, r, (*moraine.Store).Compare)
			}
			if len(args) == 2 {
				return a.compareRefs(cmd, args, r, (*moraine.Store).Diff)
			}
			if threeDot {
				return usageError{"--three-dot needs two refs"}
			}
			at, err := parseBranch(args[0])
			if err == nil {
				err = r.check(cmd)
			}
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error {
				return a.printRange(s.DiffUncommitted(cmd.Context(), at.repo, at.branch(), r.options()), r)
			})
		},
	}
	r.define(cmd)
	cmd.Flags().BoolVar(&threeDot, "three-dot", false, "list only what the second ref has changed since the merge base with the first")
	return cmd
}

func (a *app) compare() *cobra.Command {
	var r diffRange
	cmd := &cobra.Command{
		Use: "compare REPO/REF REPO/REF", Short: "List what the second of two refs has changed since their merge base",
		Long: "List the keys that the second ref has changed since its merge base with the first, the last commit that both have, by key: + was added, - was removed, ~ was changed. " +
			"It is what a merge of the second into the first is about.\n\n" + aboutStat,
		Example: "moraine compare lake/main lake/experiment",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.compareRefs(cmd, args, r, (*moraine.Store).Compare)
		},
	}
	r.define(cmd)
	return cmd
}

// diffRange says what part of a difference is listed, and how.
type diffRange struct {
	prefix    string
	limit     uint
	stat      bool
	delimiter string
}

func (r *diffRange) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.prefix, "prefix", "", "only keys that start with this")
	cmd.Flags().UintVar(&r.limit, "limit", 0, "end after so many keys (0: no limit)")
	cmd.Flags().BoolVar(&r.stat, "stat", false, "only count the keys, per prefix")
	cmd.Flags().StringVar(&r.delimiter, "delimiter", "/", "with --stat: where prefixes end")
	cmd.MarkFlagsMutuallyExclusive("stat", "limit")
}

// check looks at what must be right before there is anything to show.
func (r diffRange) check(cmd *cobra.Command) error {
	switch {
	case r.delimiter == "":
		return usageError{"--delimiter must not be empty"}
	case cmd.Flags().Changed("delimiter") && !r.stat:
		return usageError{"--delimiter is for --stat"}
	}
	return nil
}

func (r diffRange) options() graveler.DiffOptions {
	return graveler.DiffOptions{Prefix: graveler.Key(r.prefix)}
}

// printRange prints differences, or counts them.
func (a *app) printRange(diffs iter.Seq2[graveler.Diff, error], r diffRange) error {
	if r.stat {
		return a.printStat(diffs, r.prefix, r.delimiter)
	}
	return a.printDiff(limited(diffs, int(r.limit)))
}

// comparison is one of the ways to compare two refs.
type comparison func(s *moraine.Store, ctx context.Context, repo graveler.RepositoryID, left, right string, o graveler.DiffOptions) iter.Seq2[graveler.Diff, error]

func (a *app) compareRefs(cmd *cobra.Command, args []string, r diffRange, how comparison) error {
	left, err := parseRef(args[0], "REPO/REF", "lake/main")
	if err != nil {
		return err
	}
	right, err := parseRef(args[1], "REPO/REF", "lake/experiment")
	if err == nil {
		err = cmp.Or(sameRepository(left, right), r.check(cmd))
	}
	if err != nil {
		return err
	}
	return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
		return a.printRange(how(s, cmd.Context(), left.repo, left.ref, right.ref, r.options()), r)
	})
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
			err = a.printer.line(a.colored(c.color, c.sign+" "+describeKey(d.Key)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// viewSide is nil for an entry that is not there.
func viewSide(key graveler.Key, v *graveler.Value) *valueView {
	if v == nil {
		return nil
	}
	view := viewEntry(key, *v)
	return &view
}

func viewDiff(name string, d graveler.Diff) any {
	return struct {
		Change string `json:"change"`
		entryKeyView
		Left  *valueView `json:"left,omitempty"`
		Right *valueView `json:"right,omitempty"`
	}{name, viewEntryKey(d.Key), viewSide(d.Key, d.Left), viewSide(d.Key, d.Right)}
}
