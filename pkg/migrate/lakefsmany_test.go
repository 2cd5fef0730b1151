// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// Many runs at once: one does it, the others are told, and nothing is broken.
func TestOfManyRunsOfLakeFSAtOnceOneMovesItOver(t *testing.T) {
	for layout, tables := range map[string]bool{"tables": true, "key/value": false} {
		t.Run(layout, func(t *testing.T) {
			l := newLake(t, lakegen.Params{Seed: 31, Repositories: 2, Commits: 60, Tables: tables})
			var wg sync.WaitGroup
			results := make([]error, 5)
			for i := range results {
				m := l.migration(t)
				wg.Go(func() { _, results[i] = m.Run(t.Context()) })
			}
			wg.Wait()
			succeeded := 0
			for _, err := range results {
				if err == nil {
					succeeded++
					continue
				}
				require.True(t, errors.Is(err, migrate.ErrRunning) || errors.Is(err, migrate.ErrTargetTaken), "%v", err)
			}
			require.NotZero(t, succeeded)
			require.NoError(t, l.verify(t).Err())
			checkLake(t, l)
			checkSound(t, l.sides)
		})
	}
}
