// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"bytes"
	"encoding/hex"
	"iter"
	"slices"
	"time"

	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/pkg/graveler"
)

const (
	// minValueBytes is what the identity takes and a little data.
	identityBytes = 32
	minValueBytes = identityBytes + 16

	filesPerHour = 40
)

// firstDay is that of the first entry.
var firstDay = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// entries are generated entries like those of a table's files: the same for the same seed, in the order of their keys, and any of
// them can be had by its number. They take no memory.
type entries struct {
	prefix string
	n      int
	seed   uint64
	size   int // of a value, identity and data together
	// version says which version of its value an entry has; nil: the first.
	version func(i int) uint64
}

// key returns prefix/dt=2000-01-01/hour=00/part-00007-5f3a9c21.zst.parquet for the seventh.
func (e entries) key(i int) graveler.Key {
	hours := i / filesPerHour
	key := make([]byte, 0, len(e.prefix)+56)
	key = append(key, e.prefix...)
	key = firstDay.AddDate(0, 0, hours/24).AppendFormat(key, "/dt=2006-01-02")
	key = appendDigits(append(key, "/hour="...), hours%24, 2)
	key = appendDigits(append(key, "/part-"...), i%filesPerHour, 5)
	mixed := mix(e.seed ^ uint64(i))
	key = hex.AppendEncode(append(key, '-'), []byte{byte(mixed), byte(mixed >> 8), byte(mixed >> 16), byte(mixed >> 24)})
	return append(key, ".zst.parquet"...)
}

func appendDigits(b []byte, n, digits int) []byte {
	start := len(b)
	b = append(b, "0000000000"[:digits]...)
	for at := start + digits - 1; at >= start; at-- {
		b[at] = '0' + byte(n%10)
		n /= 10
	}
	return b
}

// value returns the value of an entry. About half of its data compresses, as that of real objects does.
func (e entries) value(i int) graveler.Value {
	var version uint64
	if e.version != nil {
		version = e.version(i)
	}
	b := make([]byte, 0, e.size+64)
	state := mix(e.seed<<20 ^ version<<40 ^ uint64(i))
	for len(b) < identityBytes {
		state = mix(state)
		b = append(b, byte(state), byte(state>>8), byte(state>>16), byte(state>>24), byte(state>>32), byte(state>>40), byte(state>>48), byte(state>>56))
	}
	for len(b) < e.size {
		state = mix(state)
		b = append(b, "s3://lake/objects/"...)
		b = hex.AppendEncode(b, b[:12])
		b = append(b, byte(state), byte(state>>8), byte(state>>16), byte(state>>24), byte(state>>32), byte(state>>40))
	}
	b = b[:e.size:e.size]
	return graveler.Value{Identity: b[:identityBytes:identityBytes], Data: b[identityBytes:]}
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (e entries) entry(i int) graveler.Entry {
	v := e.value(i)
	return graveler.Entry{Key: e.key(i), Value: &v}
}

// all yields the entries.
func (e entries) all(yield func(graveler.Entry) bool) {
	for i := range e.n {
		if !yield(e.entry(i)) {
			return
		}
	}
}

// batch returns the entries with some numbers.
func (e entries) batch(numbers []int) []graveler.Entry {
	batch := make([]graveler.Entry, len(numbers))
	for at, i := range numbers {
		batch[at] = e.entry(i)
	}
	return batch
}

// records returns all entries as the references take them, in memory.
func (e entries) records() []reference.Record {
	records := make([]reference.Record, 0, e.n)
	for entry := range e.all {
		records = append(records, reference.Record{Key: entry.Key, Value: flat(*entry.Value)})
	}
	return records
}

// flat is a value as one slice.
func flat(v graveler.Value) []byte {
	return append(bytes.Clone(v.Identity), v.Data...)
}

// sequence is entries in the order of their keys.
type sequence = iter.Seq[graveler.Entry]

// joined yields one sequence after the other. All keys of one must be less than those of the next.
func joined(all ...sequence) sequence {
	return func(yield func(graveler.Entry) bool) {
		for _, one := range all {
			for e := range one {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// changing are entries some of which are changed now and then.
type changing struct {
	entries
	versions map[int]uint64
}

func (b *bench) changing(prefix string, n int) *changing {
	c := &changing{entries: b.entries(prefix, n), versions: map[int]uint64{}}
	c.version = func(i int) uint64 { return c.versions[i] }
	return c
}

// change gives the entries with some numbers another value, and returns them.
func (c *changing) change(numbers ...int) []graveler.Entry {
	for _, i := range numbers {
		c.versions[i]++
	}
	return c.batch(numbers)
}

// held iterates over entries that are in memory.
type held struct {
	entries []graveler.Entry
	at      int // of the next one
}

func (h *held) Next() bool {
	h.at++
	return h.at <= len(h.entries)
}

func (h *held) SeekGE(key graveler.Key) {
	h.at, _ = slices.BinarySearchFunc(h.entries, key, func(e graveler.Entry, key graveler.Key) int { return bytes.Compare(e.Key, key) })
}

func (h *held) Item() graveler.Entry { return h.entries[h.at-1] }
func (h *held) Err() error           { return nil }
func (h *held) Close() error         { return nil }
