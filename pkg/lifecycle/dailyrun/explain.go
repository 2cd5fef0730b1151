// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// Explanation is what rules have in store for an object.
type Explanation struct {
	walker.Object
	// Since is since when the branch shows the object, without a break; zero where the log does not go back so far.
	Since time.Time
	// Actions are those of all rules, in their order.
	Actions []ActionExplanation
}

// ActionExplanation is what one action of a rule has in store for an object.
type ActionExplanation struct {
	*engine.CompiledAction
	// Acts is set where the action will be carried out, as things are, and At is when it is due: not after now where the next pass does it.
	Acts bool
	At   time.Time
	// Why says why it will not be, or why not earlier; it has no times, which are At and Since.
	Why string
}

// ErrLeftOut: passes leave the branch out as long as that is so.
var ErrLeftOut = errors.New("lifecycle passes leave it out")

// Explain says which rules will act on the objects of a key as a branch has them committed ("": the default branch), when, and
// why not earlier. A branch that has no rules is ErrNoConfiguration; one that passes leave out is ErrLeftOut, beside what they
// would do otherwise. An entry that holds no object is walker.ErrNoObject. It reads the whole log of the branch.
func Explain(ctx context.Context, c Config, repo graveler.RepositoryID, branch graveler.BranchID, key string) ([]Explanation, error) {
	c.Holder = nil
	p, err := newPass(c)
	if err != nil {
		return nil, err
	}
	r, err := p.Store.GetRepository(ctx, repo)
	if err == nil {
		_, err = p.repository(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("repository %s: %w", repo, err)
	}
	if branch == "" {
		branch = r.DefaultBranch
	}
	if _, err := p.Store.GetBranch(ctx, repo, branch); err != nil {
		return nil, fmt.Errorf("explain lifecycle: %w", err)
	}
	for _, s := range p.sources {
		if s.target.Branch == branch {
			all, err := s.explain(ctx, key)
			return all, errors.Join(err, s.close())
		}
	}
	return nil, fmt.Errorf("branch %s/%s: %w", repo, branch, ErrNoConfiguration)
}

func (s *source) explain(ctx context.Context, key string) (all []Explanation, err error) {
	var leftOut error
	if s.report.Skipped != "" {
		leftOut = fmt.Errorf("%s/%s: %w: %s", s.target.Repository, s.target.Branch, ErrLeftOut, s.report.Skipped)
		s.head, s.unfrozen = s.point(ctx, math.MaxInt64)
	}
	if s.unfrozen != nil {
		return nil, s.unfrozen
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	head, err := s.present(ctx)
	if err != nil {
		return nil, err
	}
	for o, err := range head.Group(key).Objects(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, Explanation{Object: *o})
	}
	for i := range all {
		if err := s.explainOne(ctx, &all[i]); err != nil {
			return nil, err
		}
	}
	return all, leftOut
}

func (s *source) explainOne(ctx context.Context, x *Explanation) error {
	spans, err := s.shown(ctx, &x.Object)
	if err != nil {
		return err
	}
	if n := len(spans); n > 0 {
		x.Since = timeOf(spans[n-1].from)
	}
	for _, a := range s.snapshot.Actions(s.target.Repository) {
		one := ActionExplanation{CompiledAction: a}
		if one.Why = whyNot(a, &x.Object.Object); one.Why == "" {
			s.explainTime(&one, x, spans)
		}
		x.Actions = append(x.Actions, one)
	}
	return nil
}

// explainTime says when an action that is meant for an object is due.
func (s *source) explainTime(one *ActionExplanation, x *Explanation, spans []span) {
	a, o := one.CompiledAction, &x.Object.Object
	replayed := slices.ContainsFunc(s.replay, func(b *engine.CompiledAction) bool { return b.Delay == a.Delay })
	switch {
	case a.Kind.Replay() && replayed:
		one.At, one.Acts = s.nextDue(a.Delay, spans)
		if one.Why = "the branch has not shown it long enough"; one.Acts {
			one.Why = s.delayText(a.Delay, o.Kind)
		}
	default:
		one.At, one.Acts = lifecycle.Due(&a.Action, o, s.calendar())
		if one.Why = "it is not known when it was stored"; one.Acts {
			one.Why = scannedText(a)
		}
	}
	until, locked := o.Locked(one.At)
	if until2, now := o.Locked(s.now); now && until2.IsZero() {
		until, locked = until2, now
	}
	if !one.Acts || !locked || !a.Permanent(o) {
		return
	}
	if one.Acts = !until.IsZero(); !one.Acts {
		one.Why = "it is under legal hold"
		return
	}
	one.At, one.Why = until, "it is retained until then"
}

// delayText says why an object is due so many days after the branch began to show it as it is.
func (s *source) delayText(delay int, kind lifecycle.ObjectKind) string {
	text := plural(delay, "day") + " after it came to the branch"
	if kind == lifecycle.Noncurrent {
		text = plural(delay, "day") + " after it was displaced on the branch"
	}
	if s.DayBoundary == lifecycle.Exact {
		return text
	}
	return text + ", by the calendar"
}

// scannedText says why an action is due that the log does not tell of.
func scannedText(a *engine.CompiledAction) string {
	switch a.Kind {
	case lifecycle.ExpirationDate:
		return "it is the date of the rule"
	case lifecycle.ExpiredDeleteMarker:
		return "the delete marker is the only version"
	case lifecycle.NewerNoncurrent:
		return "beyond " + plural(a.NewerNoncurrent, "newer noncurrent version")
	default:
		return "its own times say so"
	}
}

// whyNot says why an action is not meant for an object, "" where it is.
func whyNot(a *engine.CompiledAction, o *lifecycle.Object) string {
	f := &a.Rule.Filter
	switch {
	case !a.Active:
		return "the rule is disabled"
	case !a.Kind.On(o.Kind):
		return "it is not about " + kindText(o.Kind)
	case f.Prefix != nil && !strings.HasPrefix(o.Key, *f.Prefix):
		return fmt.Sprintf("the key does not begin with %q", *f.Prefix)
	case f.SizeGreaterThan != nil && o.Size <= *f.SizeGreaterThan:
		return fmt.Sprintf("its size of %s is not more than %d", plural(o.Size, "byte"), *f.SizeGreaterThan)
	case f.SizeLessThan != nil && o.Size >= *f.SizeLessThan:
		return fmt.Sprintf("its size of %s is not less than %d", plural(o.Size, "byte"), *f.SizeLessThan)
	case !a.Accepts(o):
		return "it does not have all the tags"
	case o.Kind == lifecycle.Marker && !o.Sole:
		return "the delete marker is not the only version"
	case !a.Applies(o):
		return fmt.Sprintf("newer noncurrent versions that count: %d of %d", o.NewerNoncurrent, a.NewerNoncurrent)
	default:
		return ""
	}
}

func plural[N int | int64](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// kindText is what objects of a kind are called.
func kindText(k lifecycle.ObjectKind) string {
	switch k {
	case lifecycle.Current:
		return "current objects"
	case lifecycle.Noncurrent:
		return "noncurrent versions"
	case lifecycle.Marker:
		return "delete markers"
	case lifecycle.Upload:
		return "uploads"
	default:
		return k.String()
	}
}

// span is a time during which the branch showed an object; through is 0 where it still does.
type span struct{ from, through int64 }

// nextDue returns when an object is due that the branch showed then and then.
func (s *source) nextDue(delay int, spans []span) (at time.Time, ok bool) {
	c := s.calendar()
	for _, one := range spans {
		due := c.Due(delay, time.Unix(0, one.from))
		pass := due // the first that can find it due
		if pass.Before(s.now) {
			pass = s.now
		}
		if one.through != 0 && one.through <= lifecycle.Nanoseconds(c.Horizon(delay, pass)) {
			continue // it was hidden before that
		}
		if !ok || due.Before(at) {
			at, ok = due, true
		}
	}
	return at, ok
}

// shown returns when the branch showed an object, by what is left of its log.
func (s *source) shown(ctx context.Context, o *walker.Object) (spans []span, err error) {
	start := int64(0)
	first, err := s.feed.HeadAt(ctx, s.log, start)
	var truncated *graveler.LogTruncatedError
	if errors.As(err, &truncated) {
		start = truncated.Earliest
		first, err = s.feed.HeadAt(ctx, s.log, start)
	}
	if err != nil {
		return nil, err
	}
	var last graveler.MetaRangeID
	look := func(at int64, tree graveler.MetaRangeID) error {
		if tree == last {
			return nil
		}
		last = tree
		t, err := s.open(ctx, tree)
		if err != nil {
			return err
		}
		v, err := t.Entry(o.Entry)
		there := v != nil && sameObject(*v, o)
		n := len(spans)
		open := n > 0 && spans[n-1].through == 0
		switch {
		case there && !open:
			spans = append(spans, span{from: at})
		case !there && open:
			spans[n-1].through = at
		}
		return errors.Join(err, t.Close())
	}
	if err := look(first.Time, first.Tree); err != nil {
		return nil, err
	}
	log := graveler.LogName{Branch: s.log.Branch, UID: s.log.UID}
	for m, err := range s.Store.MoveLog(ctx, s.target.Repository, log, start, s.head.Time) {
		if err == nil {
			err = look(m.Time, m.NewTree)
		}
		if err != nil {
			return nil, err
		}
	}
	return spans, nil
}
