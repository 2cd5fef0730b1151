// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/cespare/xxhash/v2"
)

type ctx = context.Context

func isDamage(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, ErrForeign) || errors.Is(err, ErrVersion)
}

// FuzzOpen gives the reader any bytes as a file.
func FuzzOpen(f *testing.F) {
	_, small := build(f, 0, sample(3, 1))
	_, large := build(f, 0, sample(200, 1))
	f.Add(small)
	f.Add(large)
	f.Add(small[1:])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) { walk(t, data) })
}

// FuzzContents gives the reader files whose checksums are right and whose contents are any bytes, as someone who means
// harm would make them.
func FuzzContents(f *testing.F) {
	_, data := build(f, 0, sample(40, 1))
	file, err := Open(f.Context(), "seed", Bytes(data), int64(len(data)))
	if err != nil {
		f.Fatal(err)
	}
	block := data[:file.blocks[0].stored-8]
	index := data[file.blocks[0].stored : len(data)-footerSize-8]
	f.Add(block, index, uint32(1), uint64(40), uint64(4000))
	f.Add(block[:100], index[:20], uint32(0), uint64(1), uint64(1))
	f.Fuzz(func(t *testing.T, block, index []byte, blocks uint32, count, size uint64) {
		sealed := binary.LittleEndian.AppendUint64(bytes.Clone(block), xxhash.Sum64(block))
		at := len(sealed)
		sealed = binary.LittleEndian.AppendUint64(append(sealed, index...), xxhash.Sum64(index))
		ft := footer{
			Info:        Info{Count: count, Size: size},
			indexOffset: uint32(at), indexLength: uint32(len(sealed) - at), blocks: blocks,
		}
		walk(t, ft.append(sealed))
	})
}

// walk reads and searches a file, which may only end well or with an error that says what is wrong.
func walk(t *testing.T, data []byte) {
	f, all, err := readAll(t.Context(), data)
	if err != nil && !isDamage(err) {
		t.Fatalf("not a typed error: %v", err)
	}
	if f == nil {
		return
	}
	if f.Memory() > 16*len(data) {
		t.Fatalf("%d bytes for a file of %d", f.Memory(), len(data))
	}
	for _, r := range append(all, Record{Key: []byte("m")}) {
		if _, _, err := f.Get(r.Key, fetcher(t.Context(), f, data)); err != nil && !isDamage(err) {
			t.Fatalf("not a typed error: %v", err)
		}
	}
	for i := range f.Blocks() {
		if b, err := f.Read(t.Context(), Bytes(data), i, nil); err == nil && b.Len() > MaxBlock {
			t.Fatalf("block of %d bytes", b.Len())
		}
	}
}

// FuzzChild gives any bytes as the data of a metarange's record.
func FuzzChild(f *testing.F) {
	c := Child{First: []byte("a"), Last: []byte("b"), Count: 3, Size: 400}
	f.Add([]byte("b"), c.Record().Identity, c.Record().Data)
	f.Add([]byte("b"), []byte("short"), []byte{0x80})
	f.Fuzz(func(t *testing.T, key, identity, data []byte) {
		c, err := ParseChild(Record{Key: key, Identity: identity, Data: data})
		if err != nil {
			if !errors.Is(err, ErrRecord) {
				t.Fatal(err)
			}
			return
		}
		again, err := ParseChild(c.Record())
		if err != nil || again.ID != c.ID || !bytes.Equal(again.First, c.First) || again.Count != c.Count || again.Size != c.Size {
			t.Fatalf("%+v became %+v: %v", c, again, err)
		}
	})
}
