// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// guarded makes the fixture of the operations that attempts tells of, in which *guard is the guard.
func guarded(t *testing.T, guard *func(ctx context.Context, r *graveler.Revision) error) *fixture {
	f := newFixture(t, func(c *graveler.Config) {
		c.Hooks.Guard = func(ctx context.Context, r *graveler.Revision) error { return (*guard)(ctx, r) }
	})
	ctx := context.Background()
	f.set(t, "k", "committed")
	f.commit(t, "first")
	for _, b := range []graveler.BranchID{"work", "side"} {
		_, err := f.CreateBranch(ctx, "lake", b, "main")
		require.NoError(t, err)
	}
	require.NoError(t, f.Set(ctx, "lake", "side", key("side"), value("side")))
	_, err := f.Commit(ctx, "lake", "side", graveler.CommitParams{})
	require.NoError(t, err)
	return f
}

// asked are the operations that a guard is asked about.
var asked = map[string]bool{
	"delete prefix": true, "reset key": true, "reset staged": true, "merge": true, "revert": true, "cherry-pick": true, "import": true, "change tree": true, "reset": true,
}

func TestAGuardIsAskedAboutAllThatIsNotStaged(t *testing.T) {
	errNo := errors.New("no")
	calls := 0
	yes := func(context.Context, *graveler.Revision) error { return nil }
	no := func(context.Context, *graveler.Revision) error { calls++; return errNo }
	guard := no
	f := guarded(t, &guard)
	for _, a := range attempts(f.Graveler) {
		if a.action == graveler.ActionDelete {
			continue
		}
		calls = 0
		before := show(t, f.Graveler, "work", graveler.ListOptions{})
		head, err := f.GetBranch(t.Context(), "lake", "work")
		require.NoError(t, err)
		err = a.try("work")
		if !asked[a.name] {
			require.Zero(t, calls, a.name)
			require.NoError(t, err, a.name)
			continue
		}
		require.ErrorIs(t, err, errNo, a.name)
		require.Equal(t, 1, calls, a.name)
		require.Equal(t, before, show(t, f.Graveler, "work", graveler.ListOptions{}), a.name)
		after, err := f.GetBranch(t.Context(), "lake", "work")
		require.NoError(t, err)
		require.Equal(t, head.Head, after.Head, a.name)
		require.Equal(t, head.LastMove, after.LastMove, a.name)
		guard = yes
		require.NoError(t, a.try("work"), a.name)
		guard = no
	}
}

func TestARevisionShowsWhatABranchWillShow(t *testing.T) {
	ctx := t.Context()
	var seen graveler.Revision
	var got map[string][]*graveler.Value
	var diff []graveler.Diff
	guard := func(ctx context.Context, r *graveler.Revision) error {
		seen, got, diff = *r, map[string][]*graveler.Value{}, nil
		for name, tree := range map[string]graveler.MetaRangeID{"before": r.Before, "after": r.After, "old head": r.OldHead, "new head": r.NewHead} {
			values, err := r.Get(ctx, tree, key("k"), key("side"), key("mine"))
			if err != nil {
				return err
			}
			got[name] = values
		}
		for d, err := range r.Diff(ctx, r.Before, r.After) {
			if err != nil {
				return err
			}
			diff = append(diff, d)
		}
		_, err := r.Setting(ctx, "none")
		require.ErrorIs(t, err, graveler.ErrSettingNotFound)
		return nil
	}
	f := guarded(t, &guard)
	require.NoError(t, f.Set(ctx, "lake", "work", key("mine"), value("mine")))
	require.NoError(t, f.Delete(ctx, "lake", "work", key("k")))
	_, err := f.Merge(ctx, "lake", "side", "work", graveler.MergeParams{AllowDirty: true})
	require.NoError(t, err)
	k, side, mine := value("committed"), value("side"), value("mine")
	require.Equal(t, map[string][]*graveler.Value{
		"before": {nil, nil, &mine}, "after": {nil, &side, &mine}, "old head": {&k, nil, nil}, "new head": {&k, &side, nil},
	}, got)
	require.Equal(t, []graveler.Diff{{Key: key("side"), Right: &side}}, diff)
	require.Equal(t, graveler.BranchID("work"), seen.Branch)

	require.NoError(t, f.ResetStagedKey(ctx, "lake", "work", key("k")))
	require.Equal(t, map[string][]*graveler.Value{
		"before": {nil, &side, &mine}, "after": {&k, &side, &mine}, "old head": {&k, &side, nil}, "new head": {&k, &side, nil},
	}, got)
}

// What a guard relies on is staged while it is asked: the operation begins anew, and the guard sees that.
func TestWhatAGuardReliesOnIsNotHidden(t *testing.T) {
	ctx := t.Context()
	hide := map[string]func(g *graveler.Graveler) error{
		"set":    func(g *graveler.Graveler) error { return g.Set(ctx, "lake", "work", key("k"), value("late")) },
		"delete": func(g *graveler.Graveler) error { return g.Delete(ctx, "lake", "work", key("k")) },
		"set and sealed": func(g *graveler.Graveler) error {
			if err := g.Set(ctx, "lake", "work", key("k"), value("late")); err != nil {
				return err
			}
			_, err := g.Commit(ctx, "lake", "work", graveler.CommitParams{Prefixes: []graveler.Key{key("nothing")}})
			if errors.Is(err, graveler.ErrNoChanges) {
				err = nil
			}
			return err
		},
		"another key": func(g *graveler.Graveler) error { return g.Set(ctx, "lake", "work", key("other"), value("late")) },
	}
	for name, hide := range hide {
		for op, do := range map[string]func(g *graveler.Graveler) error{
			"merge": func(g *graveler.Graveler) error {
				_, err := g.Merge(ctx, "lake", "side", "work", graveler.MergeParams{AllowDirty: true})
				return err
			},
			"reset staged": func(g *graveler.Graveler) error { return g.ResetStaged(ctx, "lake", "work", key("mine")) },
		} {
			t.Run(op+", "+name, func(t *testing.T) {
				var other *graveler.Graveler
				var shown []*graveler.Value
				guard := func(ctx context.Context, r *graveler.Revision) error {
					r.Rely(key("k"))
					values, err := r.Get(ctx, r.Before, key("k"))
					if shown = append(shown, values...); len(shown) == 1 && err == nil {
						err = hide(other)
					}
					return err
				}
				f := guarded(t, &guard)
				other = f.another(t)
				require.NoError(t, f.Set(ctx, "lake", "work", key("mine"), value("mine")))
				require.NoError(t, do(f.Graveler))
				committed, late := value("committed"), value("late")
				switch name {
				case "another key":
					require.Equal(t, []*graveler.Value{&committed}, shown)
				case "delete":
					require.Equal(t, []*graveler.Value{&committed, nil}, shown)
				default:
					require.Equal(t, []*graveler.Value{&committed, &late}, shown)
				}
			})
		}
	}
}
