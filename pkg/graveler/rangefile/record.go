// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Limits of the format, in bytes. A file's logical size is bounded so that a reader may hold a whole one.
const (
	MaxKey   = 1280
	MaxValue = 252 << 10 // identity and data together
	MaxSize  = 8 << 20   // logical size of a file
)

// Record is what files hold, sorted by key. In a range it is an entry; in a metarange it is the form of a [Child].
type Record struct {
	Key, Identity, Data []byte
}

// Size is the logical size of the record in bytes, the measure by which trees are cut.
func (r Record) Size() int { return len(r.Key) + len(r.Identity) + len(r.Data) }

// Check says whether the format can hold the record, in any order.
func (r Record) Check() error {
	switch {
	case len(r.Key) == 0:
		return fmt.Errorf("empty key: %w", ErrRecord)
	case len(r.Key) > MaxKey:
		return fmt.Errorf("key of %d bytes, more than %d: %w", len(r.Key), MaxKey, ErrRecord)
	case len(r.Identity)+len(r.Data) > MaxValue:
		return fmt.Errorf("value of %d bytes, more than %d: %w", len(r.Identity)+len(r.Data), MaxValue, ErrRecord)
	}
	return nil
}

// Child stands for a range or metarange in the metarange above it.
type Child struct {
	First, Last []byte // keys of the first and the last entry below
	ID          ID
	Count       uint64 // entries below
	Size        uint64 // their logical size
}

// Record is the form of the child in a file: its key is Last, its identity the ID.
func (c Child) Record() Record {
	data := make([]byte, 0, 2*binary.MaxVarintLen64+len(c.First))
	data = binary.AppendUvarint(data, c.Count)
	data = binary.AppendUvarint(data, c.Size)
	return Record{Key: c.Last, Identity: c.ID[:], Data: append(data, c.First...)}
}

// ParseChild is the inverse. The keys share memory with the record.
func ParseChild(r Record) (Child, error) {
	c := Child{Last: r.Key}
	if copy(c.ID[:], r.Identity) != len(c.ID) || len(r.Identity) != len(c.ID) {
		return Child{}, fmt.Errorf("child with an ID of %d bytes: %w", len(r.Identity), ErrRecord)
	}
	count, n := binary.Uvarint(r.Data)
	if n <= 0 || count == 0 {
		return Child{}, fmt.Errorf("child without a count: %w", ErrRecord)
	}
	size, m := binary.Uvarint(r.Data[n:])
	if m <= 0 {
		return Child{}, fmt.Errorf("child without a size: %w", ErrRecord)
	}
	c.Count, c.Size, c.First = count, size, r.Data[n+m:]
	if len(c.First) == 0 || len(c.First) > MaxKey || bytes.Compare(c.First, c.Last) > 0 {
		return Child{}, fmt.Errorf("child with bounds out of order: %w", ErrRecord)
	}
	return c, nil
}
