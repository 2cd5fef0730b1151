// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

var anyCalendar = rapid.Custom(func(t *rapid.T) lifecycle.Calendar {
	return lifecycle.Calendar{
		Day: rapid.OneOf(
			rapid.SampledFrom([]time.Duration{0, 24 * time.Hour, time.Hour, 10 * time.Second, 7 * time.Second, time.Millisecond, 1}),
			rapid.Map(rapid.Int64Range(1, int64(24*time.Hour)), func(n int64) time.Duration { return time.Duration(n) }),
		).Draw(t, "day"),
		Boundary: rapid.SampledFrom([]lifecycle.Boundary{lifecycle.MidnightUTC, lifecycle.Exact}).Draw(t, "boundary"),
	}
})

func dayOf(c lifecycle.Calendar) time.Duration {
	if c.Day == 0 {
		return 24 * time.Hour
	}
	return c.Day
}

var (
	anyDelay = rapid.OneOf(rapid.IntRange(0, 400), rapid.IntRange(0, math.MaxInt32), rapid.Just(math.MaxInt32))
	// anyTime draws times before the first year, around 1970, in this century and ten thousand years on.
	anyTime = rapid.Custom(func(t *rapid.T) time.Time {
		seconds := rapid.OneOf(
			rapid.Int64Range(-100, 100), rapid.Int64Range(1_600_000_000, 1_900_000_000), rapid.Int64Range(-80_000_000_000, 300_000_000_000),
			rapid.Map(rapid.Int64Range(-30_000, 60_000), func(day int64) int64 { return day * 86_400 }),
		).Draw(t, "seconds")
		return time.Unix(seconds, rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 999_999_999)).Draw(t, "nanoseconds")).UTC()
	})
)

// nanosecondsOf counts from midnight of the first day of the first year, which every midnight is a whole number of days from.
func nanosecondsOf(t time.Time) *big.Int {
	n := big.NewInt(t.Unix() + 62_135_596_800)
	return n.Add(n.Mul(n, big.NewInt(1e9)), big.NewInt(int64(t.Nanosecond())))
}

func TestDueIsDaysLaterRoundedUpToMidnight(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, delay, since := anyCalendar.Draw(t, "calendar"), anyDelay.Draw(t, "delay"), anyTime.Draw(t, "since")
		day := big.NewInt(int64(dayOf(c)))
		want := new(big.Int).Mul(day, big.NewInt(int64(delay)))
		want.Add(want, nanosecondsOf(since))
		if c.Boundary == lifecycle.MidnightUTC {
			// The quotient of Div is rounded down, whatever the sign.
			want.Neg(want.Mul(want.Div(want.Neg(want), day), day))
		}
		require.Equal(t, want, nanosecondsOf(c.Due(delay, since)))
	})
}

func TestHorizonIsTheInverseOfDue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, delay, now := anyCalendar.Draw(t, "calendar"), anyDelay.Draw(t, "delay"), anyTime.Draw(t, "now")
		horizon := c.Horizon(delay, now)
		day := dayOf(c)
		since := rapid.OneOf(
			anyTime,
			rapid.Just(horizon), rapid.Just(horizon.Add(1)), rapid.Just(horizon.Add(-1)),
			rapid.Just(horizon.Truncate(day)), rapid.Just(horizon.Truncate(day).Add(day)),
			rapid.Just(horizon.Add(day)), rapid.Just(horizon.Add(-day)),
		).Draw(t, "since")
		require.Equal(t, !since.After(horizon), !c.Due(delay, since).After(now), "since %s, horizon %s", since, horizon)
	})
}

// What is due stays due, and what began later is not due earlier.
func TestDueAndHorizonNeverGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, delay := anyCalendar.Draw(t, "calendar"), anyDelay.Draw(t, "delay")
		a, b := anyTime.Draw(t, "a"), anyTime.Draw(t, "b")
		if b.Before(a) {
			a, b = b, a
		}
		require.False(t, c.Due(delay, b).Before(c.Due(delay, a)))
		require.False(t, c.Horizon(delay, b).Before(c.Horizon(delay, a)))
		require.False(t, c.Due(delay, a).Before(a))
		require.False(t, c.Horizon(delay, a).After(a))
	})
}

