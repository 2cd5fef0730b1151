// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/explore"
)

// pairs are small programs of two actors.
func pairs() []program {
	set, commit := step{"set", "a", "1"}, step{do: "commit"}
	maintain := step{do: "maintain"}
	return []program{
		{{set}, {commit}},
		{{set, commit}, {commit}},
		{{{"set-if-absent", "a", "1"}}, {{"set-if-absent", "a", "2"}}},
		{{{"set-if-absent", "a", "1"}}, {{"set", "c", "1"}, commit}},
		{{{"set-if", "b", "1"}}, {{"set-if", "b", "2"}}},
		{{{"delete", "b", ""}}, {commit}},
		{{{"delete", "b", ""}}, {{"set", "b", "1"}}},
		{{set, {"get", "a", ""}}, {commit, maintain}},
		{{set, {do: "list"}}, {commit, maintain}},
		{{set}, {{do: "compact"}}},
		{{set, {"get", "b", ""}}, {{"delete-prefix", "", ""}}},
		{{set}, {{do: "delete-branch"}, {do: "create-branch"}}},
		{{{"set-if-absent", "a", "1"}}, {{do: "delete-branch"}}},
		{{set, commit}, {{do: "commit-empty"}}},
		{{set, {"commit-part", "a", ""}}, {commit}},
		{{{do: "create-branch"}}, {{do: "delete-branch"}}},
		{{{do: "delete-branch"}}, {{do: "delete-branch"}, {do: "create-branch"}}},
		{{set}, {{do: "merge"}}},
		{{set, {"get", "a", ""}}, {{do: "merge-dirty"}}},
		{{set, commit}, {{do: "merge-dirty"}}},
		{{{do: "merge"}}, {{do: "merge"}}},
		{{set, {do: "reset"}}, {commit}},
		{{set, {do: "reset-dirty"}}, {commit}},
		{{set, {"reset-key", "a", ""}}, {commit}},
		{{set, {"reset-prefix", "", ""}}, {{"set", "b", "1"}, {"commit-part", "a", ""}}},
		{{{"set", "b", "1"}, {"reset-prefix", "b", ""}}, {{"delete-prefix", "b", ""}, {do: "merge-dirty"}}},
	}
}

// Every interleaving of two small actors, as far as time allows; where there are more, the rest is drawn.
func TestEveryInterleavingOfTwo(t *testing.T) {
	everyInterleaving(t, pairs())
}

func everyInterleaving(t *testing.T, programs []program) {
	limit := 150
	if nightly() {
		limit = 400_000
	}
	for _, p := range programs {
		for _, costly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v costly fences %v", p, costly), func(t *testing.T) {
				runs, walk := 0, &explore.Walk{}
				for more := true; more && runs < limit; more = walk.Advance() {
					if problem := runProgram(t, p, costly, walk, 0); problem != "" {
						t.Fatalf("run %d: %s", runs, problem)
					}
					runs++
				}
				if runs < limit {
					t.Logf("all %d interleavings", runs)
					return
				}
				sample(t, limit, func(seed uint64) string { return runProgram(t, p, costly, explore.NewDraw(seed), 0) })
			})
		}
	}
}

// sample calls run with fixed and random seeds.
func sample(t *testing.T, n int, run func(seed uint64) (problem string)) {
	t.Helper()
	for i := range n {
		seed := uint64(i)
		if i%2 == 1 {
			seed = rand.Uint64()
		}
		if problem := run(seed); problem != "" {
			t.Fatalf("seed %d: %s", seed, problem)
		}
	}
}

var kinds = []string{"set", "set", "set", "delete", "set-if-absent", "set-if", "delete-prefix", "get", "get", "list", "commit", "commit", "commit-empty", "commit-part", "compact", "maintain", "delete-branch", "create-branch",
	"merge", "merge-dirty", "reset", "reset-dirty", "reset-prefix", "reset-key"}

// randomProgram draws a program of two to four actors with up to four steps each.
func randomProgram(seed uint64) program { return drawProgram(seed, kinds) }

func drawProgram(seed uint64, kinds []string) program {
	random := rand.New(rand.NewPCG(seed, 1))
	p := make(program, 2+random.IntN(3))
	for actor := range p {
		for i := range 1 + random.IntN(4) {
			s := step{do: kinds[random.IntN(len(kinds))], key: []string{"a", "b", "b/c"}[random.IntN(3)], text: fmt.Sprint(actor, "-", i)}
			if strings.HasSuffix(s.do, "-prefix") && random.IntN(2) == 0 {
				s.key = ""
			}
			p[actor] = append(p[actor], s)
		}
	}
	return p
}

func TestRandomProgramsInRandomOrder(t *testing.T) {
	n := 1000
	if nightly() {
		n = 1_000_000
	}
	for _, costly := range []bool{false, true} {
		t.Run(fmt.Sprintf("costly fences %v", costly), func(t *testing.T) {
			sample(t, n, func(seed uint64) string { return runProgram(t, randomProgram(seed), costly, explore.NewDraw(seed), 0) })
		})
	}
}

// Seeds that once failed.
func TestProgramsThatFailed(t *testing.T) {
	for _, seed := range []uint64{
		4325133084328679435, // a commit whose changes a merge took along into the base, while others wrote
	} {
		require.Empty(t, runProgram(t, randomProgram(seed), false, explore.NewDraw(seed), 0))
	}
}

// The same with up to three calls whose outcome is an error, known or not, and with processes that end anywhere.
func TestRandomProgramsWithFaults(t *testing.T) {
	n := 1500
	if nightly() {
		n = 1_000_000
	}
	fates := []explore.Fate{explore.FailBefore, explore.FailAfter, explore.FailLate, explore.CrashBefore, explore.CrashAfter}
	for _, costly := range []bool{false, true} {
		t.Run(fmt.Sprintf("costly fences %v", costly), func(t *testing.T) {
			sample(t, n, func(seed uint64) string {
				return runProgram(t, randomProgram(seed), costly, explore.NewDraw(seed), 3, fates...)
			})
		})
	}
}
