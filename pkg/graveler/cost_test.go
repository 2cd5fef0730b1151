// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// What an operation asks of the key/value store once the records are known.
func TestCallsOfTheEngine(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.set(t, "a", "1")
	f.commit(t, "base")
	f.set(t, "b", "2")

	f.kv.Reset()
	f.set(t, "c", "3")
	require.Equal(t, map[string]int{"Apply": 1}, f.kv.Counts(), "a staged write is one Apply")

	f.kv.Reset()
	many := make([]graveler.Entry, 90)
	for i := range many {
		v := value("x")
		many[i] = graveler.Entry{Key: key(fmt.Sprintf("m%d", i)), Value: &v}
	}
	require.NoError(t, f.SetMany(ctx, "lake", "main", many))
	require.Equal(t, map[string]int{"Apply": 1}, f.kv.Counts(), "a chunk of staged writes is one Apply")

	for _, k := range []string{"a", "b"} { // committed, staged
		f.kv.Reset()
		_, err := f.Get(ctx, "lake", "main", key(k))
		require.NoError(t, err)
		require.LessOrEqual(t, f.kv.Total(), 3)
		require.Equal(t, map[string]int{"Get": 2}, f.kv.Counts(), "the token, and the record to verify it")
	}

	f.kv.Reset()
	_, err := f.Get(ctx, "lake", "main", key("nothing here"))
	require.ErrorIs(t, err, graveler.ErrEntryNotFound)
	require.Equal(t, map[string]int{"Get": 2}, f.kv.Counts())

	f.kv.Reset()
	require.NoError(t, f.Delete(ctx, "lake", "main", key("nothing here")))
	require.Equal(t, map[string]int{"Get": 2}, f.kv.Counts(), "deleting nothing writes nothing")
}

// A commit of one change, alone on its branch, is two writes of the engine, whatever else it writes: the seal, and the record
// with all that must be there before it.
func TestACommitOfOneChangeWritesTwice(t *testing.T) {
	for _, url := range []string{"mem:", costlyFences} {
		f := newFixtureAt(t, url)
		f.set(t, "a", "1")
		f.commit(t, "base")
		f.set(t, "b", "2")
		f.kv.Reset()
		f.commit(t, "one change")
		require.Equal(t, map[string]int{"Get": 3, "Scan": 2, "SetIf": 1, "Publish": 1}, f.kv.Counts(), "it reads the record of the repository once, and that of the branch twice")

		// With nothing to commit it writes nothing.
		f.kv.Reset()
		_, err := f.Commit(context.Background(), "lake", "main", graveler.CommitParams{})
		require.ErrorIs(t, err, graveler.ErrNoChanges)
		require.Equal(t, map[string]int{"Get": 2, "Scan": 1}, f.kv.Counts())
	}
}
