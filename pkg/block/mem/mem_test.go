// SPDX-License-Identifier: Apache-2.0

package mem_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/mem"
)

func TestConformance(t *testing.T) {
	blocktest.Run(t, func(*testing.T) blocktest.Harness {
		s := mem.New()
		return blocktest.Harness{Forgetful: true, Open: func(_ context.Context, o block.OpenOptions) (block.Storage, error) {
			if o.ReadOnly {
				return block.ReadOnly(s), nil
			}
			return s, nil
		}}
	})
}

func TestOpenGivesAnotherStorageEachTime(t *testing.T) {
	engines := block.Engines{"mem": mem.Open}
	a, err := block.Open(t.Context(), "mem:", engines, block.OpenOptions{})
	require.NoError(t, err)
	require.NoError(t, a.Put(t.Context(), "x", nil))
	b, err := block.Open(t.Context(), "mem:", engines, block.OpenOptions{})
	require.NoError(t, err)
	_, err = b.Stat(t.Context(), "x")
	require.ErrorIs(t, err, block.ErrNotFound)

	r, err := block.Open(t.Context(), "mem:", engines, block.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	require.ErrorIs(t, r.Put(t.Context(), "x", nil), block.ErrReadOnly)

	_, err = block.Open(t.Context(), "mem:x", engines, block.OpenOptions{})
	require.ErrorIs(t, err, block.ErrInvalidURL)
}
