// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Scan reads a partition in key order, in pages.
func (s *Store) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	err := s.Limits().CheckPartition(partition)
	if err == nil {
		if err = s.enter(ctx); err == nil {
			s.leave()
		}
	}
	if err != nil {
		return nil, kv.Wrap("scan", partition, nil, err)
	}
	return kv.NewIterator(ctx, partition, o, s.readPage), nil
}

func (s *Store) readPage(ctx context.Context, r kv.PageRequest) (page []kv.Entry, more bool, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, false, err
	}
	defer s.leave()
	read := span{encode(r.Partition, r.From), wholePartition(r.Partition).high}
	if r.End != nil {
		read.high = encode(r.Partition, r.End)
	}
	if read.empty() {
		return nil, false, nil
	}
	page, more, err = s.collect(ctx, read, r)
	if err == nil {
		err = s.settleSpan(ctx, r.Partition, read)
	}
	return page, more, err
}

func (s *Store) collect(ctx context.Context, read span, r kv.PageRequest) (page []kv.Entry, more bool, err error) {
	it, err := s.db.NewIterWithContext(ctx, &pebble.IterOptions{LowerBound: read.low, UpperBound: read.high})
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	prefix, b := len(encode(r.Partition, nil)), kv.NewPage(r)
	for ok := it.First(); ok; ok = it.Next() {
		if b.Full() {
			return b.Entries(), true, nil
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return nil, false, err
		}
		b.Add(it.Key()[prefix:], value)
	}
	return b.Entries(), false, nil
}
