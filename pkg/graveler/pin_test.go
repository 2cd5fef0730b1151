// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// What cannot be pinned is refused before anything is: what the owner has pinned stays as it was.
func TestAPinOfWhatCannotBeIsNotWritten(t *testing.T) {
	ctx := t.Context()
	f := newFixture(t)
	b, err := f.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	before := graveler.PinParams{Commits: []graveler.CommitID{b.Head}, Logs: map[string]int64{b.UID: 0}}
	require.NoError(t, f.PutPin(ctx, "lake", "me", before))
	for name, logs := range map[string]map[string]int64{
		"no UID":              {"": 1},
		"a UID with a slash":  {"a/b": 1},
		"a UID with a colon":  {"a:b": 1},
		"a UID not of UTF-8":  {"\xff": 1},
		"a long UID":          {strings.Repeat("u", 201): 1},
		"a time before all":   {b.UID: -1},
		"one of several only": {b.UID: 0, "a/b": 1},
	} {
		require.ErrorIs(t, f.PutPin(ctx, "lake", "me", graveler.PinParams{Logs: logs}), graveler.ErrInvalidValue, name)
	}
	n := 0
	for p, err := range f.ListPins(ctx, "lake") {
		require.NoError(t, err)
		require.Equal(t, before.Logs, p.Logs)
		require.Len(t, p.Trees, 1)
		n++
	}
	require.Equal(t, 1, n)
}
