// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Watermark implements [graveler.Clock].
func (s *Store) Watermark(ctx context.Context) (int64, error) {
	at, err := row(ctx, s, query{sql: "SELECT watermark FROM {clock} AS m"}, graveler.ErrNotFound, pgx.RowTo[int64])
	if errors.Is(err, graveler.ErrNotFound) {
		return 0, nil
	}
	return at, wrap(err, "get clock watermark")
}

// AdvanceWatermark implements [graveler.Clock]. Nothing is written where the watermark is there already.
func (s *Store) AdvanceWatermark(ctx context.Context, t int64) error {
	_, err := s.exec(ctx, `INSERT INTO moraine_clock (one, watermark) SELECT true, $1::bigint WHERE $1 > 0
		ON CONFLICT (one) DO UPDATE SET watermark = excluded.watermark WHERE moraine_clock.watermark < excluded.watermark`, t)
	return wrap(err, "advance clock watermark")
}

// ResetWatermark implements [graveler.Clock].
func (s *Store) ResetWatermark(ctx context.Context, t int64) error {
	_, err := s.exec(ctx, "INSERT INTO moraine_clock (one, watermark) VALUES (true, $1) ON CONFLICT (one) DO UPDATE SET watermark = excluded.watermark", t)
	return wrap(err, "reset clock watermark")
}
