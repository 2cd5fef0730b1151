// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
)

// A plan is made once per connection, and then kept. It must not look at every key of a partition because there were few when it was made.
func TestPlansOfAnEmptyTableAreGoodForALargeOne(t *testing.T) {
	url := testpg.Start(t).NewDatabase(t)
	s := open(t, url)
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	_, err := connect(t, url).Exec(t.Context(), "vacuum analyze moraine.kv")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		sql       string
		arguments []any
	}{
		"get":              {getAll, []any{[][]byte{part}, [][]byte{[]byte("k")}}},
		"drop":             {dropChunk, []any{part, []byte{}, dropKeys}},
		"page":             {page, []any{part, []byte{}, 4096, kv.PageBytes}},
		"page up to a key": {pageUntil, []any{part, []byte{}, 4096, kv.PageBytes, []byte("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			var plan []string
			require.NoError(t, s.pool.Read(t.Context(), func(conn *pgx.Conn) error {
				rows, err := conn.Query(t.Context(), "explain "+c.sql, c.arguments...)
				if err == nil {
					plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
				}
				return err
			}))
			scans := 0
			for _, line := range plan {
				if strings.Contains(line, "Index Cond") {
					scans++
				}
				compares := strings.Contains(line, "Filter") && strings.Contains(line, "key")
				require.False(t, compares, "the index is not asked for all of it:\n%s", strings.Join(plan, "\n"))
			}
			require.Positive(t, scans)
		})
	}
}
