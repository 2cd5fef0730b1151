// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// randomShapes are small parameters, some so small that every record is cut, or that only the maximum cuts.
func randomShapes(t *rapid.T) shapes {
	return shapes{
		ranges:     shape{bits: rapid.UintRange(4, 9).Draw(t, "range bits"), max: rapid.IntRange(1, 600).Draw(t, "range max")},
		metaranges: shape{bits: rapid.UintRange(6, 11).Draw(t, "metarange bits"), max: rapid.IntRange(1, 3000).Draw(t, "metarange max")},
	}
}

// history makes random applies of a few kinds: scattered, dense, appending, and removing whole spans.
type history struct {
	keys int
	rnd  *rand.Rand
}

func (h history) changes(c contents) contents {
	ch := contents{}
	put := func(i int) { ch[fmt.Sprintf("k%05d", i)] = fmt.Sprintf("v%d", h.rnd.IntN(50)) }
	remove := func(i int) { ch[fmt.Sprintf("k%05d", i)] = "" }
	from := h.rnd.IntN(h.keys)
	n := 1 + h.rnd.IntN(h.keys)/(1+h.rnd.IntN(20))
	switch h.rnd.IntN(8) {
	case 0: // one key
		put(from)
	case 1: // remove one that is there
		for k := range c {
			ch[k] = ""
			break
		}
	case 2: // a dense span
		for i := range n {
			put(from + i)
		}
	case 3: // remove a span
		for i := range n {
			remove(from + i)
		}
	case 4: // append
		for i := range n {
			put(h.keys + h.rnd.IntN(h.keys) + i)
		}
	case 5: // remove the end
		keys := c.keys()
		for i := max(0, len(keys)-n); i < len(keys); i++ {
			ch[keys[i]] = ""
		}
	default: // scattered, both ways
		for range 1 + n/4 {
			if i := h.rnd.IntN(h.keys); h.rnd.IntN(3) == 0 {
				remove(i)
			} else {
				put(i)
			}
		}
	}
	return ch
}

func TestTreeIsAFunctionOfItsContents(t *testing.T) {
	histories, applies, tallest := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		// Several histories share a draw, because rapid's own bookkeeping would dominate.
		sh := randomShapes(rt)
		seed := rapid.Uint64().Draw(rt, "seed")
		for i := range uint64(6) {
			h := history{keys: 1 << (2 + i), rnd: rand.New(rand.NewPCG(seed, i))}
			s, _ := newStore(rt, sh)
			tree, c := s.EmptyTree(), contents{}
			for range 6 {
				changes := h.changes(c)
				tree = apply(rt, s, tree, changes)
				c = c.with(changes)
				require.Equal(rt, canonical(rt, sh, c), tree, "seed %d history %d", seed, i)
				applies++
			}
			require.Equal(rt, tree, write(rt, s, c), "a fresh write")
			requireContents(rt, s, tree, c)
			tallest = max(tallest, height(t, s, tree))
			histories++
			require.NoError(rt, s.Close())
		}
	})
	t.Logf("%d histories of %d applies, up to %d levels of metaranges", histories, applies, tallest)
	require.Greater(t, tallest, 3)
}

func TestDiffIsThatOfTheMaps(t *testing.T) {
	diffs := 0
	rapid.Check(t, func(rt *rapid.T) {
		sh := randomShapes(rt)
		seed := rapid.Uint64().Draw(rt, "seed")
		for i := range uint64(10) {
			h := history{keys: 1 << (2 + i%8), rnd: rand.New(rand.NewPCG(seed, i))}
			s, _ := newStore(rt, sh)
			left := contents{}
			for range 3 {
				left = left.with(h.changes(left))
			}
			right := left
			for range h.rnd.IntN(3) {
				right = right.with(h.changes(right))
			}
			l, r := write(rt, s, left), write(rt, s, right)
			requireDiff(rt, s, l, r, left, right, h.rnd)
			requireDiff(rt, s, r, l, right, left, h.rnd)
			diffs += 2
			require.NoError(rt, s.Close())
		}
	})
	t.Logf("%d diffs", diffs)
}

