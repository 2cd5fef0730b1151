// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func build(t require.TestingT, level int, records []Record) (ID, []byte) {
	b := NewBuilder(level)
	for _, r := range records {
		require.NoError(t, b.Add(r))
	}
	return b.Build(nil)
}

func open(t require.TestingT, data []byte) *File {
	f, err := Open(t.(interface{ Context() ctx }).Context(), "ab/file", Bytes(data), int64(len(data)))
	require.NoError(t, err)
	return f
}

// readAll reads every record of a file, or returns the first error.
func readAll(c ctx, data []byte) (*File, []Record, error) {
	f, err := Open(c, "ab/file", Bytes(data), int64(len(data)))
	if err != nil {
		return nil, nil, err
	}
	var all []Record
	it := f.Iter(fetcher(c, f, data))
	for it.Next() {
		all = append(all, clone(it.Record()))
	}
	return f, all, it.Err()
}

// fetcher reads blocks of a file in memory, each into the memory of the one before.
func fetcher(c ctx, f *File, data []byte) func(i int) (*Block, error) {
	var b Block
	return func(i int) (*Block, error) { return f.Read(c, Bytes(data), i, &b) }
}

func clone(r Record) Record {
	return Record{Key: bytes.Clone(r.Key), Identity: bytes.Clone(r.Identity), Data: bytes.Clone(r.Data)}
}

// sample makes n records that look like entries of an object store.
func sample(n int, seed uint64) []Record {
	r := rand.New(rand.NewPCG(seed, 0))
	rs := make([]Record, n)
	for i := range rs {
		id := make([]byte, 32)
		for j := range id {
			id[j] = byte(r.Uint32())
		}
		rs[i] = Record{
			Key:      fmt.Appendf(nil, "tables/events/day=%02d/part-%05d.parquet", i/100, i),
			Identity: id,
			Data:     fmt.Appendf(nil, "data/gk3v0hc7ki9s6q2b/%x application/octet-stream %d", id[:12], r.IntN(1<<30)),
		}
	}
	return rs
}

func randomRecords(t *rapid.T) []Record {
	keys := rapid.SliceOfNDistinct(rapid.SliceOfN(rapid.ByteRange('a', 'd'), 1, 12), 1, 200, func(k []byte) string { return string(k) }).Draw(t, "keys")
	slices.SortFunc(keys, bytes.Compare)
	long := rapid.SampledFrom([]int{0, 40, 900, 60000}).Draw(t, "data")
	rs := make([]Record, len(keys))
	for i, k := range keys {
		rs[i] = Record{
			Key: k, Identity: rapid.SliceOfN(rapid.Byte(), 0, 4).Draw(t, "identity"),
			Data: bytes.Repeat([]byte{byte(i)}, rapid.IntRange(0, long).Draw(t, "length")),
		}
		if i > 100 {
			rs[i].Data = nil // keep within MaxSize
		}
	}
	return rs
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := randomRecords(t)
		id, data := build(t, 0, rs)
		f, all, err := readAll(t.Context(), data)
		require.NoError(t, err)
		requireRecords(t, rs, all)
		size := 0
		for _, r := range rs {
			size += r.Size()
		}
		require.Equal(t, Info{ID: id, Count: uint64(len(rs)), Size: uint64(size)}, f.Info)
	})
}

func requireRecords(t require.TestingT, want, got []Record) {
	require.Equal(t, len(want), len(got))
	for i := range want {
		require.Equal(t, string(want[i].Key), string(got[i].Key))
		require.True(t, bytes.Equal(want[i].Identity, got[i].Identity), "identity of %q", want[i].Key)
		require.True(t, bytes.Equal(want[i].Data, got[i].Data), "data of %q", want[i].Key)
	}
}

func TestSeeksGoWhereAnOracleGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := randomRecords(t)
		_, data := build(t, 0, rs)
		f := open(t, data)
		it := f.Iter(fetcher(t.Context(), f, data))
		at := 0
		t.Repeat(map[string]func(*rapid.T){
			"seek": func(t *rapid.T) {
				key := rapid.SliceOfN(rapid.ByteRange('a', 'e'), 0, 13).Draw(t, "key")
				it.SeekGE(key)
				at = sort.Search(len(rs), func(i int) bool { return bytes.Compare(rs[i].Key, key) >= 0 })
			},
			"next": func(t *rapid.T) {
				if !it.Next() {
					require.NoError(t, it.Err())
					require.Equal(t, len(rs), at)
					return
				}
				requireRecords(t, rs[at:at+1], []Record{it.Record()})
				at++
			},
			"get": func(t *rapid.T) {
				i := rapid.IntRange(0, len(rs)-1).Draw(t, "i")
				r, ok, err := f.Get(rs[i].Key, fetcher(t.Context(), f, data))
				require.NoError(t, err)
				require.True(t, ok)
				requireRecords(t, rs[i:i+1], []Record{r})
				_, ok, err = f.Get(append(bytes.Clone(rs[i].Key), 'a', 'z'), fetcher(t.Context(), f, data))
				require.NoError(t, err)
				require.False(t, ok)
			},
		})
	})
}

func TestSeekWithinTheBlockReadsNothing(t *testing.T) {
	rs := sample(2000, 1)
	_, data := build(t, 0, rs)
	f := open(t, data)
	require.Greater(t, f.Blocks(), 5)
	reads := 0
	it := f.Iter(func(i int) (*Block, error) {
		reads++
		return f.Read(t.Context(), Bytes(data), i, nil)
	})
	for _, i := range []int{10, 40, 3, 20} {
		it.SeekGE(rs[i].Key)
		require.True(t, it.Next())
		requireRecords(t, rs[i:i+1], []Record{it.Record()})
	}
	require.Equal(t, 1, reads)
	it.SeekGE(rs[1999].Key)
	require.True(t, it.Next())
	require.Equal(t, 2, reads)
}

