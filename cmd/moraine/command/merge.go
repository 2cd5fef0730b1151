// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// mergeOptions are the flags of merge, as they were given.
type mergeOptions struct {
	commit      commitFlags
	strategy    string
	strategyFor []string
	params      graveler.MergeParams
	dryRun      bool
}

func (a *app) merge() *cobra.Command {
	var o mergeOptions
	cmd := &cobra.Command{
		Use: "merge REPO/SOURCE REPO/DEST", Short: "Bring what a ref has changed into a branch",
		Long: "Bring what SOURCE has changed since the merge base, the last commit that both have, into the branch DEST as one commit, and print the ID of DEST's new head. " +
			"An entry that both have changed, and not in the same way, is a conflict unless a strategy decides. Conflicts are listed by key, with the beginnings of the " +
			"identities that the entry has in the base, in DEST (ours) and in SOURCE (theirs); nothing is changed then.\n\n" +
			"--dry-run changes nothing in any case, and ends as the merge would: it lists the conflicts, or else what the merge would change in DEST, by key: + would be added, - removed, ~ changed. Where DEST has uncommitted " +
			"changes, which the merge would refuse, the list is of what there is to merge without them.",
		Example: "moraine merge lake/experiment lake/main\nmoraine merge lake/experiment lake/main --dry-run\nmoraine merge lake/experiment lake/main --strategy-for notes/=source-wins",
		Args:    cobra.ExactArgs(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runMerge(cmd.Context(), args, o) },
	}
	flags := cmd.Flags()
	o.commit.define(flags, "what the commit is about (default: what was merged)")
	flags.StringVar(&o.strategy, "strategy", "none", "what becomes of conflicts: "+strategies)
	flags.StringArrayVar(&o.strategyFor, "strategy-for", nil, "PREFIX=STRATEGY for the keys with a prefix, of several the longest one; may be repeated")
	flags.BoolVar(&o.params.Squash, "squash", false, "make an ordinary commit, which does not know SOURCE as a parent")
	flags.BoolVar(&o.params.FastForward, "ff", false, "make SOURCE the head, without a commit, where it has all that DEST has")
	flags.BoolVar(&o.params.AllowDirty, "allow-dirty", false, "keep uncommitted changes of DEST, on top of the result")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show what would happen, and change nothing")
	cmd.MarkFlagsMutuallyExclusive("squash", "ff")
	return cmd
}

func (a *app) runMerge(ctx context.Context, args []string, o mergeOptions) error {
	source, err := parseRef(args[0], "REPO/SOURCE", "lake/experiment")
	if err != nil {
		return err
	}
	dest, err := parseBranch(args[1])
	if err == nil {
		err = sameRepository(source, dest)
	}
	if err != nil {
		return err
	}
	p, err := o.read(source, dest)
	if err != nil {
		return err
	}
	how, do := writing, a.mergeInto
	if o.dryRun {
		how, do = reading, a.previewMerge
	}
	return a.useBranch(ctx, how, dest, func(s *moraine.Store) error {
		err := do(ctx, s, source, dest, p)
		if errors.Is(err, graveler.ErrConflict) {
			err = errors.Join(err, a.printConflicts(s.MergeConflicts(ctx, dest.repo, source.ref, dest.branch(), p)))
		}
		return unmoved(err, "decide with --strategy or --strategy-for", "DEST has all of SOURCE already; use --allow-empty to commit anyway")
	})
}

func (a *app) mergeInto(ctx context.Context, s *moraine.Store, source, dest address, p graveler.MergeParams) error {
	c, err := s.Merge(ctx, dest.repo, source.ref, dest.branch(), p)
	if err != nil {
		return err
	}
	return a.printCommit(c)
}

// previewMerge shows what a merge would come to.
func (a *app) previewMerge(ctx context.Context, s *moraine.Store, source, dest address, p graveler.MergeParams) error {
	preview, err := s.PreviewMerge(ctx, dest.repo, source.ref, dest.branch(), p)
	if err != nil {
		return err
	}
	if preview.FastForward {
		a.note("a fast-forward: the head of %s/%s becomes %s", dest.repo, dest.ref, shortID(preview.Source))
	}
	return errors.Join(a.printDiff(s.MergeChanges(ctx, dest.repo, source.ref, dest.branch(), p)), preview.Refusal)
}

func (o *mergeOptions) read(source, dest address) (p graveler.MergeParams, err error) {
	p = o.params
	if p.CommitParams, err = o.commit.read(); err != nil {
		return p, err
	}
	if p.Message == "" {
		p.Message = fmt.Sprintf("Merge %s into %s", source.ref, dest.ref)
	}
	if p.Strategy, err = parseStrategy("strategy", o.strategy); err != nil {
		return p, err
	}
	p.StrategyFor, err = parseStrategyFor(o.strategyFor)
	return p, err
}

// printConflicts prints one line for each conflict.
func (a *app) printConflicts(conflicts iter.Seq2[graveler.Conflict, error]) error {
	for c, err := range conflicts {
		if err == nil {
			err = a.printConflict(c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printConflict(c graveler.Conflict) error {
	if a.printer.json {
		return a.printer.object(struct {
			entryKeyView
			Base   *valueView `json:"base,omitempty"`
			Ours   *valueView `json:"ours,omitempty"`
			Theirs *valueView `json:"theirs,omitempty"`
		}{viewEntryKey(c.Key), viewSide(c.Key, c.Base), viewSide(c.Key, c.Left), viewSide(c.Key, c.Right)})
	}
	return a.printer.line(a.colored(red, "! "+describeKey(c.Key)) +
		fmt.Sprintf("  base %s, ours %s, theirs %s", shortIdentity(c.Base), shortIdentity(c.Left), shortIdentity(c.Right)))
}

func shortIdentity(v *graveler.Value) string {
	if v == nil {
		return "absent"
	}
	id := hex.EncodeToString(v.Identity)
	return id[:min(len(id), shortDigits)]
}
