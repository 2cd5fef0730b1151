// SPDX-License-Identifier: Apache-2.0

// Package staging keeps staged entries in a key/value store. It implements [graveler.Staging].
//
// A staging token is a partition and an entry's key is a key in it; the value (entry.go) is a
// StagedEntryData of package stagingpb. A fence is the branch's record where package ref keeps it.
//
// A record that does not decode, or that is not the one its key names, is [graveler.ErrCorrupt] with
// token and key, and ends a scan; [Store.ScanStored], for checks, goes on behind it. Reads and writes
// cost one call of the engine. A Store holds nothing but the engine and is safe for concurrent use.
package staging

import (
	"context"
	"errors"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
)

var _ graveler.Staging = (*Store)(nil)

// Store keeps staged entries in a [kv.Store].
type Store struct {
	kv kv.Store
}

// New returns a Store on the engine, which stays the caller's to close.
func New(store kv.Store) *Store { return &Store{kv: store} }

// Get implements [graveler.Staging].
func (s *Store) Get(ctx context.Context, token graveler.StagingToken, key graveler.Key) (graveler.Staged, error) {
	item, err := s.kv.Get(ctx, []byte(token), key)
	if errors.Is(err, kv.ErrNotFound) {
		return graveler.Staged{}, nil
	}
	if err != nil {
		return graveler.Staged{}, fmt.Errorf("get staged entry: %w", ref.Outcome(err))
	}
	e, err := decode(token, key, item.Value)
	if err != nil {
		return graveler.Staged{}, fmt.Errorf("get staged entry: %w", err)
	}
	staged := graveler.Staged{Stamp: item.Value}
	if e.tombstone() {
		return staged, nil
	}
	// A copy: whoever changes the value in place must not change the stamp with it.
	staged.Value = e.value.Clone()
	return staged, nil
}

// Apply implements [graveler.Staging]. A value without identity is [graveler.ErrInvalidValue]. With
// no writes it only checks the fence.
func (s *Store) Apply(ctx context.Context, fence *graveler.Fence, token graveler.StagingToken, writes []graveler.StagedWrite) error {
	batch, err := encodeAll(writes)
	if err == nil {
		err = s.apply(ctx, fence, token, batch)
	}
	if err != nil {
		return fmt.Errorf("stage %d entries under %s: %w", len(writes), token, err)
	}
	return nil
}

func (s *Store) apply(ctx context.Context, fence *graveler.Fence, token graveler.StagingToken, batch []kv.Write) error {
	if fence == nil && len(batch) == 1 && batch[0].If == nil {
		// Where fences are costly this is the everyday write, and so may be a batch.
		return ref.Outcome(s.kv.Set(ctx, []byte(token), batch[0].Key, batch[0].Value))
	}
	var guard *kv.Fence
	if fence != nil {
		if fence.Branch.Stamp == nil {
			return fmt.Errorf("%w: fence without the stamp of its branch", graveler.ErrInvalidValue)
		}
		guard = &kv.Fence{
			Partition: []byte(fence.Repository.Partition()),
			Key:       ref.BranchKey(fence.Branch.ID),
			Predicate: kv.Equals(fence.Branch.Stamp),
		}
	}
	return ref.Outcome(s.kv.Apply(ctx, []byte(token), batch, guard))
}

func encodeAll(writes []graveler.StagedWrite) ([]kv.Write, error) {
	batch := make([]kv.Write, len(writes))
	for i, w := range writes {
		if w.Value != nil && len(w.Value.Identity) == 0 {
			return nil, fmt.Errorf("%w: entry %q has no identity", graveler.ErrInvalidValue, w.Key)
		}
		batch[i] = kv.Write{Key: w.Key, Value: encode(w.Key, w.Value)}
		if w.Conditional {
			p := kv.Absent
			if w.If != nil {
				p = kv.Equals(w.If)
			}
			batch[i].If = &p
		}
		if w.Check { // what is there replaces itself; what is not is deleted
			batch[i].Value = w.If
		}
	}
	return batch, nil
}

// Limits implements [graveler.Staging]. A record is never larger than the Size of its write, so what
// stays within Writes and Bytes is not too large for one Apply.
func (s *Store) Limits() graveler.StagingLimits {
	l := s.kv.Limits()
	return graveler.StagingLimits{Writes: l.ApplyWrites, Bytes: l.ApplyBytes, CheapFences: l.CheapFences}
}