func TestEveryFlippedByteIsAnError(t *testing.T) {
	for _, rs := range [][]Record{sample(300, 1), sample(1, 2)} {
		_, data := build(t, 0, rs)
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << (i % 8)
			_, _, err := readAll(t.Context(), bad)
			requireDamage(t, err)
		}
	}
}

func TestEveryTruncationIsAnError(t *testing.T) {
	_, data := build(t, 0, sample(300, 1))
	for n := range data {
		_, _, err := readAll(t.Context(), data[:n])
		requireDamage(t, err)
	}
	_, _, err := readAll(t.Context(), append(bytes.Clone(data), data...))
	require.ErrorIs(t, err, ErrCorrupt, "a file behind a file")
}

func requireDamage(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.True(t, isDamage(err), "%v", err)
	require.Contains(t, err.Error(), "ab/file")
}

func TestUnknownVersionIsNamed(t *testing.T) {
	_, data := build(t, 0, sample(3, 1))
	ft := data[len(data)-footerSize:]
	binary.LittleEndian.PutUint16(ft[72:], 2)
	binary.LittleEndian.PutUint64(ft, xxhash.Sum64(ft[8:]))
	_, _, err := readAll(t.Context(), data)
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorContains(t, err, "version 2")
}

func TestDecompressionBombIsRefusedBeforeAllocating(t *testing.T) {
	plain := make([]byte, 64<<20)
	stored := appendStored(nil, plain, true)
	var buf []byte
	_, err := unpack(&buf, stored, MaxBlock)
	require.Error(t, err)
	require.Nil(t, buf)
}

func TestIDDependsOnRecordsAlone(t *testing.T) {
	rs := sample(500, 3)
	id, first := build(t, 0, rs)
	b := NewBuilder(0)
	require.NoError(t, b.Add(Record{Key: []byte("left over")}))
	b.Reset(0)
	for _, r := range rs {
		require.NoError(t, b.Add(r))
	}
	again, second := b.Build(make([]byte, 10))
	require.Equal(t, id, again)
	require.True(t, bytes.Equal(first, second))

	seen := map[ID]bool{id: true}
	for _, change := range []func(r *Record){
		func(r *Record) { r.Key = append(bytes.Clone(r.Key), 0) },
		func(r *Record) { r.Identity, r.Data = append(bytes.Clone(r.Identity), r.Data[0]), r.Data[1:] },
		func(r *Record) { r.Data = nil },
	} {
		changed := slices.Clone(rs)
		change(&changed[100])
		other, _ := build(t, 0, changed)
		require.False(t, seen[other])
		seen[other] = true
	}
}

func TestRecordsBeyondTheLimitsAreRefused(t *testing.T) {
	b := NewBuilder(0)
	long := strings.Repeat("k", MaxKey)
	require.NoError(t, b.Add(Record{Key: []byte(long), Data: make([]byte, MaxValue)}))
	for _, r := range []Record{
		{},
		{Key: []byte(long + "k")},
		{Key: []byte("z"), Identity: make([]byte, 1), Data: make([]byte, MaxValue)},
		{Key: []byte(long)},
		{Key: []byte("a")},
	} {
		require.ErrorIs(t, b.Add(r), ErrRecord)
	}
	_, data := b.Build(nil)
	f, all, err := readAll(t.Context(), data)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, long, string(f.Last()))

	for i := 0; ; i++ {
		if err = b.Add(Record{Key: fmt.Appendf(nil, "l%03d", i), Data: make([]byte, MaxValue)}); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, ErrRecord)
	require.LessOrEqual(t, b.Child().Size, uint64(MaxSize))
}

func TestMetarangeSumsItsChildren(t *testing.T) {
	b := NewBuilder(1)
	one := Child{First: []byte("a"), Last: []byte("f"), ID: ID{1}, Count: 3, Size: 100}
	two := Child{First: []byte("g"), Last: []byte("g"), ID: ID{2}, Count: 1, Size: 1 << 40}
	require.NoError(t, b.Add(one.Record()))
	slot, err := b.AddUnnamed(Child{First: two.First, Last: two.Last, Count: two.Count, Size: two.Size}.Record())
	require.NoError(t, err)
	require.Equal(t, Child{First: []byte("a"), Last: []byte("g"), Count: 4, Size: 1<<40 + 100}, b.Child())
	b.Name(slot, two.ID)
	_, data := b.Build(nil)
	f, all, err := readAll(t.Context(), data)
	require.NoError(t, err)
	require.Equal(t, 1, f.Level)
	for i, want := range []Child{one, two} {
		got, err := ParseChild(all[i])
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.ErrorIs(t, b.Add(Record{Key: []byte("z"), Identity: []byte("short")}), ErrRecord)
	require.ErrorIs(t, b.Add(Record{Key: []byte("z"), Identity: make([]byte, 32), Data: []byte{1, 1}}), ErrRecord)
}

func TestIDsHaveOneForm(t *testing.T) {
	id := EmptyID()
	back, err := ParseID(id.String())
	require.NoError(t, err)
	require.Equal(t, id, back)
	for _, s := range []string{"", "ab", strings.ToUpper(id.String()), id.String() + "00", strings.Repeat("x", 64)} {
		_, err := ParseID(s)
		require.Error(t, err, s)
	}
}
