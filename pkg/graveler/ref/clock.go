// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Watermark implements [graveler.Clock].
func (s *Store) Watermark(ctx context.Context) (int64, error) {
	m, _, err := s.clock(ctx)
	return m.GetWatermark(), wrap(err, "get clock watermark")
}

// AdvanceWatermark implements [graveler.Clock]. It reads once, and writes until its time or a later
// one is stored.
func (s *Store) AdvanceWatermark(ctx context.Context, t int64) error {
	for {
		m, stamp, err := s.clock(ctx)
		if err != nil {
			return wrap(err, "advance clock watermark")
		}
		if m.Watermark >= t {
			return nil
		}
		m.Watermark = t
		_, err = s.put(ctx, locateClock(), m, stamp)
		if !errors.Is(err, graveler.ErrChanged) {
			return wrap(err, "advance clock watermark")
		}
	}
}

// clock reads the record; a zero one and no stamp where there is none.
func (s *Store) clock(ctx context.Context) (*refpb.ClockData, graveler.Stamp, error) {
	at := locateClock()
	m := &refpb.ClockData{}
	item, err := s.kv.Get(ctx, at.partition, at.key)
	if errors.Is(err, kv.ErrNotFound) {
		return m, nil, nil
	}
	if err != nil {
		return nil, nil, Outcome(err)
	}
	if err := proto.Unmarshal(item.Value, m); err != nil {
		return nil, nil, at.corrupt(err)
	}
	return m, item.Value, nil
}

func locateClock() location { return locate(clockPartition, watermarkKey) }
