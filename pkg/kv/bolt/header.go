// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"

	"github.com/moraine-store/moraine/pkg/kv"
)

// The format is that of bbolt (see its package internal/common); this program reads it only to tell
// whether bbolt can open a file safely. Numbers are in the byte order of the machine.

const (
	pageHeaderSize = 16 // id 8, flags 2, count 2, overflow 4
	metaSize       = 64

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreeList  = ^uint64(0)
)

// header is what the newer of the two meta pages says.
type header struct {
	pageSize, root, freeList, pages, txid uint64
}

// readHeader finds the valid meta page with the highest transaction. The second one begins after one
// page, whose size the first would tell if it were valid; so all sizes are tried, as bbolt does.
func readHeader(f *os.File) (header, error) {
	var best header
	for offset := int64(0); offset <= 1024<<14; offset = max(1024, offset*2) {
		h, ok := readMeta(f, offset)
		if ok && (offset == 0 || offset == int64(h.pageSize)) && (best.pageSize == 0 || h.txid > best.txid) {
			best = h
		}
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return header{}, err
	case info.Size() == 0:
		return header{}, fmt.Errorf("%w: empty file", kv.ErrNotAStore)
	case best.pageSize == 0:
		return header{}, fmt.Errorf("%w: not a bolt database", kv.ErrNotAStore)
	case uint64(info.Size())/best.pageSize < best.pages:
		return header{}, fmt.Errorf("%w: truncated: %d bytes of at least %d", kv.ErrNotAStore,
			info.Size(), best.pages*best.pageSize)
	}
	return best, nil
}

func readMeta(f *os.File, offset int64) (header, bool) {
	b := make([]byte, metaSize)
	if _, err := f.ReadAt(b, offset+pageHeaderSize); err != nil {
		return header{}, false
	}
	n := binary.NativeEndian
	sum := fnv.New64a()
	sum.Write(b[:metaSize-8])
	h := header{
		pageSize: uint64(n.Uint32(b[8:])),
		root:     n.Uint64(b[16:]),
		freeList: n.Uint64(b[32:]),
		pages:    n.Uint64(b[40:]),
		txid:     n.Uint64(b[48:]),
	}
	ok := n.Uint32(b) == metaMagic && n.Uint32(b[4:]) == metaVersion &&
		n.Uint64(b[56:]) == sum.Sum64() && h.pageSize >= 1024
	return h, ok
}
