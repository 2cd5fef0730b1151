// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawing draws a history: a commit per line, followed by its parents.
func drawing(history string) string {
	var g Graph[string]
	var lines []string
	for line := range strings.Lines(strings.TrimSpace(history)) {
		words := strings.Fields(line)
		node, links := g.Add(words[0], words[1:])
		lines = append(lines, node+" "+words[0])
		lines = append(lines, links...)
	}
	return strings.Join(lines, "\n")
}

func TestHistoriesAreDrawn(t *testing.T) {
	for _, c := range []struct{ name, history, want string }{
		{"a line", `
C B
B A
A`, `
* C
* B
* A`},
		{"a branch that is merged", `
M C B
C A
B A
A`, `
* M
|\
* | C
| * B
|/
* A`},
		{"a branch that began below a merge", `
M D B
D C
C A
B A
A`, `
* M
|\
* | D
* | C
| * B
|/
* A`},
		{"a merge on the right of another line", `
X A
M C B
C A
B A
A`, `
* X
| * M
| |\
| * | C
|/ /
| * B
|/
* A`},
		{"a merge with a commit that the left waits for", `
X A
M B A
B A
A`, `
* X
| * M
| |\
| |/
|/|
| * B
|/
* A`},
		{"the first parent is what the left waits for", `
X A
M A B
B A
A`, `
* X
| * M
| |\
|/ /
| * B
|/
* A`},
		{"an edge crosses the lanes between", `
X A
Y B
Z A
B A
A`, `
* X
| * Y
| | * Z
| |/
|/|
| * B
|/
* A`},
		{"three parents", `
M A B C
A R
B R
C R
R`, `
* M
|\
| |\
* | | A
| * | B
|/ /
| * C
|/
* R`},
		{"four parents beside a lane", `
M A B
A P Q R S
P Z
Q Z
R Z
S Z
B Z
Z`, `
* M
|\
* | A
|\ \
| |\ \
| | |\ \
* | | | | P
| * | | | Q
|/ / / /
| * | | R
|/ / /
| * | S
|/ /
| * B
|/
* Z`},
		{"two histories without a common commit", `
M A B
A
B`, `
* M
|\
* | A
 /
* B`},
		{"a criss-cross", `
X C D
C A B
D B A
A R
B R
R`, `
* X
|\
* | C
|\ \
| | * D
| | |\
| |/ /
| |/
|/|
* | A
| * B
|/
* R`},
		{"the same parent twice", `
M A A
A`, `
* M
|\
|/
* A`},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, strings.TrimPrefix(c.want, "\n"), drawing(c.history))
		})
	}
}

// Whatever the history: a commit stands in one lane, lanes wait for different commits that are parents of drawn ones, and no lane is left in the end.
func TestLanesAreWhatIsStillToCome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "commits")
		var g Graph[int]
		waiting := map[int]bool{}
		for id := n; id >= 1; id-- {
			var parents []int
			if id > 1 {
				parents = rapid.SliceOfNDistinct(rapid.IntRange(1, id-1), 0, min(4, id-1), rapid.ID[int]).Draw(t, fmt.Sprintf("parents of %d", id))
			}
			node, links := g.Add(id, parents)
			require.Equal(t, 1, strings.Count(node, "*"))
			for _, row := range links {
				require.Empty(t, strings.Trim(row, ` |/\`))
				require.NotContains(t, row, "*")
			}
			delete(waiting, id)
			for _, p := range parents {
				waiting[p] = true
			}
			lanes := slices.Sorted(slices.Values(g.lanes))
			require.Equal(t, lanes, slices.Compact(slices.Clone(lanes)), "a commit has two lanes")
			require.Len(t, lanes, len(waiting))
			for _, l := range lanes {
				require.True(t, waiting[l])
			}
		}
		require.Empty(t, g.lanes)
	})
}