// requireDiff compares a diff with that of the maps, from the start and after seeks.
func requireDiff(t *rapid.T, s *Store, l, r graveler.MetaRangeID, left, right contents, rnd *rand.Rand) {
	var want []string
	for _, k := range left.with(right).keys() {
		if left[k] != right[k] {
			want = append(want, k)
		}
	}
	it := s.Diff(t.Context(), ns, l, r)
	from := ""
	for range 4 {
		rest := want
		for len(rest) > 0 && rest[0] < from {
			rest = rest[1:]
		}
		stop := rnd.IntN(len(rest) + 2) // now and then beyond the end
		for i := 0; i < stop; i++ {
			if i == len(rest) {
				require.False(t, it.Next())
				require.NoError(t, it.Err())
				break
			}
			require.True(t, it.Next())
			k := string(it.Item().Key)
			require.Equal(t, rest[i], k)
			require.Equal(t, value(left[k]), it.Item().Left.Clone())
			require.Equal(t, value(right[k]), it.Item().Right.Clone())
		}
		from = fmt.Sprintf("k%05d", rnd.IntN(300))
		it.SeekGE(graveler.Key(from))
	}
	require.NoError(t, it.Close())
}

func TestSeeksGoWhereAnOracleGoes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sh := randomShapes(rt)
		seed := rapid.Uint64().Draw(rt, "seed")
		for i := range uint64(5) {
			h := history{keys: 1 << (2 + i), rnd: rand.New(rand.NewPCG(seed, i))}
			s, _ := newStore(rt, sh)
			c := contents{}
			for range 3 {
				c = c.with(h.changes(c))
			}
			requireSeeks(rt, s, write(rt, s, c), c, h)
			require.NoError(rt, s.Close())
		}
	})
}

func requireSeeks(t *rapid.T, s *Store, tree graveler.MetaRangeID, c contents, h history) {
	keys := c.keys()
	it := s.Scan(t.Context(), ns, tree)
	at := 0
	for range 40 {
		if h.rnd.IntN(3) == 0 {
			from := fmt.Sprintf("k%05d", h.rnd.IntN(2*h.keys+2))
			it.SeekGE(graveler.Key(from))
			for at = 0; at < len(keys) && keys[at] < from; at++ {
			}
		}
		if at == len(keys) {
			require.False(t, it.Next())
			require.NoError(t, it.Err())
			continue
		}
		require.True(t, it.Next())
		require.Equal(t, keys[at], string(it.Item().Key))
		require.Equal(t, value(c[keys[at]]), it.Item().Value)
		at++
	}
	require.NoError(t, it.Close())
	for range 10 {
		k := fmt.Sprintf("k%05d", h.rnd.IntN(2*h.keys))
		v, err := s.Get(t.Context(), ns, tree, graveler.Key(k))
		if c[k] == "" {
			require.ErrorIs(t, err, graveler.ErrEntryNotFound)
		} else {
			require.NoError(t, err)
			require.Equal(t, value(c[k]), v)
		}
	}
}

func TestConcurrentCallsOnOneStoreAgree(t *testing.T) {
	s, _ := newStore(t, small)
	c := contents{}
	for i := range 300 {
		c[fmt.Sprintf("k%05d", i)] = "v"
	}
	base := write(t, s, c)
	want := canonical(t, small, c.with(contents{"k00100": "other", "k00200": ""}))
	var g errgroup.Group
	for range 8 {
		g.Go(func() error {
			tree, err := s.Apply(t.Context(), ns, base, contents{"k00100": "other", "k00200": ""}.iterator())
			if err != nil || tree != want {
				return fmt.Errorf("%s, not %s: %w", tree, want, err)
			}
			got, err := scanAll(s, tree)
			if err != nil || len(got) != 299 {
				return fmt.Errorf("%d entries: %w", len(got), err)
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
}

// The IDs of trees of format version 1 never change: commits refer to them.
func TestIDsOfVersion1ArePinned(t *testing.T) {
	s, _ := newStore(t)
	for n, want := range map[int]graveler.MetaRangeID{
		0:      "647a57fde97223f682860b22e95e83b285372722105613c5ff1cb7f98e5448a7",
		1:      "5ac051e38eded300c06e386671d0c92f1aa37a9ad91e900029fac99410d3a3a2",
		1_000:  "1fc4a055967495741f19f979653f3eae3fa2b368274bd39e2c43ef0454df1ebd",
		30_000: "4e9765d6e413db1883a657892a893388f97213072eb294b1a87c34a5f9eeb6f0",
	} {
		require.Equal(t, want, large(t, s, n), "%d entries", n)
	}
}
