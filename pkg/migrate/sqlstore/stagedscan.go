// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// stamp is the stored form of a row but for its key: the length of its identity, shifted by one and odd if there is none, then
// the same of its data, then both.
func (r StagedRow) stamp() graveler.Stamp {
	b := make([]byte, 0, 2*binary.MaxVarintLen32+len(r.Identity)+len(r.Data))
	for _, field := range [][]byte{r.Identity, r.Data} {
		length := uint64(len(field)) << 1
		if field == nil {
			length = 1
		}
		b = binary.AppendUvarint(b, length)
	}
	return append(append(b, r.Identity...), r.Data...)
}

// readStamp is the inverse. What is read shares the memory of the stamp.
func readStamp(b graveler.Stamp) (r StagedRow, err error) {
	var lengths [2]uint64
	for i := range lengths {
		length, n := binary.Uvarint(b)
		if n <= 0 {
			return StagedRow{}, invalid("stamp of a staged entry")
		}
		lengths[i], b = length, b[n:]
	}
	for i, field := range []*[]byte{&r.Identity, &r.Data} {
		size := lengths[i] >> 1
		if size > uint64(len(b)) {
			return StagedRow{}, invalid("stamp of a staged entry")
		}
		if lengths[i]&1 == 0 {
			*field = b[:size:size]
		}
		b = b[size:]
	}
	if len(b) > 0 {
		return StagedRow{}, invalid("stamp of a staged entry")
	}
	return r, nil
}

// Scan implements [graveler.Staging]. The context governs the whole scan. A seek may go before from, never outside the prefix.
func (s *Store) Scan(ctx context.Context, token graveler.StagingToken, from, prefix graveler.Key) (graveler.Iterator[graveler.Entry], error) {
	if err := s.call(ctx, func() error { return nil }); err != nil {
		return nil, fmt.Errorf("scan staged entries: %w", err)
	}
	return &stagedIterator{it: kv.NewIterator(ctx, []byte(token), kv.ScanOptions{Start: from, Prefix: prefix}, s.readPage)}, nil
}

// A page ends before the first entry in front of which there are $4 bytes. The sum looks at lengths only, so the values behind it
// are neither unpacked nor sent.
const (
	stagedPageStart = `
SELECT key, identity, data FROM (
    SELECT key, identity, data, sum(octet_length(key) + coalesce(octet_length(identity), 0) + coalesce(octet_length(data), 0))
        OVER (ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
    FROM (
        SELECT key, identity, data FROM graveler_staging_kv WHERE staging_token = $1 AND key >= $2`
	stagedPageEnd = `
        ORDER BY key LIMIT $3
    ) AS page
) AS summed
WHERE coalesce(before, 0) < $4
ORDER BY key`

	stagedPage      = stagedPageStart + stagedPageEnd
	stagedPageUntil = stagedPageStart + ` AND key < $5` + stagedPageEnd
)

func (s *Store) readPage(ctx context.Context, r kv.PageRequest) (entries []kv.Entry, more bool, err error) {
	if r.From == nil {
		r.From = []byte{} // nil would be null
	}
	q := query{stagedPage, []any{string(r.Partition), r.From, r.Limit, kv.PageBytes}}
	if r.End != nil {
		q = query{stagedPageUntil, append(q.arguments, r.End)}
	}
	page, err := rows(ctx, s, q, pgx.RowToStructByPos[StagedRow])
	size := 0
	for _, row := range page {
		e := kv.Entry{Key: row.Key, Value: row.stamp()}
		entries, size = append(entries, e), size+len(e.Key)+len(e.Value)
	}
	return entries, len(page) == r.Limit || size >= kv.PageBytes, err
}

type stagedIterator struct {
	it      kv.Iterator
	current graveler.Entry
	corrupt error
}

func (i *stagedIterator) Next() bool {
	i.current = graveler.Entry{}
	if i.corrupt != nil || !i.it.Next() {
		return false
	}
	row, err := readStamp(i.it.Value())
	if err == nil {
		row.Key = i.it.Key()
		i.current, err = row.Entry()
	}
	i.corrupt = err
	return err == nil
}

func (i *stagedIterator) SeekGE(key graveler.Key) { i.it.SeekGE(key) }

// Item shares the iterator's memory, as the interface allows.
func (i *stagedIterator) Item() graveler.Entry { return i.current }

func (i *stagedIterator) Err() error { return i.outcome(i.it.Err()) }

func (i *stagedIterator) Close() error { return i.outcome(i.it.Close()) }

func (i *stagedIterator) outcome(err error) error {
	if i.corrupt != nil {
		err = i.corrupt
	}
	return wrap(err, "scan staged entries")
}
