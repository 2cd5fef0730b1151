// SPDX-License-Identifier: Apache-2.0

package command

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSizesAreReadable(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 5 << 40: "5.0 TiB", math.MaxInt64: "8.0 EiB",
	} {
		require.Equal(t, want, formatSize(n))
	}
}

func TestDifferentBytesLookDifferent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.StringOf(rapid.RuneFrom([]rune("a\"\\\nnx0ü\uFFFD\u200b"))).Draw(t, "a"), rapid.StringOf(rapid.RuneFrom([]rune("a\"\\\nnx0ü\uFFFD\u200b"))).Draw(t, "b")
		require.Equal(t, a == b, escape(a) == escape(b))
		require.NotContains(t, escape(a), "\n")
	})
}
