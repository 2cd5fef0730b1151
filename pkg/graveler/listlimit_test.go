// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A listing with a limit is the beginning of the one without, wherever it reads: staged, committed, in a transaction.
func TestALimitEndsAListing(t *testing.T) {
	f := newFixture(t)
	for i := range 12 {
		f.set(t, fmt.Sprintf("%d/%d", i%4, i), "x")
		if i == 6 {
			f.commit(t, "some")
		}
	}
	for _, delimiter := range []string{"", "/"} {
		for _, ref := range []string{"main", "main@"} {
			all := show(t, f.Graveler, ref, graveler.ListOptions{Delimiter: delimiter})
			for limit := 1; limit < len(all)+2; limit++ {
				o := graveler.ListOptions{Delimiter: delimiter, Limit: limit}
				require.Equal(t, all[:min(limit, len(all))], show(t, f.Graveler, ref, o))
				if ref == "main" {
					require.NoError(t, f.Transact(t.Context(), "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
						require.Len(t, collect(t, tx.List(ctx, o)), min(limit, len(all)))
						return nil
					}))
				}
			}
		}
	}
}
