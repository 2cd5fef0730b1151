// SPDX-License-Identifier: Apache-2.0

package all_test

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
)

func TestEveryEngineOpensByItsScheme(t *testing.T) {
	urls := map[string]string{
		"bolt":   "bolt:" + filepath.Join(t.TempDir(), "meta.db"),
		"mem":    "mem:",
		"pebble": "pebble:" + filepath.Join(t.TempDir(), "meta"),
	}
	for scheme, url := range urls {
		s, err := kv.Open(t.Context(), url, all.Engines(), kv.OpenOptions{})
		require.NoError(t, err, scheme)
		require.NoError(t, s.Close(), scheme)
	}
	for _, scheme := range []string{"postgres", "postgresql"} {
		url := scheme + "://user:secret@localhost:1/nothing?connect_timeout=1"
		_, err := kv.Open(t.Context(), url, all.Engines(), kv.OpenOptions{})
		require.Error(t, err, scheme)
		require.False(t, errors.Is(err, kv.ErrUnknownEngine), scheme)
		require.NotContains(t, err.Error(), "secret", scheme)
	}
	require.Len(t, all.Engines(), len(urls)+2)
}

func TestTheMapIsTheCallers(t *testing.T) {
	e := all.Engines()
	clear(e)
	require.Equal(t, []string{"bolt", "mem", "pebble", "postgres", "postgresql"}, slices.Sorted(maps.Keys(all.Engines())))
}
