// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
)

// stripeCount makes it unlikely that two of some hundred keys share a stripe. A stripe takes 32 bytes.
const stripeCount = 4096

// stripes are locks for pebble's keys, each shared by the keys of one hash value.
//
// Whoever writes a key holds its stripe exclusively from before its predicate is evaluated until the
// write is visible; an Apply holds that of its fence shared for as long. Everybody locks in ascending
// order and no stripe twice, so there are no deadlocks.
type stripes struct {
	seed  maphash.Seed
	table [stripeCount]stripe
}

type stripe struct {
	sync.RWMutex
	last atomic.Pointer[commit] // the latest write to a key of the stripe, for readers; see commit
}

func newStripes() *stripes { return &stripes{seed: maphash.MakeSeed()} }

func (s *stripes) index(k []byte) int { return int(maphash.Bytes(s.seed, k) % stripeCount) }

// held is a set of locked stripes.
type held struct {
	stripes   *stripes
	exclusive []int // ascending
	shared    int   // none if negative
}

// lock locks the stripes of keys exclusively and, unless it is among them, that of the fence shared.
func (s *stripes) lock(keys [][]byte, fence []byte) held {
	h := held{stripes: s, exclusive: make([]int, len(keys)), shared: -1}
	for i, k := range keys {
		h.exclusive[i] = s.index(k)
	}
	slices.Sort(h.exclusive)
	h.exclusive = slices.Compact(h.exclusive)
	if fence != nil {
		h.shared = s.index(fence)
		if _, also := slices.BinarySearch(h.exclusive, h.shared); also {
			h.shared = -1
		}
	}
	h.acquire()
	return h
}

// lockAll locks every stripe exclusively.
func (s *stripes) lockAll() held {
	h := held{stripes: s, exclusive: make([]int, stripeCount), shared: -1}
	for i := range h.exclusive {
		h.exclusive[i] = i
	}
	h.acquire()
	return h
}

func (h held) acquire() {
	shared := h.shared
	for _, i := range h.exclusive {
		if shared >= 0 && shared < i {
			h.stripes.table[shared].RLock()
			shared = -1
		}
		h.stripes.table[i].Lock()
	}
	if shared >= 0 {
		h.stripes.table[shared].RLock()
	}
}

func (h held) unlock() {
	for _, i := range h.exclusive {
		h.stripes.table[i].Unlock()
	}
	if h.shared >= 0 {
		h.stripes.table[h.shared].RUnlock()
	}
}

// announce makes c what readers of the exclusively held stripes have to wait for.
func (h held) announce(c *commit) {
	for _, i := range h.exclusive {
		h.stripes.table[i].last.Store(c)
	}
}
