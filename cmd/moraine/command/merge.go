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
			"--dry-run changes nothing in any case: it lists the conflicts, or else, as 'moraine compare' does, what SOURCE has changed since the merge base.",
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
	if o.dryRun {
		return a.useBranch(ctx, reading, dest, func(s *moraine.Store) error { return a.previewMerge(ctx, s, source, dest, p) })
	}
	return a.useBranch(ctx, writing, dest, func(s *moraine.Store) error {
		c, err := s.Merge(ctx, dest.repo, source.ref, dest.branch(), p)
		if errors.Is(err, graveler.ErrConflict) {
			_, listed := a.printConflicts(s.MergeConflicts(ctx, dest.repo, source.ref, dest.branch(), p))
			err = errors.Join(err, listed)
		}
		if err != nil {
			return unmoved(err, "see them with --dry-run, decide with --strategy or --strategy-for", "DEST has all of SOURCE already; use --allow-empty to commit anyway")
		}
		return a.printCommit(c)
	})
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

// previewMerge shows what a merge would come to.
func (a *app) previewMerge(ctx context.Context, s *moraine.Store, source, dest address, p graveler.MergeParams) error {
	n, err := a.printConflicts(s.MergeConflicts(ctx, dest.repo, source.ref, dest.branch(), p))
	if err != nil {
		return err
	}
	if n > 0 {
		err := fmt.Errorf("merge %s/%s into %s/%s: %w: %s", source.repo, source.ref, dest.repo, dest.ref, graveler.ErrConflict, plural(n, "entry", "entries"))
		return hinted{err, "decide with --strategy or --strategy-for"}
	}
	return a.printDiff(s.Compare(ctx, dest.repo, dest.ref, source.ref, graveler.DiffOptions{}))
}

// printConflicts prints one line for each conflict, and returns how many there are.
func (a *app) printConflicts(conflicts iter.Seq2[graveler.Conflict, error]) (n int, err error) {
	for c, err := range conflicts {
		if err == nil {
			err = a.printConflict(c)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (a *app) printConflict(c graveler.Conflict) error {
	if a.printer.json {
		return a.printer.object(struct {
			keyView
			Base   *valueView `json:"base,omitempty"`
			Ours   *valueView `json:"ours,omitempty"`
			Theirs *valueView `json:"theirs,omitempty"`
		}{viewKey(c.Key), viewSide(c.Base), viewSide(c.Left), viewSide(c.Right)})
	}
	return a.printer.line(a.colored(red, "! "+escape(c.Key)) +
		fmt.Sprintf("  base %s, ours %s, theirs %s", shortIdentity(c.Base), shortIdentity(c.Left), shortIdentity(c.Right)))
}

func shortIdentity(v *graveler.Value) string {
	if v == nil {
		return "absent"
	}
	id := hex.EncodeToString(v.Identity)
	return id[:min(len(id), shortDigits)]
}
