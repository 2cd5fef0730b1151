// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"math/rand/v2"
)

// Walk goes through all sequences of choices, depth first: every run takes the next one, until Advance says that there is none left.
type Walk struct {
	picks, sizes []int
	at           int
}

// Choose implements [Chooser].
func (w *Walk) Choose(n int) int {
	if w.at == len(w.picks) {
		w.picks, w.sizes = append(w.picks, 0), append(w.sizes, n)
	}
	if w.sizes[w.at] != n {
		panic(fmt.Sprintf("choice %d was of %d and is now of %d: the program under test does not repeat itself", w.at, w.sizes[w.at], n))
	}
	w.at++
	return w.picks[w.at-1]
}

// Advance goes to the next sequence and reports whether there is one.
func (w *Walk) Advance() bool {
	w.at = 0
	for last := len(w.picks) - 1; last >= 0; last-- {
		if w.picks[last]++; w.picks[last] < w.sizes[last] {
			return true
		}
		w.picks, w.sizes = w.picks[:last], w.sizes[:last]
	}
	return false
}

// Draw picks by a seed. An actor once chosen tends to go on for a while, since interleavings that switch at every call are only a
// part of the interesting ones.
type Draw struct {
	random *rand.Rand
	last   int
}

// NewDraw returns a chooser for a seed.
func NewDraw(seed uint64) *Draw { return &Draw{random: rand.New(rand.NewPCG(seed, 0))} }

// Choose implements [Chooser].
func (d *Draw) Choose(n int) int {
	if d.last >= n || d.random.IntN(3) == 0 {
		d.last = d.random.IntN(n)
	}
	return d.last
}
