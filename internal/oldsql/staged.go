// SPDX-License-Identifier: Apache-2.0

package oldsql

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// oddKeys are legal, and rarely thought of.
func oddKeys() []string {
	return []string{
		"a//b", "/abs", "dir/", "..", " ", "tab\tnew\nline", "caf\u00e9", "cafe\u0301", "\xff\xfe not UTF-8", "\x00reserved", "\x00" + strings.Repeat("r", 1279), strings.Repeat("k", 1024), "data/001 ", "\x01",
	}
}

// staged writes rows for the branches in turn: those of one branch have different keys.
func (r *repository) staged(ctx context.Context, conn *pgx.Conn) error {
	odd := oddKeys()
	return copyRows(ctx, conn, "graveler_staging_kv", []string{"staging_token", "key", "identity", "data"}, r.p.Staged, func(i int) []any {
		n := i / r.p.Branches
		token := r.token(i % r.p.Branches)
		var key string
		switch {
		case n < 40:
			key = dataKey(2 * n) // some of which commits have
		case n-40 < len(odd):
			key = odd[n-40]
		default:
			key = fmt.Sprintf("staged/%d/%09d", n%10, n)
		}
		if r.rng.IntN(5) == 0 {
			return []any{token, []byte(key), nil, pick[any](r, nil, []byte{})}
		}
		v := value(2*n, r.rng.IntN(3))
		if r.rng.IntN(4) == 0 { // without data it is another value, and so has another identity
			return []any{token, []byte(key), append(v.Identity, '-'), pick[any](r, nil, []byte{})}
		}
		return []any{token, []byte(key), v.Identity, v.Data}
	})
}
