// SPDX-License-Identifier: Apache-2.0

package pgpool

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// describe makes an error fit for the caller: that of his context if it has ended, and without the configuration, which holds the
// password, that the client library puts into a failure to connect.
func describe(ctx context.Context, err error) error {
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, pgconn.ErrReadOnlyConnection):
		return errors.New("the server accepts no writes: it is a standby or set to read-only; name the primary, or open the store read-only")
	case errors.As(err, &connect):
		return connectError{connect.Unwrap()}
	default:
		return err
	}
}

// connectError joins what went wrong with each host, and with and without TLS, which may be the same.
type connectError struct{ error }

func (e connectError) Unwrap() error { return e.error }

func (e connectError) Error() string {
	var said []string
	for line := range strings.SplitSeq(e.error.Error(), "\n") {
		// The client library puts a prefix before the first of several.
		if !slices.ContainsFunc(said, func(s string) bool { return s == line || strings.HasSuffix(s, ": "+line) }) {
			said = append(said, line)
		}
	}
	return "connect: " + strings.Join(said, "; ")
}
