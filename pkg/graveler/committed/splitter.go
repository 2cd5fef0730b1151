// SPDX-License-Identifier: Apache-2.0

package committed

import "github.com/cespare/xxhash/v2"

// shape says how large the nodes of a level become. Size is logical size in bytes.
type shape struct {
	bits uint // the scale is 2^bits; the mean size of a node is 0.89 of it
	max  int  // a node that is as large is cut
}

// shapes are the parameters of trees. Other parameters would give other IDs to the same entries, so the real ones are constants of
// the format; tests use small ones.
type shapes struct {
	ranges, metaranges shape
}

// The parameters of format version 1.
func version1() shapes {
	return shapes{ranges: shape{bits: 20, max: 4 << 20}, metaranges: shape{bits: 17, max: 512 << 10}}
}

// splitter decides where the records of one level are cut into nodes.
//
// If the sizes of nodes are to follow a Weibull distribution of shape 2 and scale s, then a node that has reached the
// size a ends within the next b bytes with the chance 1 - exp(-((a+b)² - a²)/s²), for which b(2a+b)/s² stands here:
// for small b the same, and exact in integers, where floating point may differ between machines. As the chance grows with
// b, a cut is as likely per byte after large records as after small ones; as it grows with a, nodes differ less in size
// than with a constant chance. The idea of such a curve is from the prolly trees of Dolt (go/store/prolly/tree).
type splitter struct {
	shape
	level  int
	digest *xxhash.Digest
	size   int // since the last cut
	count  int
}

func newSplitter(s shapes, level int) splitter {
	sp := splitter{shape: s.ranges, level: level, digest: xxhash.New()}
	if level > 0 {
		sp.shape = s.metaranges
	}
	return sp
}

// add says whether the level is cut after this record. The key is hashed with the level as the seed, because the last
// key of a child has already passed the test of its own level.
func (s *splitter) add(key []byte, size int) bool {
	before := s.size
	s.size += size
	s.count++
	if s.level > 0 && s.count == 1 || !s.passes(key, uint64(before), uint64(size)) {
		return false
	}
	s.reset()
	return true
}

func (s *splitter) passes(key []byte, before, size uint64) bool {
	chance := size * (2*before + size) // of 2^(2 bits)
	if s.size >= s.max || chance >= 1<<(2*s.bits) {
		return true
	}
	return s.hash(key) < chance<<(64-2*s.bits)
}

// hash is xxhash64 seeded with the level. Of the seed 0, that of all entries, there is a form that takes a third of the time.
func (s *splitter) hash(key []byte) uint64 {
	if s.level == 0 {
		return xxhash.Sum64(key)
	}
	s.digest.ResetWithSeed(uint64(s.level))
	s.digest.Write(key)
	return s.digest.Sum64()
}

func (s *splitter) reset() { s.size, s.count = 0, 0 }
