// SPDX-License-Identifier: Apache-2.0

package mem_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func TestConformance(t *testing.T) {
	for _, url := range []string{"mem:", "mem:?fences=costly"} {
		t.Run(url, func(t *testing.T) {
			kvtest.Run(t, kvtest.Harness{Open: mem.Open, NewURL: func(*testing.T) string { return url }})
		})
	}
}

func TestURLSaysWhetherFencesAreCheap(t *testing.T) {
	for url, cheap := range map[string]bool{"mem:": true, "mem:?fences=costly": false} {
		s, err := mem.Open(t.Context(), url, kv.OpenOptions{})
		require.NoError(t, err)
		require.Equal(t, cheap, s.Limits().CheapFences)
		require.NoError(t, s.Close())
	}
	for _, url := range []string{"mem:x", "mem:?fences=cheap", "mem:?fence=costly", "mem://host"} {
		_, err := mem.Open(t.Context(), url, kv.OpenOptions{})
		require.Error(t, err, url)
	}
}

func TestStoresAreSeparate(t *testing.T) {
	a, b := mem.New(), mem.New()
	require.NoError(t, a.Set(t.Context(), []byte("p"), []byte("k"), []byte("v")))
	_, err := b.Get(t.Context(), []byte("p"), []byte("k"))
	require.ErrorIs(t, err, kv.ErrNotFound)
}
