// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A value that is uncommitted, and goes to a smaller key while a run reads what is uncommitted, is not released: neither while
// what was sealed is read, nor while what has been staged since is.
func TestAValueThatMovesWhileItIsLookedForIsNotReleased(t *testing.T) {
	for name, staged := range map[string]bool{"sealed": false, "staged since": true} {
		t.Run(name, func(t *testing.T) { testMovesWhileLookedFor(t, staged) })
	}
}

func testMovesWhileLookedFor(t *testing.T, stagedSince bool) {
	ctx := context.Background()
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	first := a.commit("main", "z", "A")
	moving, err := a.Graveler.Get(ctx, "lake", string(first), key("z"))
	require.NoError(t, err)
	a.commit("main", "z", "B")
	a.commit("main", "x", "C")
	require.NoError(t, a.Set(ctx, "lake", "main", key("zz"), *moving))
	_, err = a.CreateBranch(ctx, "lake", "before", "main")
	require.NoError(t, err)
	require.NoError(t, a.Set(ctx, "lake", "before", key("k"), value("all is sealed")))
	move := func(from, to string) {
		require.NoError(t, a.Transact(ctx, "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
			found, err := tx.Get(ctx, key(from))
			if err != nil {
				return err
			}
			tx.Set(key(to), *found[0])
			tx.Delete(key(from))
			return nil
		}))
	}
	for run := range 4 {
		fill := func() {
			var entries []graveler.Entry
			for i := range 10_000 {
				v := value(fmt.Sprintf("filler %d of %d", i, run))
				entries = append(entries, graveler.Entry{Key: key(fmt.Sprintf("m%06d", i)), Value: &v})
			}
			require.NoError(t, a.SetMany(ctx, "lake", "main", entries))
		}
		if !stagedSince {
			fill()
		}
		sealed, moved := false, false
		a.now = a.now.Add(day + 1e9)
		a.retain(graveler.RetainParams{
			Identify: func(v *graveler.Value) []byte {
				switch text := string(v.Data); {
				case !sealed && text == "all is sealed":
					sealed = true
					if stagedSince {
						fill()
					}
				case !moved && text == fmt.Sprintf("filler 10 of %d", run):
					moved = true
					move("zz", "a")
				}
				return v.Identity
			},
			Release: func(e graveler.Entry) error {
				require.NotEqual(t, "A", string(e.Value.Data), "released, and the branch shows it")
				return nil
			},
		})
		require.True(t, sealed && moved)
		move("a", "zz")
	}
}

// A value that is uncommitted, and goes to a branch that has been read, is not released: what was sealed is read as it was then,
// whatever has been sealed since.
func TestAValueThatMovesToABranchThatWasReadIsNotReleased(t *testing.T) {
	ctx := context.Background()
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	a.commit("main", "z", "A")
	a.commit("main", "z", "B")
	a.commit("main", "x", "C")
	for _, id := range []graveler.BranchID{"a", "b"} {
		_, err := a.CreateBranch(ctx, "lake", id, "main")
		require.NoError(t, err)
	}
	move := func(from, to graveler.BranchID) {
		require.NoError(t, a.Set(ctx, "lake", to, key("moving"), value("A")))
		require.NoError(t, a.Delete(ctx, "lake", from, key("moving")))
		require.NoError(t, a.DeletePrefix(ctx, "lake", from, key("none/"))) // which seals it
	}
	require.NoError(t, a.Set(ctx, "lake", "main", key("moving"), value("A")))
	require.NoError(t, a.Set(ctx, "lake", "b", key("k"), value("read between both")))
	for range 4 {
		moved := false
		a.now = a.now.Add(day + 1e9)
		a.retain(graveler.RetainParams{
			Identify: func(v *graveler.Value) []byte {
				if !moved && string(v.Data) == "read between both" {
					moved = true
					move("main", "a")
				}
				return v.Identity
			},
			Release: func(e graveler.Entry) error {
				require.NotEqual(t, "A", string(e.Value.Data), "released, and a branch shows it")
				return nil
			},
		})
		require.True(t, moved)
		move("a", "main")
	}
}

// What a newer change hid before it was committed is shown by nobody, and no commit will have it: it is released with the last file that has it.
func TestAnUncommittedValueThatANewerChangeHidesIsReleased(t *testing.T) {
	ctx := context.Background()
	for name, hide := range map[string]func(a *aged) error{
		"by another value":  func(a *aged) error { return a.Set(ctx, "lake", "main", key("copy/a"), value("D")) },
		"by a tombstone":    func(a *aged) error { return a.Delete(ctx, "lake", "main", key("copy/a")) },
		"by a whole prefix": func(a *aged) error { return a.DeletePrefix(ctx, "lake", "main", key("copy/")) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
			a.commit("main", "a", "A")
			a.commit("main", "b", "B")
			a.commit("main", "a", "C")
			a.commit("main", "b", "C")
			require.NoError(t, a.Set(ctx, "lake", "main", key("copy/a"), value("A")))
			require.NoError(t, a.Set(ctx, "lake", "main", key("kept"), value("B")))
			require.NoError(t, a.DeletePrefix(ctx, "lake", "main", key("none/"))) // which seals the copies
			require.NoError(t, hide(a))
			told := map[string]bool{}
			p := graveler.RetainParams{Release: func(e graveler.Entry) error { told[string(e.Value.Data)] = true; return nil }}
			a.now = a.now.Add(5 * day)
			p.DryRun = true
			a.retain(p)
			require.Equal(t, map[string]bool{"A": true}, told, "told of by a dry run")
			clear(told)
			p.DryRun = false
			for range 4 {
				a.retain(p)
				a.now = a.now.Add(day + 1e9)
			}
			require.Equal(t, map[string]bool{"A": true}, told)
			require.Equal(t, "B", a.get("main", "kept"))
		})
	}
}
