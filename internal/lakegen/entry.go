// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// keys are those that entries may have, in no order.
func keys() []string {
	odd := []string{
		"a//b", "/abs", "dir/", "dir", "..", " ", "tab\tnew\nline", "caf\u00e9", "cafe\u0301", "\xff\xfe not UTF-8", "\x01", "\x7f", "data/001 ", "data/001/", strings.Repeat("k", 905), strings.Repeat("m", 1024),
	}
	for i := range 60 {
		odd = append(odd, fmt.Sprintf("data/%03d", i))
	}
	return odd
}

// randomRecord returns an entry of every form that there is.
func randomRecord(rng *rand.Rand, key string) lakefs.Record {
	m := &lakefspb.EntryData{
		Size: rng.Int64N(1 << rng.IntN(50)),
		Etag: fmt.Sprintf("%032x", rng.Uint64()),
	}
	switch rng.IntN(5) {
	case 0:
		m.Address = fmt.Sprintf("s3://other-bucket/%d", rng.IntN(1000)) // of type 0, and full
	case 1:
		m.Address = fmt.Sprintf("old/%d", rng.IntN(1000)) // of type 0, and relative
	case 2:
		m.AddressType, m.Address = lakefspb.AddressType_ADDRESS_FULL, fmt.Sprintf("gs://imported/%d", rng.IntN(1000))
	default:
		m.AddressType, m.Address = lakefspb.AddressType_ADDRESS_RELATIVE, fmt.Sprintf("data/%016x", rng.Uint64())
	}
	if rng.IntN(10) > 0 {
		m.ModifiedAt = &lakefspb.Instant{Seconds: 1_500_000_000 + rng.Int64N(200_000_000), Nanoseconds: rng.Int32N(1_000_000_000)}
	}
	m.ContentType = pick(rng, "", "text/plain", "application/octet-stream")
	m.Metadata = pick(rng, nil, map[string]string{"a": "b"}, map[string]string{"ключ": "значение", "empty": "", "line": "one\ntwo"})
	return record(rng, key, m)
}

// record returns the record of an entry. The pairs of its metadata come in any order, as they do in lakeFS: entries of one
// identity may differ in their bytes.
func record(rng *rand.Rand, key string, m *lakefspb.EntryData) lakefs.Record {
	names := slices.Sorted(maps.Keys(m.Metadata))
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	parts := []*lakefspb.EntryData{{
		Address: m.Address, ModifiedAt: m.ModifiedAt, Size: m.Size, Etag: m.Etag, AddressType: m.AddressType, ContentType: m.ContentType,
	}}
	for _, name := range names {
		parts = append(parts, &lakefspb.EntryData{Metadata: map[string]string{name: m.Metadata[name]}})
	}
	var data []byte
	for _, part := range parts { // one message behind another is both
		data = append(data, marshal(part)...)
	}
	identity := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %v", m.Address, m.Size, m.Etag, m.Metadata)) // maps are printed in order
	return lakefs.Record{Key: []byte(key), Identity: identity[:], Data: data}
}

func marshal(m proto.Message) []byte {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err) // no text of ours is not UTF-8
	}
	return data
}

func pick[T any](rng *rand.Rand, values ...T) T { return values[rng.IntN(len(values))] }
