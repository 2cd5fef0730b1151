// SPDX-License-Identifier: Apache-2.0

package committed

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block/mem"
)

// Making the same tree again repairs files that were damaged without a change of size.
func TestWritingADamagedTreeAgainRepairsIt(t *testing.T) {
	ctx := context.Background()
	storage := mem.New()
	s := storeOn(t, storage, small)
	c := contents{}
	for _, k := range []string{"a", "b", "c", "d"} {
		c[k] = "identity of " + k
	}
	tree := write(t, s, c)
	for info, err := range storage.List(ctx, "") {
		require.NoError(t, err)
		require.NoError(t, storage.Delete(ctx, info.Name))
		require.NoError(t, storage.Put(ctx, info.Name, make([]byte, info.Size)))
	}
	_, err := scanAll(reopened(t, s), tree)
	require.Error(t, err)
	require.Equal(t, tree, write(t, reopened(t, s), c))
	requireContents(t, reopened(t, s), tree, c)
}
