// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestTheAreasHaveTheirEntriesInTheOrderOfTheKeys(t *testing.T) {
	const id = "0123456789abcdef01234567"
	anyKey := rapid.Map(rapid.StringMatching(`[a\x00\x01\xfe]{0,4}`), func(s string) string { return "a" + s })
	rapid.Check(t, func(t *rapid.T) {
		key, other := anyKey.Draw(t, "key"), anyKey.Draw(t, "other")
		for _, entry := range [][]byte{currentKey(key), markerKey(key), nullKey(key), versionKey(key, id), uploadKey(key, id), partKey(id, 1)} {
			areas := 0
			for _, a := range []Area{CurrentArea, VersionsArea, UploadsArea} {
				if !a.Contains(entry) {
					continue
				}
				areas++
				require.Equal(t, key > other, bytes.Compare(entry, a.After(other)) >= 0, "%q after %q", entry, other)
				require.Positive(t, bytes.Compare(entry, a.After("")))
				require.True(t, bytes.HasPrefix(LogicalPart(entry), []byte("a")))
			}
			place, err := ParseKey(entry)
			require.NoError(t, err)
			if place.Kind == KindPart {
				require.Zero(t, areas)
				require.Nil(t, LogicalPart(entry))
			} else {
				require.Equal(t, 1, areas)
			}
		}
	})
}
