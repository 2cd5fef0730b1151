// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"encoding/hex"
	"iter"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// objectSet is n objects under the keys of entries. They are of one size, about that of the default value, because it is their fields that are kept.
type objectSet struct{ entries }

// object returns the object with a number.
func (s objectSet) object(i int) catalog.Object {
	content := mix(s.seed<<20 ^ uint64(i))
	address := append([]byte("s3://lake/objects/"), s.prefix...)
	address = appendDigits(append(address, '/'), i, 10)
	var sum [16]byte
	for at := range sum {
		sum[at] = byte(content >> (at % 8 * 8))
	}
	return catalog.Object{
		PhysicalAddress: string(address), Size: int64(content % (1 << 30)), Checksum: hex.EncodeToString(sum[:]), ContentType: "application/octet-stream",
		ModifiedAt: firstDay.Add(time.Duration(i) * time.Microsecond),
	}
}

func (s objectSet) entry(i int) graveler.Entry {
	v, err := catalog.Encode(s.object(i))
	if err != nil {
		panic(err) // all objects are made alike
	}
	return graveler.Entry{Key: s.key(i), Value: &v}
}

// all yields the entries of the objects.
func (s objectSet) all(yield func(graveler.Entry) bool) {
	for i := range s.n {
		if !yield(s.entry(i)) {
			return
		}
	}
}

// objects are n objects below a prefix. Those of one prefix and number are always the same.
func (b *bench) objects(prefix string, n int) objectSet {
	return objectSet{b.entries(prefix, n)}
}

// sound is a sequence in which nothing goes wrong.
func sound(all sequence) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		for e := range all {
			if !yield(e, nil) {
				return
			}
		}
	}
}
