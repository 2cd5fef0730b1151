// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// protect makes the rules of lake the given ones.
func protect(t fataler, g *graveler.Graveler, rules ...graveler.ProtectionRule) {
	t.Helper()
	require.NoError(t, g.ProtectBranches(context.Background(), "lake", func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) { return rules, nil }))
}

// attempts is every operation that changes a branch, by the action that it is. Each leaves the branch as the next one needs it.
func attempts(g *graveler.Graveler) []struct {
	name   string
	action graveler.Actions
	try    func(branch graveler.BranchID) error
} {
	ctx := context.Background()
	return []struct {
		name   string
		action graveler.Actions
		try    func(branch graveler.BranchID) error
	}{
		{"set", graveler.ActionStage, func(b graveler.BranchID) error { return g.Set(ctx, "lake", b, key("k"), value("v")) }},
		{"set many", graveler.ActionStage, func(b graveler.BranchID) error {
			return g.SetMany(ctx, "lake", b, []graveler.Entry{{Key: key("k1"), Value: &graveler.Value{Identity: []byte("i")}}, {Key: key("k2")}})
		}},
		{"set if absent", graveler.ActionStage, func(b graveler.BranchID) error { return g.SetIfAbsent(ctx, "lake", b, key("new"), value("v")) }},
		{"set if", graveler.ActionStage, func(b graveler.BranchID) error {
			return g.SetIf(ctx, "lake", b, key("k"), value("v"), value("v").Identity)
		}},
		{"update", graveler.ActionStage, func(b graveler.BranchID) error {
			return g.Update(ctx, "lake", b, key("k"), func(cur *graveler.Value) (*graveler.Value, error) { return cur, nil })
		}},
		{"transact", graveler.ActionStage, func(b graveler.BranchID) error {
			return g.Transact(ctx, "lake", b, func(_ context.Context, tx *graveler.Transaction) error { tx.Set(key("k"), value("v")); return nil })
		}},
		{"transact without a change", graveler.ActionStage, func(b graveler.BranchID) error {
			return g.Transact(ctx, "lake", b, func(context.Context, *graveler.Transaction) error { return nil })
		}},
		{"commit", graveler.ActionCommit, func(b graveler.BranchID) error {
			_, err := g.Commit(ctx, "lake", b, graveler.CommitParams{})
			return err
		}},
		{"delete", graveler.ActionStage, func(b graveler.BranchID) error { return g.Delete(ctx, "lake", b, key("k")) }},
		{"delete absent", graveler.ActionStage, func(b graveler.BranchID) error { return g.Delete(ctx, "lake", b, key("absent")) }},
		{"delete prefix", graveler.ActionStage, func(b graveler.BranchID) error { return g.DeletePrefix(ctx, "lake", b, key("k")) }},
		{"reset key", graveler.ActionStage, func(b graveler.BranchID) error { return g.ResetStagedKey(ctx, "lake", b, key("k")) }},
		{"reset staged", graveler.ActionStage, func(b graveler.BranchID) error { return g.ResetStaged(ctx, "lake", b, nil) }},
		{"merge", graveler.ActionMove, func(b graveler.BranchID) error {
			_, err := g.Merge(ctx, "lake", "side", b, graveler.MergeParams{})
			return err
		}},
		{"revert", graveler.ActionMove, func(b graveler.BranchID) error {
			_, err := g.Revert(ctx, "lake", b, "side", graveler.PickParams{})
			return err
		}},
		{"cherry-pick", graveler.ActionMove, func(b graveler.BranchID) error {
			_, err := g.CherryPick(ctx, "lake", b, "side", graveler.PickParams{})
			return err
		}},
		{"import", graveler.ActionMove, func(b graveler.BranchID) error {
			v := value("imported")
			_, err := g.Import(ctx, "lake", b, func(yield func(graveler.Entry, error) bool) { yield(graveler.Entry{Key: key("i"), Value: &v}, nil) }, graveler.ImportParams{})
			return err
		}},
		{"change tree", graveler.ActionMove, func(b graveler.BranchID) error {
			return toggle(ctx, g, "lake", b, step{key: "c", text: "changed"})
		}},
		{"reset", graveler.ActionMove, func(b graveler.BranchID) error {
			_, err := g.Reset(ctx, "lake", b, "side", graveler.ResetParams{})
			return err
		}},
		{"delete branch", graveler.ActionDelete, func(b graveler.BranchID) error { return g.DeleteBranch(ctx, "lake", b, false) }},
	}
}

