// SPDX-License-Identifier: Apache-2.0

package staging_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// bytesFew draws from few bytes, the extreme ones among them, so that prefixes are shared.
func bytesFew(shortest int) *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0x00, 'a', '/', 0xfe, 0xff}), shortest, 4)
}

// stage fills the token with random entries and returns them by key.
func stage(t *rapid.T, s *staging.Store) []graveler.Entry {
	staged := map[string]*graveler.Value{}
	for _, key := range rapid.SliceOfN(bytesFew(1), 0, 40).Draw(t, "keys") {
		w := graveler.StagedWrite{Key: key}
		if rapid.Bool().Draw(t, "value") {
			w.Value = &graveler.Value{
				Identity: rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "identity"),
				Data:     rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "data"),
			}
		}
		require.NoError(t, s.Apply(context.Background(), nil, token, []graveler.StagedWrite{w}))
		staged[string(key)] = w.Value
	}
	var entries []graveler.Entry
	for key, v := range staged {
		entries = append(entries, graveler.Entry{Key: graveler.Key(key), Value: v})
	}
	slices.SortFunc(entries, func(a, b graveler.Entry) int { return bytes.Compare(a.Key, b.Key) })
	return entries
}

func below(entries []graveler.Entry, from, prefix []byte) []graveler.Entry {
	return slices.DeleteFunc(append([]graveler.Entry{}, entries...), func(e graveler.Entry) bool {
		return bytes.Compare(e.Key, from) < 0 || !bytes.HasPrefix(e.Key, prefix)
	})
}

func TestScansSeeWhatIsStagedBelowThePrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := mem.New()
		defer func() { require.NoError(t, store.Close()) }()
		s := staging.New(store)
		entries := stage(t, s)
		from, prefix := bytesFew(0).Draw(t, "from"), bytesFew(0).Draw(t, "prefix")
		want := below(entries, from, prefix)
		require.Equal(t, want, append([]graveler.Entry{}, collect(t, s, from, prefix)...))

		it, err := s.Scan(context.Background(), token, from, prefix)
		require.NoError(t, err)
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				require.Equal(t, len(want) > 0, it.Next())
				if len(want) > 0 {
					require.Equal(t, want[0], it.Item())
					want = want[1:]
				}
			},
			"seek": func(t *rapid.T) {
				key := bytesFew(0).Draw(t, "key")
				it.SeekGE(key)
				want = below(entries, key, prefix)
			},
		})
		require.NoError(t, it.Err())
		require.NoError(t, it.Close())
		require.False(t, it.Next())
	})
}
