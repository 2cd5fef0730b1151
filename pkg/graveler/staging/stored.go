// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Stored is a record of a token as it lies in the store.
type Stored struct {
	Key graveler.Key
	// Problem is why it does not decode, [graveler.ErrCorrupt] with token and key.
	Problem error
}

// ScanStored yields the records of a token, by key. One that does not decode is one of them, and does not end the scan; an error does.
func (s *Store) ScanStored(ctx context.Context, token graveler.StagingToken) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		it, err := s.kv.Scan(ctx, []byte(token), kv.ScanOptions{})
		if err != nil {
			yield(Stored{}, scanError(ref.Outcome(err)))
			return
		}
		for it.Next() {
			_, problem := decode(token, it.Key(), it.Value())
			if !yield(Stored{it.Key(), problem}, nil) {
				// The caller has had enough: what else went wrong is nothing to him.
				_ = it.Close()
				return
			}
		}
		if err := it.Close(); err != nil {
			yield(Stored{}, scanError(ref.Outcome(err)))
		}
	}
}