// protected makes a fixture with the branches work and side, which differ.
func protectedFixture(t *testing.T, url string) *fixture {
	f := newFixtureAt(t, url)
	ctx := context.Background()
	for _, b := range []graveler.BranchID{"work", "side"} {
		_, err := f.CreateBranch(ctx, "lake", b, "main")
		require.NoError(t, err)
	}
	require.NoError(t, f.Set(ctx, "lake", "side", key("side"), value("side")))
	_, err := f.Commit(ctx, "lake", "side", graveler.CommitParams{})
	require.NoError(t, err)
	return f
}

func TestEveryOperationChecksProtection(t *testing.T) {
	f := protectedFixture(t, "mem:")
	other := f.another(t) // a process that remembers nothing of the rules
	for _, a := range attempts(f.Graveler) {
		before := show(t, f.Graveler, "work", graveler.ListOptions{})
		protect(t, other, graveler.ProtectionRule{Pattern: "wo*", Forbid: a.action})
		err := a.try("work")
		require.ErrorIs(t, err, graveler.ErrProtected, a.name)
		require.Equal(t, before, show(t, f.Graveler, "work", graveler.ListOptions{}), a.name)

		require.NoError(t, other.SetReadOnly(context.Background(), "lake", true))
		require.ErrorIs(t, a.try("work"), graveler.ErrReadOnly, a.name)
		require.NoError(t, other.SetReadOnly(context.Background(), "lake", false))

		const all = graveler.ActionStage | graveler.ActionCommit | graveler.ActionMove | graveler.ActionDelete
		protect(t, other, graveler.ProtectionRule{Pattern: "work", Forbid: all &^ a.action}, graveler.ProtectionRule{Pattern: "main", Forbid: all})
		require.NoError(t, a.try("work"), a.name)
		protect(t, other)
	}
}

func TestProtectionDoesNotKeepARepositoryFromBeingDeletedOrUpkept(t *testing.T) {
	f := newFixture(t, dropAtOnce)
	ctx := context.Background()
	for i := range 10 {
		f.set(t, fmt.Sprint(i), "x")
		require.NoError(t, f.DeletePrefix(ctx, "lake", "main", key("none")))
	}
	protect(t, f.Graveler, graveler.ProtectionRule{Pattern: "*", Forbid: graveler.ActionStage | graveler.ActionCommit | graveler.ActionMove | graveler.ActionDelete})
	report, err := f.Maintain(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, report.BranchesCompacted)
	require.NoError(t, f.SetReadOnly(ctx, "lake", true))
	require.NoError(t, f.DeleteRepository(ctx, "lake"))
}

