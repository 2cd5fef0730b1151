// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"math"
	"time"
)

// Boundary says when within a day something becomes due.
type Boundary int

const (
	// MidnightUTC rounds up to the next midnight UTC, as S3 does. What falls on midnight stays.
	MidnightUTC Boundary = iota
	// Exact rounds nothing.
	Exact
)

func (b Boundary) String() string {
	switch b {
	case MidnightUTC:
		return "midnight-utc"
	case Exact:
		return "exact"
	default:
		return fmt.Sprintf("Boundary(%d)", int(b))
	}
}

// ParseBoundary is the inverse of Boundary.String; "" is MidnightUTC.
func ParseBoundary(s string) (Boundary, error) {
	switch s {
	case "", MidnightUTC.String():
		return MidnightUTC, nil
	case Exact.String():
		return Exact, nil
	default:
		return 0, fmt.Errorf("day boundary %q: it is %s or %s", s, MidnightUTC, Exact)
	}
}

// Calendar is the arithmetic of days. The zero value is that of S3.
type Calendar struct {
	// Day is how long a day is; 0 is 24 hours, and nothing longer is allowed. Shorter days are for tests and demonstrations:
	// there is a midnight at the end of each.
	Day      time.Duration
	Boundary Boundary
}

const dayOfS3 = 24 * time.Hour

// Validate reports what is wrong with c.
func (c Calendar) Validate() error {
	if c.Day < 0 || c.Day > dayOfS3 {
		return fmt.Errorf("a day of %s: it is more than 0 and at most %s", c.Day, dayOfS3)
	}
	if c.Boundary != MidnightUTC && c.Boundary != Exact {
		return fmt.Errorf("day boundary %d is unknown", int(c.Boundary))
	}
	return nil
}

// Due returns when something is due that began at since and has a delay in days: that many days later, rounded up as the boundary says.
func (c Calendar) Due(delay int, since time.Time) time.Time {
	due := c.add(since, delay)
	if c.Boundary == Exact {
		return due
	}
	midnight := due.Truncate(c.day())
	if midnight.Before(due) {
		midnight = midnight.Add(c.day())
	}
	return midnight
}

// Horizon returns the latest beginning of what is due at now, so that Due(delay, since) is not after now exactly where since is
// not after Horizon(delay, now). It may lie beyond what nanoseconds since the epoch can say (see Nanoseconds).
func (c Calendar) Horizon(delay int, now time.Time) time.Time {
	if c.Boundary == MidnightUTC {
		now = now.Truncate(c.day())
	}
	return c.add(now, -delay)
}

// Days returns the number of whole days in d.
func (c Calendar) Days(d time.Duration) int64 { return int64(d / c.day()) }

func (c Calendar) day() time.Duration {
	if c.Day == 0 {
		return dayOfS3
	}
	return c.Day
}

// add counts seconds and nanoseconds apart, since a Duration ends after 292 years and a delay need not.
func (c Calendar) add(t time.Time, days int) time.Time {
	seconds, nanoseconds := int64(c.day()/time.Second), int64(c.day()%time.Second)
	return time.Unix(t.Unix()+int64(days)*seconds, int64(t.Nanosecond())+int64(days)*nanoseconds).UTC()
}

// Nanoseconds returns t as nanoseconds since the epoch, as the branch log has it, or the nearest number where it lies beyond
// (before 1677, after 2262).
func Nanoseconds(t time.Time) int64 {
	switch {
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	default:
		return t.UnixNano()
	}
}
