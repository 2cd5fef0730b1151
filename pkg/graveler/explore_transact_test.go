// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/moraine-store/moraine/internal/explore"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// partner is the other key of a transaction.
func partner(key string) string {
	if key == "a" {
		return "b"
	}
	return "a"
}

// writes reports whether a step may stage something for a key.
func (s step) writes(key string) bool {
	switch s.do {
	case "set", "set-if", "set-if-absent", "delete", "put-unless":
		return s.key == key
	case "set-both", "swap":
		return s.key == key || partner(s.key) == key
	case "delete-prefix":
		return strings.HasPrefix(key, s.key)
	}
	return false
}

// transact performs a step that is a transaction of the step's key and its partner.
func transact(ctx context.Context, g *graveler.Graveler, repo graveler.RepositoryID, e *event) error {
	keys := []graveler.Key{key(e.key), key(partner(e.key))}
	return g.Transact(ctx, repo, "dev", func(ctx context.Context, tx *graveler.Transaction) error {
		if e.do == "set-both" { // without having looked
			tx.Set(keys[0], value(e.text))
			tx.Set(keys[1], value(e.text))
			return nil
		}
		values, err := tx.Get(ctx, keys...)
		if err != nil {
			return err
		}
		switch e.do {
		case "put-unless":
			if values[1] != nil {
				return fmt.Errorf("%w: the other one is there", graveler.ErrPreconditionFailed)
			}
			tx.Set(keys[0], value(e.text))
		case "get-both":
			e.view = viewOf(textsOf(keys, values))
		case "swap":
			for i, v := range values {
				if v != nil {
					tx.Set(keys[1-i], *v)
				} else {
					tx.Delete(keys[1-i])
				}
			}
		default:
			panic("no such step: " + e.do)
		}
		return nil
	})
}

func textsOf(keys []graveler.Key, values []*graveler.Value) map[string]string {
	texts := map[string]string{}
	for i, v := range values {
		if v != nil {
			texts[string(keys[i])] = string(v.Data)
		}
	}
	return texts
}

// toggle puts the step's key into the tree of the head, or takes it away where it is.
func toggle(ctx context.Context, g *graveler.Graveler, repo graveler.RepositoryID, branch graveler.BranchID, s step) error {
	p := graveler.ChangeTreeParams{Op: graveler.OpLifecycle}
	_, err := g.ChangeTree(ctx, repo, branch, p, func(_ context.Context, t *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		old, err := t.Get(key(s.key))
		change := graveler.Entry{Key: key(s.key)}
		if old == nil {
			v := value(s.text)
			change.Value = &v
		}
		return func(yield func(graveler.Entry, error) bool) { yield(change, nil) }, err
	})
	return err
}

// transactions are small programs of two actors, the second of which a transaction must not come between.
func transactions() []program {
	putA, putB := step{"put-unless", "a", "1"}, step{"put-unless", "b", "2"}
	deleteB, get := step{"delete", "b", ""}, step{"get-both", "a", ""}
	swap, commit := step{"swap", "a", ""}, step{do: "commit"}
	return []program{
		{{deleteB, putA}, {putB}},
		{{{"set", "a", "0"}, {"delete", "a", ""}, deleteB, putA}, {putB}}, // both have tombstones
		{{deleteB, commit, putA}, {putB, commit}},
		{{deleteB, putA}, {{"set", "b", "2"}, get}},
		{{deleteB, putA}, {{"delete-prefix", "", ""}, get}},
		{{{"set-both", "a", "1"}, commit}, {get, {do: "list"}}},
		{{get}, {swap, swap, swap}}, // each value comes back
		{{{"set-both", "a", "1"}, get}, {{"delete", "b", ""}, swap}},
		{{swap, {"reset-prefix", "", ""}}, {get, commit}},
		{{swap}, {swap, get}},
		{{putA, get}, {{do: "merge-dirty"}, get}},
		{{{"put-unless", "b/c", "1"}, commit}, {{do: "merge-dirty"}, {do: "list"}}}, // what was only read is not in the way of what the head becomes
		{{{"put-unless", "b/c", "1"}, commit}, {{"change-tree", "a", "2"}, {do: "list"}}},
		{{{"change-tree", "a", "1"}, commit}, {{"set", "a", "2"}, {do: "list"}}},
		{{{"change-tree", "b", ""}, commit}, {{"set", "b", "2"}, commit}},
		{{{"change-tree", "b", ""}}, {{"delete-prefix", "", ""}, {"change-tree", "a", "2"}}},
		{{{"change-tree", "a", "1"}}, {{do: "delete-branch"}, {do: "create-branch"}}},
	}
}

