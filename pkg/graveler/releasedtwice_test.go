// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Of two runs that release at the same time, the one that finds files gone which the other has told of and removed goes on: nothing is damaged.
func TestARunGoesOnWhereAnotherHasRemovedWhatItReleases(t *testing.T) {
	a := newAged(t, graveler.RetentionRule{Pattern: "*", Days: 1})
	ctx := t.Context()
	const old = 5
	for i := range old {
		a.commit("main", "a", fmt.Sprint("old ", i))
	}
	a.commit("main", "a", "parent")
	a.now = a.now.Add(5 * day)
	a.commit("main", "a", "head")
	for range 2 { // noticed, and expired
		a.retain(graveler.RetainParams{})
		a.now = a.now.Add(day + time.Minute)
	}
	told := map[string]bool{}
	tell := func(e graveler.Entry) error {
		told[string(e.Value.Data)] = true
		return nil
	}
	removed := 0
	report := a.retain(graveler.RetainParams{Release: func(e graveler.Entry) error {
		if removed == 0 {
			removed = a.retain(graveler.RetainParams{Release: tell}).FilesRemoved
		}
		return tell(e)
	}})
	require.Positive(t, removed)
	require.Zero(t, report.FilesRemoved)
	require.Len(t, told, old)

	// What the one who is told returns ends the run, whatever it looks like.
	a.commit("main", "a", "more")
	a.now = a.now.Add(5 * day)
	a.commit("main", "a", "most")
	for range 2 {
		a.retain(graveler.RetainParams{})
		a.now = a.now.Add(day + time.Minute)
	}
	_, err := a.Retain(ctx, "lake", graveler.RetainParams{Release: func(graveler.Entry) error { return graveler.ErrCorrupt }})
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	require.Positive(t, a.retain(graveler.RetainParams{DryRun: true}).FilesRemoved)
}
