// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// Cutover makes the SQL side read-only to this program (see package cutover), and with back writable again. It returns the marker
// as it is then, nil for none. It waits for the writes under way, and may be repeated.
func Cutover(ctx context.Context, url string, back bool) (m *cutover.Marker, err error) {
	s, err := connectSource(ctx, url)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(wrapf(err, "source %s", kv.Redact(url)), s.close(ctx)) }()
	if s.lakeFS {
		return nil, ErrNoCutover
	}
	version, err := lakefs.Version(ctx, s.main.conn)
	if err != nil {
		return nil, err
	}
	if version > 0 && !back {
		return nil, fmt.Errorf("%w: the database has its table %s", ErrNoCutover, kvTable)
	}
	if err := s.checkSchema(ctx); err != nil {
		return nil, err
	}
	change := cutover.Set
	if back {
		change = cutover.Back
	}
	if err := change(ctx, s.main.conn); err != nil {
		return nil, err
	}
	return cutover.Read(ctx, s.main.conn)
}