func TestEveryInterleavingOfTransactions(t *testing.T) {
	everyInterleaving(t, transactions())
}

var transactionKinds = slices.Concat(kinds, []string{"put-unless", "put-unless", "put-unless", "put-unless", "set-both", "set-both", "get-both", "get-both", "get-both", "swap", "swap", "swap", "change-tree", "change-tree", "change-tree"})

func TestRandomTransactionsInRandomOrder(t *testing.T) {
	n := 500
	if nightly() {
		n = 1_000_000
	}
	fates := []explore.Fate{explore.FailBefore, explore.FailAfter, explore.FailLate, explore.CrashBefore, explore.CrashAfter}
	for _, costly := range []bool{false, true} {
		for _, faults := range []int{0, 3} {
			t.Run(fmt.Sprintf("costly fences %v, faults %d", costly, faults), func(t *testing.T) {
				sample(t, n, func(seed uint64) string {
					return runProgram(t, drawProgram(seed, transactionKinds), costly, explore.NewDraw(seed), faults, fates...)
				})
			})
		}
	}
}

// edited hands the writes of some kinds of steps to a function before they are applied.
type edited struct {
	graveler.Staging
	kinds []string
	edit  func(w graveler.StagedWrite) (_ graveler.StagedWrite, keep bool)
}

func (s edited) Apply(ctx context.Context, fence *graveler.Fence, token graveler.StagingToken, writes []graveler.StagedWrite) error {
	if do, _ := ctx.Value(doing{}).(string); slices.Contains(s.kinds, do) {
		var left []graveler.StagedWrite
		for _, w := range writes {
			if w, keep := s.edit(w); keep {
				left = append(left, w)
			}
		}
		writes = left
	}
	return s.Staging.Apply(ctx, fence, token, writes)
}

// Each part of a transaction is needed.
func TestTheExplorerFindsWhatATransactionLacks(t *testing.T) {
	lacking := func(edit func(w graveler.StagedWrite) (graveler.StagedWrite, bool), kinds ...string) func(*graveler.Config) {
		return func(c *graveler.Config) { c.Staging = edited{c.Staging, kinds, edit} }
	}
	dropChecks := func(w graveler.StagedWrite) (graveler.StagedWrite, bool) { return w, !w.Check }
	dropConditions := func(w graveler.StagedWrite) (graveler.StagedWrite, bool) {
		w.Conditional = w.Check
		return w, true
	}
	stageChecks := func(w graveler.StagedWrite) (graveler.StagedWrite, bool) {
		w.Check = false // what was absent becomes a tombstone
		return w, true
	}
	for name, plant := range map[string]func(*graveler.Config){
		"no check of what is only read":         lacking(dropChecks, "put-unless"),
		"no condition on what is read":          lacking(dropConditions, "swap"),
		"no check where nothing changes":        lacking(dropChecks, "get-both"),
		"what is only read is staged":           lacking(stageChecks, "put-unless"),
		"no check of the record after the look": func(c *graveler.Config) { c.Refs = &stale{Refs: c.Refs, steps: []string{"get-both"}} },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20_000) {
				if problem := runPlanted(t, plant, drawProgram(seed, transactionKinds), false, explore.NewDraw(seed), 0); problem != "" {
					t.Logf("found by run %d", seed+1)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}
