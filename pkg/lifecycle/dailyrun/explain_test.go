// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// No midnight fell into the hour for which the branch showed the object first.
func TestATimeForWhichNoPassWouldFindAnObjectExplainsNothing(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.config.DayBoundary = lifecycle.MidnightUTC
	f.rules(bucket, expire(5))
	f.put("z")
	since := f.head()
	f.put("a")
	full := f.head()
	f.clock = f.clock.Add(time.Hour)
	f.resetTo(since)
	f.days(3)
	f.resetTo(full)
	f.run()
	all, err := dailyrun.Explain(t.Context(), f.config, bucket, "main", "a")
	require.NoError(t, err)
	require.True(t, all[0].Actions[0].Acts)
	at := all[0].Actions[0].At
	require.True(t, at.After(f.clock))
	f.clock = at.Add(-2 * time.Second)
	f.run()
	require.Contains(t, f.keys(bucket), "a")
	f.clock = at
	f.run()
	require.NotContains(t, f.keys(bucket), "a")
}

// reasons returns why each action acts on the objects of a key: of each object by kind.
func (f *fixture) reasons(key string) map[string][]string {
	f.Helper()
	all, err := dailyrun.Explain(f.Context(), f.config, bucket, "", key)
	require.NoError(f, err)
	why := map[string][]string{}
	for _, x := range all {
		for _, a := range x.Actions {
			if a.Acts {
				why[x.Object.Kind.String()] = append(why[x.Object.Kind.String()], a.Why)
			}
		}
	}
	return why
}

func TestTheReasonIsThatOfTheAction(t *testing.T) {
	f := newFixture(t, catalog.VersioningEnabled)
	f.rules(bucket, expire(3), `"Filter":{},"Expiration":{"Date":"2031-01-01"}`, `"Filter":{},"NoncurrentVersionExpiration":{"NoncurrentDays":1}`,
		`"Filter":{},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}`, `"Filter":{},"Expiration":{"ExpiredObjectDeleteMarker":true}`)
	f.put("a", "a", "a")
	f.delete("gone")
	displaced := "1 day after it was displaced on the branch"
	require.Equal(t, map[string][]string{
		"current":    {"3 days after it came to the branch", "it is the date of the rule"},
		"noncurrent": {displaced, displaced, "beyond 1 newer noncurrent version"},
	}, f.reasons("a"))
	require.Equal(t, map[string][]string{"marker": {"3 days after it came to the branch", "the delete marker is the only version"}}, f.reasons("gone"))
	f.config.DayBoundary = lifecycle.MidnightUTC
	require.Equal(t, "3 days after it came to the branch, by the calendar", f.reasons("a")["current"][0])
	f.config.RetentionWindow = time.Hour // so that the log is not relied on
	require.Equal(t, "its own times say so", f.reasons("a")["current"][0])
}

func TestAnEntryThatHoldsNoObjectIsExplainedAsSuch(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(3))
	f.put("a")
	marker, err := catalog.Encode(catalog.Object{DeleteMarker: true})
	require.NoError(t, err)
	for name, v := range map[string]graveler.Value{"no message": {Identity: []byte("i"), Data: []byte("\xff")}, "a marker": marker} {
		require.NoError(t, f.Set(t.Context(), bucket, "main", graveler.Key("a"), v), name)
		f.commit(bucket)
		_, err := dailyrun.Explain(t.Context(), f.config, bucket, "", "a")
		require.ErrorIs(t, err, walker.ErrNoObject, name)
	}
}

func TestABranchThatIsLeftOutIsExplainedAllTheSame(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	f.rules(bucket, expire(3))
	f.put("a")
	require.NoError(t, f.ProtectBranches(t.Context(), bucket, func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
		return []graveler.ProtectionRule{{Pattern: "main", Forbid: graveler.ActionMove}}, nil
	}))
	all, err := dailyrun.Explain(t.Context(), f.config, bucket, "", "a")
	require.ErrorIs(t, err, dailyrun.ErrLeftOut)
	require.ErrorContains(t, err, "protected against moves")
	require.Len(t, all, 1)
	require.True(t, all[0].Actions[0].Acts)
}
