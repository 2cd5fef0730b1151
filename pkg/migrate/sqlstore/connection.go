// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/moraine-store/moraine/internal/pgpool"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
)

func openPool(ctx context.Context, url string, readOnly bool) (*pgpool.Pool, error) {
	if scheme, _, _ := strings.Cut(url, ":"); !strings.EqualFold(scheme, Scheme) {
		return nil, fmt.Errorf("%w: its scheme is not %s", kv.ErrInvalidURL, Scheme)
	}
	// Plans go from the few rows that are asked for to those beside them.
	return pgpool.New(ctx, url, readOnly, map[string]string{"enable_hashjoin": "off", "enable_mergejoin": "off"})
}

// cutOver is the code of the error that moraine_guard raises.
const cutOver = "MC001"

// write runs f, which is one transaction, again only if it certainly had no effect.
func (s *Store) write(ctx context.Context, f func(*pgx.Conn) error) error {
	err := s.pool.Write(ctx, f)
	if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) && pgErr.Code == cutOver {
		return cutover.ErrCutOver
	}
	return err
}
