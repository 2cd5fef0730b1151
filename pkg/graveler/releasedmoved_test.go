// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A value that is uncommitted, and goes to a smaller key while a run reads what is uncommitted, is not released.
func TestAValueThatMovesWhileItIsLookedForIsNotReleased(t *testing.T) {
	ctx := context.Background()
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	first := a.commit("main", "z", "A")
	moving, err := a.Graveler.Get(ctx, "lake", string(first), key("z"))
	require.NoError(t, err)
	a.commit("main", "z", "B")
	a.commit("main", "x", "C")
	require.NoError(t, a.Set(ctx, "lake", "main", key("zz"), *moving))
	var fill []graveler.Entry
	for i := range 20_000 {
		v := value(fmt.Sprintf("filler %d", i))
		fill = append(fill, graveler.Entry{Key: key(fmt.Sprintf("m%06d", i)), Value: &v})
	}
	require.NoError(t, a.SetMany(ctx, "lake", "main", fill))
	move := func(from, to string) {
		require.NoError(t, a.Transact(ctx, "lake", "main", func(ctx context.Context, tx *graveler.Transaction) error {
			found, err := tx.Get(ctx, key(from))
			if err != nil {
				return err
			}
			tx.Set(key(to), *found[0])
			tx.Delete(key(from))
			return nil
		}))
	}
	for range 8 {
		moved := false
		a.now = a.now.Add(day + 1e9)
		a.retain(graveler.RetainParams{
			Identify: func(v *graveler.Value) []byte {
				if !moved && string(v.Data) == "filler 10" {
					moved = true
					move("zz", "a")
				}
				return v.Identity
			},
			Release: func(e graveler.Entry) error {
				require.NotEqual(t, "A", string(e.Value.Data), "released, and the branch shows it")
				return nil
			},
		})
		require.True(t, moved)
		move("a", "zz")
	}
}
