// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"context"

	"go.etcd.io/bbolt"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Scan reads a partition in key order, in pages.
func (s *Store) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	err := s.Limits().CheckPartition(partition)
	if err == nil {
		err = s.view(ctx, func(*bbolt.Tx) error { return nil })
	}
	if err != nil {
		return nil, kv.Wrap("scan", partition, nil, err)
	}
	return kv.NewIterator(ctx, partition, o, s.readPage), nil
}

func (s *Store) readPage(ctx context.Context, r kv.PageRequest) (page []kv.Entry, more bool, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		if b := tx.Bucket(bucketName(r.Partition)); b != nil {
			page, more = collect(b.Cursor(), r)
		}
		return nil
	})
	return page, more, err
}

func collect(c *bbolt.Cursor, r kv.PageRequest) (page []kv.Entry, more bool) {
	b := kv.NewPage(r)
	for k, v := c.Seek(r.From); k != nil; k, v = c.Next() {
		if r.End != nil && bytes.Compare(k, r.End) >= 0 {
			break
		}
		if b.Full() {
			return b.Entries(), true
		}
		b.Add(k, v)
	}
	return b.Entries(), false
}