func at(t *testing.T, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339Nano, s)
	require.NoError(t, err)
	return v
}

// RustFS #2827: whole days first, and only then the next midnight. The first case is the example of S3's guide.
func TestWholeDaysPassBeforeMidnightIsLookedFor(t *testing.T) {
	for _, c := range []struct {
		calendar    lifecycle.Calendar
		delay       int
		since, want string
	}{
		{lifecycle.Calendar{}, 3, "2014-01-15T10:30:00Z", "2014-01-19T00:00:00Z"},
		{lifecycle.Calendar{}, 1, "2026-06-01T23:59:59.999999999Z", "2026-06-03T00:00:00Z"},
		{lifecycle.Calendar{}, 1, "2026-06-01T00:00:00.000000001Z", "2026-06-03T00:00:00Z"},
		{lifecycle.Calendar{}, 1, "2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"}, // midnight is not rounded
		{lifecycle.Calendar{}, 1, "2026-06-01T01:00:00+02:00", "2026-06-02T00:00:00Z"},
		{lifecycle.Calendar{}, 0, "2026-06-01T10:00:00Z", "2026-06-02T00:00:00Z"},
		{lifecycle.Calendar{}, 1, "1969-12-31T22:00:00Z", "1970-01-02T00:00:00Z"},
		{lifecycle.Calendar{}, 365, "2024-02-29T12:00:00Z", "2025-03-01T00:00:00Z"},
		{lifecycle.Calendar{Boundary: lifecycle.Exact}, 1, "2026-06-01T10:00:00.5Z", "2026-06-02T10:00:00.5Z"},
		{lifecycle.Calendar{Day: time.Minute}, 2, "2026-06-01T10:00:30Z", "2026-06-01T10:03:00Z"},
		{lifecycle.Calendar{Day: time.Minute, Boundary: lifecycle.Exact}, 2, "2026-06-01T10:00:30Z", "2026-06-01T10:02:30Z"},
	} {
		require.Equal(t, at(t, c.want), c.calendar.Due(c.delay, at(t, c.since)), c.since)
	}
}

func TestADayInTheFarFutureIsNoneInThePast(t *testing.T) {
	var c lifecycle.Calendar
	now := at(t, "2026-06-01T10:00:00Z")
	require.True(t, c.Due(math.MaxInt32, now).After(now))
	require.True(t, c.Horizon(math.MaxInt32, now).Before(now))
	require.Equal(t, int64(math.MinInt64), lifecycle.Nanoseconds(c.Horizon(math.MaxInt32, now)))
	require.Equal(t, int64(math.MaxInt64), lifecycle.Nanoseconds(c.Due(math.MaxInt32, now)))
	for _, n := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, math.MaxInt64 - 1, math.MaxInt64} {
		require.Equal(t, n, lifecycle.Nanoseconds(time.Unix(0, n)))
	}
}

func TestCalendarsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []lifecycle.Calendar{{Day: -1}, {Day: 24*time.Hour + 1}, {Boundary: 2}, {Boundary: -1}} {
		require.Error(t, c.Validate())
	}
	for _, c := range []lifecycle.Calendar{{}, {Day: 1}, {Day: 24 * time.Hour, Boundary: lifecycle.Exact}} {
		require.NoError(t, c.Validate())
		b, err := lifecycle.ParseBoundary(c.Boundary.String())
		require.NoError(t, err)
		require.Equal(t, c.Boundary, b)
	}
	b, err := lifecycle.ParseBoundary("")
	require.NoError(t, err)
	require.Equal(t, lifecycle.MidnightUTC, b)
	_, err = lifecycle.ParseBoundary("noon")
	require.ErrorContains(t, err, "noon")
}
