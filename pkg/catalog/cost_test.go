// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What an operation asks of the key/value store once the records are known.
func TestCallsOfTheEngine(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	calls := func(do func()) map[string]int {
		f.engine.kv.Reset()
		do()
		return f.engine.kv.Counts()
	}
	f.put(t, "a", "1")
	require.Equal(t, map[string]int{"Get": 1, "Apply": 1}, calls(func() { f.put(t, "a", "2") }), "what is overwritten, and the write")
	require.Equal(t, map[string]int{"Get": 1, "Apply": 1}, calls(func() { f.put(t, "b", "2") }))
	require.Equal(t, map[string]int{"Get": 2}, calls(func() { f.get(t, "a", "") }), "as a Get of the entry")

	keys := []ObjectID{}
	for i := range 300 {
		keys = append(keys, ObjectID{Key: fmt.Sprint(i)})
		f.put(t, fmt.Sprint(i), "x")
	}
	require.Equal(t, map[string]int{"Get": 300, "Apply": 1}, calls(func() {
		_, err := f.DeleteMany(ctx, f.bucket(), keys, false)
		require.NoError(t, err)
	}), "many deletions are one write")

	f.enable(t, VersioningEnabled)
	f.put(t, "a", "3")
	require.Equal(t, map[string]int{"Get": 1, "Apply": 1}, calls(func() { f.put(t, "a", "4") }), "what is displaced, and one write of both versions")
	require.Equal(t, map[string]int{"Get": 2, "Scan": 1, "Apply": 1}, calls(func() { f.put(t, "new", "1") }), "a key that has nothing is asked for versions")
	require.Equal(t, map[string]int{"Get": 2, "Apply": 1}, calls(func() {
		_, err := f.Catalog.Delete(ctx, f.bucket(), "a", DeleteParams{})
		require.NoError(t, err)
	}))
}
