// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/moraine-store/moraine/pkg/kv"
)

const (
	elementSize = 16 // branch: pos 4, key size 4, page 8; leaf: flags 4, pos 4, key size 4, value size 4
	bucketSize  = 16 // root page 8, sequence 8

	branchPage    = 0x01
	leafPage      = 0x02
	freeListPage  = 0x10
	bucketElement = 0x01
)

// verifyFile checks what bbolt relies on when it finds out which pages are free: the list of them if
// it is stored, else all pages in use.
func verifyFile(f *os.File) error {
	h, err := readHeader(f)
	if err != nil {
		return err
	}
	v := &verifier{file: f, header: h, seen: make([]uint64, h.pages/64+1)}
	if h.freeList != noFreeList {
		err = v.free()
	} else {
		_, err = v.tree(h.root, true, nil, nil)
	}
	if err != nil {
		return fmt.Errorf("%w: %w: %w", kv.ErrNotAStore, errCorrupt, err)
	}
	return nil
}

type verifier struct {
	file *os.File
	header
	seen []uint64 // one bit for each page
}

// free verifies the list of free pages: ascending numbers, of which the count is too large for its
// place in the header of the page if it says 0xffff.
func (v *verifier) free() error {
	page, err := v.read(v.freeList)
	if err != nil {
		return fmt.Errorf("list of free pages: %w", err)
	}
	n := binary.NativeEndian
	ids, count := page[pageHeaderSize:], uint64(n.Uint16(page[10:]))
	if count == 0xffff {
		ids, count = ids[8:], n.Uint64(ids)
	}
	if n.Uint16(page[8:]) != freeListPage || count > uint64(len(ids)/8) {
		return fmt.Errorf("page %d is no list of free pages", v.freeList)
	}
	last := uint64(1)
	for i := range count {
		id := n.Uint64(ids[8*i:])
		if id <= last || id >= v.pages {
			return fmt.Errorf("free page %d, after %d, of %d", id, last, v.pages)
		}
		last = id
	}
	return nil
}

// tree verifies a page and all below it, and that the file has our shape: buckets at the top and
// nowhere else. Its keys must be in order, from low on and less than high,
// where nil is no bound. It returns the last key.
func (v *verifier) tree(id uint64, top bool, low, high []byte) (last []byte, err error) {
	page, err := v.read(id)
	if err == nil {
		last, err = v.elements(page, top, low, high)
	}
	if err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return last, nil
}

func (v *verifier) elements(page []byte, top bool, low, high []byte) (last []byte, err error) {
	elements, err := parsePage(page)
	if err != nil {
		return nil, err
	}
	last = low
	for i, e := range elements {
		order := bytes.Compare(last, e.key)
		if order > 0 || order == 0 && i > 0 || high != nil && bytes.Compare(e.key, high) >= 0 {
			return nil, fmt.Errorf("key %d is out of order", i)
		}
		last = e.key
		switch {
		case e.child == 0:
			err = v.value(e, top)
		case i+1 < len(elements):
			last, err = v.tree(e.child, top, e.key, elements[i+1].key)
		default:
			last, err = v.tree(e.child, top, e.key, high)
		}
		if err != nil {
			return nil, err
		}
	}
	return last, nil
}

// value verifies the value of a leaf: a bucket, whose only page may be in place, or plain bytes.
func (v *verifier) value(e element, top bool) error {
	if e.bucket != top {
		return errors.New("a bucket among values, or a value among buckets")
	}
	if !top {
		return nil
	}
	if len(e.value) < bucketSize {
		return errBounds
	}
	root := binary.NativeEndian.Uint64(e.value)
	if root == 0 {
		_, err := v.elements(e.value[bucketSize:], false, nil, nil)
		return err
	}
	_, err := v.tree(root, false, nil, nil)
	return err
}

// element is one entry of a page.
type element struct {
	key    []byte
	child  uint64 // in a branch, the page below
	bucket bool   // in a leaf, whether the value is a bucket
	value  []byte
}

var errBounds = errors.New("out of bounds")

// parsePage takes a page apart, with its overflow.
func parsePage(page []byte) ([]element, error) {
	if len(page) < pageHeaderSize {
		return nil, errBounds
	}
	flags, count := binary.NativeEndian.Uint16(page[8:]), int(binary.NativeEndian.Uint16(page[10:]))
	parse := parseLeaf
	switch {
	case flags == branchPage && count > 0:
		parse = parseBranch
	case flags != leafPage:
		return nil, fmt.Errorf("type %#x with %d elements", flags, count)
	}
	if pageHeaderSize+count*elementSize > len(page) {
		return nil, errBounds
	}
	elements := make([]element, count)
	for i := range elements {
		var err error
		if elements[i], err = parse(page[pageHeaderSize+i*elementSize:]); err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
	}
	return elements, nil
}

// parseBranch and parseLeaf get the page from the element on, since its positions count from there.
func parseBranch(b []byte) (element, error) {
	n := binary.NativeEndian
	pos, keySize, child := uint64(n.Uint32(b)), uint64(n.Uint32(b[4:])), n.Uint64(b[8:])
	if child == 0 || pos+keySize > uint64(len(b)) {
		return element{}, errBounds
	}
	return element{key: b[pos : pos+keySize], child: child}, nil
}

func parseLeaf(b []byte) (element, error) {
	n := binary.NativeEndian
	pos, keySize, valueSize := uint64(n.Uint32(b[4:])), uint64(n.Uint32(b[8:])), uint64(n.Uint32(b[12:]))
	value := pos + keySize
	if value+valueSize > uint64(len(b)) {
		return element{}, errBounds
	}
	bucket := n.Uint32(b)&bucketElement != 0
	return element{key: b[pos:value], bucket: bucket, value: b[value : value+valueSize]}, nil
}

// read returns a page with its overflow pages, each of which may be in use only once.
func (v *verifier) read(id uint64) ([]byte, error) {
	if err := v.mark(id); err != nil {
		return nil, err
	}
	head := make([]byte, pageHeaderSize)
	if _, err := v.file.ReadAt(head, int64(id*v.pageSize)); err != nil {
		return nil, err
	}
	if own := binary.NativeEndian.Uint64(head); own != id {
		return nil, fmt.Errorf("it says that it is page %d", own)
	}
	overflow := uint64(binary.NativeEndian.Uint32(head[12:]))
	for next := id + 1; next <= id+overflow; next++ {
		if err := v.mark(next); err != nil {
			return nil, err
		}
	}
	page := make([]byte, (1+overflow)*v.pageSize)
	_, err := v.file.ReadAt(page, int64(id*v.pageSize))
	return page, err
}

func (v *verifier) mark(id uint64) error {
	if id < 2 || id >= v.pages {
		return fmt.Errorf("page %d of %d cannot be in use", id, v.pages)
	}
	if v.seen[id/64]&(1<<(id%64)) != 0 {
		return fmt.Errorf("page %d is in use twice", id)
	}
	v.seen[id/64] |= 1 << (id % 64)
	return nil
}
