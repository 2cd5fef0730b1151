// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Scan implements [graveler.Staging]. The context governs the whole scan. A seek may go before from,
// never outside the prefix.
func (s *Store) Scan(ctx context.Context, token graveler.StagingToken, from, prefix graveler.Key) (graveler.Iterator[graveler.Entry], error) {
	it, err := s.kv.Scan(ctx, []byte(token), kv.ScanOptions{Start: from, Prefix: prefix})
	if err != nil {
		return nil, scanError(ref.Outcome(err))
	}
	return &iterator{token: token, it: it}, nil
}

type iterator struct {
	token   graveler.StagingToken
	it      kv.Iterator
	current entry
	corrupt error
}

func (i *iterator) Next() bool {
	if i.corrupt != nil || !i.it.Next() {
		i.current = entry{}
		return false
	}
	i.current, i.corrupt = decode(i.token, i.it.Key(), i.it.Value())
	return i.corrupt == nil
}

func (i *iterator) SeekGE(key graveler.Key) { i.it.SeekGE(key) }

// Item shares the iterator's memory, as the interface allows.
func (i *iterator) Item() graveler.Entry {
	if i.current.tombstone() {
		return graveler.Entry{Key: i.current.key}
	}
	return graveler.Entry{Key: i.current.key, Value: &i.current.value}
}

func (i *iterator) Err() error {
	if i.corrupt != nil {
		return scanError(i.corrupt)
	}
	return scanError(ref.Outcome(i.it.Err()))
}

func (i *iterator) Close() error {
	err := i.it.Close()
	if i.corrupt != nil {
		return scanError(i.corrupt)
	}
	return scanError(ref.Outcome(err))
}

func scanError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("scan staged entries: %w", err)
}
