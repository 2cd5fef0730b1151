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
	return wrap(s.setWatermark(ctx, t, func(stored int64) bool { return stored >= t }), "advance clock watermark")
}

// ResetWatermark implements [graveler.Clock].
func (s *Store) ResetWatermark(ctx context.Context, t int64) error {
	return wrap(s.setWatermark(ctx, t, func(stored int64) bool { return stored == t }), "reset clock watermark")
}

// setWatermark stores t unless what is stored is good enough.
func (s *Store) setWatermark(ctx context.Context, t int64, enough func(stored int64) bool) error {
	for {
		m, stamp, err := s.clock(ctx)
		if err != nil || enough(m.Watermark) {
			return err
		}
		m.Watermark = t
		if _, err = s.put(ctx, locateClock(), m, stamp); !errors.Is(err, graveler.ErrChanged) {
			return err
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
	if proto.Unmarshal(item.Value, m) != nil {
		return nil, nil, at.corrupt(undecodable(m))
	}
	return m, item.Value, nil
}

func locateClock() location { return locate(clockPartition, watermarkKey) }