// Once protecting has returned, nothing that other processes had begun before gets through any more.
func TestNothingGetsPastAProtectionThatHasReturned(t *testing.T) {
	for _, url := range []string{"mem:", costlyFences} {
		t.Run(url, func(t *testing.T) {
			f := newFixtureAt(t, url)
			ctx := context.Background()
			for round := range 10 {
				var wg sync.WaitGroup
				for p := range 4 {
					g := f.another(t)
					require.NoError(t, g.Set(ctx, "lake", "main", key("warm"), value("x")))
					wg.Go(func() {
						for i := range 200 {
							err := g.Set(ctx, "lake", "main", key(fmt.Sprintf("%d-%d-%d", round, p, i)), value("x"))
							if i%20 == 19 && err == nil {
								_, err = g.Commit(ctx, "lake", "main", graveler.CommitParams{})
							}
							if errors.Is(err, graveler.ErrNoChanges) {
								err = nil
							}
							if err != nil {
								require.ErrorIs(t, err, graveler.ErrProtected)
								return
							}
						}
					})
				}
				protect(t, f.Graveler, graveler.ProtectionRule{Pattern: "*", Forbid: graveler.ActionStage | graveler.ActionCommit})
				seen, head := show(t, f.Graveler, "main", graveler.ListOptions{}), f.head(t)
				wg.Wait()
				require.Equal(t, seen, show(t, f.Graveler, "main", graveler.ListOptions{}))
				require.Equal(t, head, f.head(t))
				protect(t, f.Graveler)
			}
		})
	}
}

func (f *fixture) head(t *testing.T) graveler.CommitID {
	b, err := f.GetBranch(context.Background(), "lake", "main")
	require.NoError(t, err)
	return b.Head
}

func TestABranchThatIsCreatedWhileRulesChangeHasTheNewOnes(t *testing.T) {
	ctx := context.Background()
	refs := &interruptedRefs{}
	f := newFixture(t, func(c *graveler.Config) { refs.Refs = c.Refs; c.Refs = refs })
	other := f.another(t)
	refs.meanwhile = func() { protect(t, other, graveler.ProtectionRule{Pattern: "dev", Forbid: graveler.ActionDelete}) }
	_, err := f.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	require.ErrorIs(t, f.DeleteBranch(ctx, "lake", "dev", true), graveler.ErrProtected)
}

func TestMaintainFinishesAProtectionThatWasCutOff(t *testing.T) {
	ctx := context.Background()
	edit, breaks := breakable()
	f := newFixture(t, edit)
	*breaks = func(call string) (before, after bool) { return call == "PutBranch", false }
	err := f.ProtectBranches(ctx, "lake", func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
		return []graveler.ProtectionRule{{Pattern: "main", Forbid: graveler.ActionStage}}, nil
	})
	require.Error(t, err)
	*breaks = func(string) (bool, bool) { return false, false }
	_, err = f.Maintain(ctx)
	require.NoError(t, err)
	require.ErrorIs(t, f.Set(ctx, "lake", "main", key("k"), value("v")), graveler.ErrProtected)
}

func TestProtectionRulesComeBackAndBadOnesAreRefused(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	rules := []graveler.ProtectionRule{{Pattern: "release/*", Forbid: graveler.ActionStage | graveler.ActionDelete}, {Pattern: "ma?n", Forbid: graveler.ActionMove}}
	protect(t, f.Graveler, rules...)
	got, err := f.BranchProtection(ctx, "lake")
	require.NoError(t, err)
	require.Equal(t, rules, got)
	b, err := f.CreateBranch(ctx, "lake", "release/1/2", "main")
	require.NoError(t, err)
	require.Equal(t, []string{"stage", "delete"}, b.Protected.Names())

	for name, bad := range map[string]graveler.ProtectionRule{
		"no pattern": {Forbid: graveler.ActionStage}, "nothing forbidden": {Pattern: "x"}, "unknown action": {Pattern: "x", Forbid: 64},
		"no text": {Pattern: "\xff", Forbid: graveler.ActionStage}, "too long": {Pattern: strings.Repeat("x", 201), Forbid: graveler.ActionStage},
		"a class": {Pattern: "[a-z]*", Forbid: graveler.ActionStage}, "a line end": {Pattern: "a\nb", Forbid: graveler.ActionStage},
	} {
		err := f.ProtectBranches(ctx, "lake", func(old []graveler.ProtectionRule) ([]graveler.ProtectionRule, error) { return append(old, bad), nil })
		require.ErrorIs(t, err, graveler.ErrInvalidValue, name)
	}
	require.ErrorIs(t, f.ProtectBranches(ctx, "lake", func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
		return make([]graveler.ProtectionRule, 1001), nil
	}), graveler.ErrTooLarge)
	got, err = f.BranchProtection(ctx, "lake")
	require.NoError(t, err)
	require.Equal(t, rules, got)
	_, err = graveler.ParseAction("push")
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
}

