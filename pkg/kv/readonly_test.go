// SPDX-License-Identifier: Apache-2.0

package kv_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func TestReadOnlyRefusesEveryWrite(t *testing.T) {
	ctx, inner, v := t.Context(), mem.New(), []byte("v")
	require.NoError(t, inner.Set(ctx, part, key, v))
	s := kv.ReadOnly(inner)
	writes := []kv.Write{{Key: key, Value: []byte("w")}}
	for name, err := range map[string]error{
		"Set":           s.Set(ctx, part, key, []byte("w")),
		"SetIf":         s.SetIf(ctx, part, key, []byte("w"), kv.Present),
		"Delete":        s.Delete(ctx, part, key),
		"DeleteIf":      s.DeleteIf(ctx, part, key, kv.Present),
		"Apply":         s.Apply(ctx, part, writes, nil),
		"SetMany":       kv.SetMany(ctx, s, part, writes),
		"DropPartition": kv.DropPartition(ctx, s, part),
	} {
		require.ErrorIs(t, err, kv.ErrReadOnly, name)
	}
	item, err := s.Get(ctx, part, key)
	require.NoError(t, err)
	require.Equal(t, "v", string(item.Value))
	require.NoError(t, s.Close())
}
