// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

func (a *app) lifecyclePredict() *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use: "predict REPO/BRANCH:KEY", Short: "Say when the objects of a key expire by their own times, and by which rule",
		Long: "Say when the objects of a key, as the branch has them committed, expire by their own times, and by which rule: what S3 tells in the header x-amz-expiration. An object that came to the branch later than it was stored, such as by a merge, goes later than that: " +
			"'moraine lifecycle explain' reads the branch's log, and knows. Locks are not looked at.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseObject(args[0])
			if err == nil {
				err = f.complete(cmd)
			}
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error {
				c, err := f.config(s, nil, nil)
				if err != nil {
					return err
				}
				all, err := predictions(cmd.Context(), s, at, lifecycle.Calendar{Day: c.Day, Boundary: c.DayBoundary})
				if err != nil {
					return err
				}
				return table(a.printer, thenError(all, nil), []string{"OBJECT", "VERSION", "EXPIRES", "ACTION", "RULE"}, prediction.view, prediction.cells)
			})
		},
	}
	f.calendar(cmd)
	return cmd
}

// prediction is when an object expires; Rule is nil where it does not.
type prediction struct {
	lifecycle.Object
	lifecycle.Prediction
}

func predictions(ctx context.Context, s *moraine.Store, at address, c lifecycle.Calendar) (all []prediction, err error) {
	if err := c.Validate(); err != nil {
		return nil, usageError{err.Error()}
	}
	rules, err := dailyrun.GetConfiguration(ctx, s, at.repo)
	if err != nil {
		return nil, err
	}
	buckets, err := catalog.New(catalog.Config{Store: s})
	if err != nil {
		return nil, err
	}
	versioning, err := buckets.Versioning(ctx, at.repo)
	if err != nil {
		return nil, err
	}
	b, err := s.GetBranch(ctx, at.repo, at.branch())
	if err != nil {
		return nil, err
	}
	head, err := s.ResolveRef(ctx, at.repo, string(b.Head))
	if err != nil {
		return nil, err
	}
	t, err := walker.Open(ctx, s, at.repo, head.Tree, versioning)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	for o, err := range t.Group(string(at.key)).Objects(ctx) {
		if err != nil {
			return nil, err
		}
		one := prediction{Object: o.Object}
		one.Prediction, _ = lifecycle.PredictExpiry(rules.Rules, &o.Object, c)
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, notCommitted(at)
	}
	return all, nil
}

func notCommitted(at address) error {
	return hinted{fmt.Errorf("%s/%s:%s: %w", at.repo, at.ref, escape(at.key), graveler.ErrEntryNotFound), fmt.Sprintf("what is not committed yet has not begun to age; what has gone is in 'moraine reflog %s/%s'", at.repo, at.ref)}
}

func (p prediction) view() any {
	view := struct {
		agingView
		Expires time.Time `json:"expires,omitzero"`
		Action  string    `json:"action,omitempty"`
		Rule    string    `json:"rule,omitempty"`
	}{agingView: viewAging(&p.Object)}
	if p.Rule != nil {
		view.Expires, view.Action, view.Rule = p.At, p.Prediction.Kind.String(), p.Rule.ID
	}
	return view
}

func (p prediction) cells() []string {
	cells := []string{p.Object.Kind.String(), orDash(p.VersionID), "-", "-", "-"}
	if p.Rule != nil {
		copy(cells[2:], []string{formatTime(p.At), p.Prediction.Kind.String(), escape(p.Rule.ID)})
	}
	return cells
}

type agingView struct {
	keyView
	Kind    string `json:"kind"`
	Version string `json:"version,omitempty"`
}

func viewAging(o *lifecycle.Object) agingView {
	return agingView{viewKey(graveler.Key(o.Key)), o.Kind.String(), o.VersionID}
}

func (a *app) lifecycleExplain() *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use: "explain REPO/BRANCH:KEY", Short: "Say which rule will act on the objects of a key, when, and why not earlier",
		Long: "Say for the objects of a key, as the branch has them committed, what each rule has in store for them: first those that will act, the first of which decides, and then those that will not, and why. " +
			"SINCE is since when the branch shows the object. Actions that are not about objects of its kind are left out, unless with --verbose, or in JSON. It reads the whole log of the branch. Give the --day, --boundary and --retention-days that passes have. Of a branch that passes leave out it says so as well, and what they would do.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseObject(args[0])
			if err != nil {
				return err
			}
			return a.readPasses(cmd, &f, func(c dailyrun.Config) error {
				all, err := dailyrun.Explain(cmd.Context(), c, at.repo, at.branch(), string(at.key))
				if err == nil && len(all) == 0 {
					err = notCommitted(at)
				}
				return table(a.printer, thenError(explanations(all, a.verbose || a.printer.json), err), []string{"OBJECT", "VERSION", "SINCE", "ACTION", "RULE", "WHEN", "WHY"}, explanation.view, explanation.cells)
			})
		},
	}
	f.view(cmd)
	return cmd
}

// explanation is what one action has in store for one object.
type explanation struct {
	dailyrun.ActionExplanation
	object lifecycle.Object
	since  time.Time
}

// explanations are those of all objects; of each first what will happen, the earliest before the others. Unless they are wanted,
// actions are left out that are about objects of other kinds, but for an object that has no others.
func explanations(all []dailyrun.Explanation, every bool) (rows []explanation) {
	for _, x := range all {
		from := len(rows)
		about := func(one dailyrun.ActionExplanation) bool { return one.Kind.On(x.Object.Kind) }
		every := every || !slices.ContainsFunc(x.Actions, about)
		for _, one := range x.Actions {
			if every || about(one) {
				rows = append(rows, explanation{one, x.Object.Object, x.Since})
			}
		}
		slices.SortStableFunc(rows[from:], func(a, b explanation) int {
			return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.At.Compare(b.At))
		})
	}
	return rows
}

// rank puts what will happen first. What will not has no time, and keeps its order.
func (x explanation) rank() int {
	if x.Acts {
		return 0
	}
	return 1
}

func (x explanation) view() any {
	view := struct {
		agingView
		ShownSince time.Time `json:"shown_since,omitzero"`
		Action     string    `json:"action"`
		Rule       string    `json:"rule"`
		Acts       bool      `json:"acts"`
		At         time.Time `json:"at,omitzero"`
		Why        string    `json:"why"`
	}{agingView: viewAging(&x.object), ShownSince: x.since, Action: x.Kind.String(), Rule: x.Rule.ID, Acts: x.Acts, Why: x.Why}
	if x.Acts {
		view.At = x.At
	}
	return view
}

func (x explanation) cells() []string {
	when := "never"
	if x.Acts {
		when = formatTime(x.At)
	}
	return []string{x.object.Kind.String(), orDash(x.object.VersionID), formatTime(x.since), x.Kind.String(), escape(x.Rule.ID), when, x.Why}
}