// A document that is not understood forbids everything that depends on it, rather than nothing.
func TestRulesThatAreNotUnderstoodAreNotOverlooked(t *testing.T) {
	ctx := context.Background()
	for _, document := range []string{`{"rules":[{"branches":"x","forbid":["push"]}]}`, `{"rules":[],"default":"deny"}`, `{`} {
		f := newFixture(t)
		r, err := f.GetRepository(ctx, "lake")
		require.NoError(t, err)
		_, err = f.config.Refs.PutSetting(ctx, &r, "branch-protection", []byte(document), nil)
		require.NoError(t, err)
		_, err = f.CreateBranch(ctx, "lake", "dev", "main")
		require.ErrorIs(t, err, graveler.ErrCorrupt)
		_, err = f.Maintain(ctx)
		require.ErrorIs(t, err, graveler.ErrCorrupt)
	}
}

func TestPatternsMatchAsTheEquivalentRegularExpressions(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		pattern := rapid.StringMatching(`[ab/*?]{1,8}`).Draw(t, "pattern")
		name := rapid.StringMatching(`[ab](/?[ab]){0,7}`).Draw(t, "name")
		err := f.ProtectBranches(ctx, "lake", func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
			return []graveler.ProtectionRule{{Pattern: pattern, Forbid: graveler.ActionDelete}}, nil
		})
		if errors.Is(err, graveler.ErrInvalidValue) {
			t.Skip("it can match nothing")
		}
		require.NoError(t, err)
		b, err := f.CreateBranch(ctx, "lake", graveler.BranchID(name), "main")
		require.NoError(t, err)
		expression := strings.NewReplacer(`*`, `.*`, `?`, `.`).Replace(pattern)
		require.Equal(t, regexp.MustCompile("^"+expression+"$").MatchString(name), b.Protected == graveler.ActionDelete)
		protect(t, f.Graveler)
		require.NoError(t, f.DeleteBranch(ctx, "lake", b.ID, true))
	})
}

func TestAPreviewOfAMergeThatIsForbiddenSaysSo(t *testing.T) {
	f := protectedFixture(t, "mem:")
	preview, err := f.PreviewMerge(t.Context(), "lake", "side", "work", graveler.MergeParams{})
	require.NoError(t, err)
	require.NoError(t, preview.Refusal)
	protect(t, f.Graveler, graveler.ProtectionRule{Pattern: "work", Forbid: graveler.ActionMove})
	preview, err = f.PreviewMerge(t.Context(), "lake", "side", "work", graveler.MergeParams{})
	require.NoError(t, err)
	require.ErrorIs(t, preview.Refusal, graveler.ErrProtected)
}

// An import is for the branch that was there when it began, not for another one of its name.
func TestAnImportDoesNotLandOnABranchThatWasMadeAgain(t *testing.T) {
	f := protectedFixture(t, "mem:")
	ctx := t.Context()
	_, err := f.Import(ctx, "lake", "work", func(yield func(graveler.Entry, error) bool) {
		require.NoError(t, f.DeleteBranch(ctx, "lake", "work", true))
		_, err := f.CreateBranch(ctx, "lake", "work", "main")
		require.NoError(t, err)
		v := value("v")
		yield(graveler.Entry{Key: key("k"), Value: &v}, nil)
	}, graveler.ImportParams{})
	require.ErrorIs(t, err, graveler.ErrBranchNotFound)
	require.Empty(t, show(t, f.Graveler, "work", graveler.ListOptions{}))
}
