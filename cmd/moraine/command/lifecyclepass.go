// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

const (
	day = 24 * time.Hour
	// walkEvery makes each of the passes of a daily schedule walk, also one that begins a little early.
	walkEvery = 12 * time.Hour
)

// passFlags are the settings of a pass.
type passFlags struct {
	// The calendar.
	day           time.Duration
	boundary      string
	retentionDays int
	at            string // what time it is, for those who look on

	// The work.
	shards      string
	rate        float64
	burst       int
	walkEvery   time.Duration
	maxRuntime  time.Duration
	eventBudget int
	metrics     string
}

// passVariables are the operator's settings in the environment, which a flag overrules.
var passVariables = []struct {
	flag, variable string
	unit           string // of a duration, which the variable leaves out
}{
	{"rate", "MORAINE_CLUSTER_DELETES_PER_SECOND", ""},
	{"burst", "MORAINE_CLUSTER_DELETES_BURST", ""},
	{"retention-days", "MORAINE_META_LOG_RETENTION_DAYS", ""},
	{"walk-every", "MORAINE_WALKER_INTERVAL_MINUTES", "m"},
	{"max-runtime", "MORAINE_MAX_RUNTIME_MINUTES", "m"},
}

// calendar adds the flags that say when something is due.
func (f *passFlags) calendar(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.DurationVar(&f.day, "day", day, "how long a day is: shorter ones are for tests and demonstrations")
	flags.StringVar(&f.boundary, "boundary", lifecycle.MidnightUTC.String(), "when in a day something is due: midnight-utc, the next midnight as S3 does, or exact")
}

// log adds the flag that says how far back the branch log is relied on.
func (f *passFlags) log(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.retentionDays, "retention-days", 0, "how many days back branch logs are relied on; 0: as many as the rules need (environment: MORAINE_META_LOG_RETENTION_DAYS)")
}

// work adds the flags of passes that do something.
func (f *passFlags) work(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.shards, "shards", fmt.Sprintf("0-%d", lifecycle.Shards-1), "shards to work on, such as 0-7,12")
	flags.Float64Var(&f.rate, "rate", 0, "removals per second, of all workers together; 0: as many as can be (environment: MORAINE_CLUSTER_DELETES_PER_SECOND)")
	flags.IntVar(&f.burst, "burst", 0, "removals that --rate allows at once; 0: twice as many as in a second (environment: MORAINE_CLUSTER_DELETES_BURST)")
	flags.DurationVar(&f.walkEvery, "walk-every", walkEvery, "how long after a walk over everything the next one is due; 0: with each pass (environment: MORAINE_WALKER_INTERVAL_MINUTES)")
	flags.DurationVar(&f.maxRuntime, "max-runtime", dailyrun.DefaultMaxRuntime, "when to end a pass; the next goes on there (environment: MORAINE_MAX_RUNTIME_MINUTES)")
	flags.IntVar(&f.eventBudget, "event-budget", 0, "how many changes of a branch, candidates of each of its lanes, and keys of a walk, a pass looks at; 0: all")
	flags.StringVar(&f.metrics, "metrics-listen", "", "[HOST]:PORT at which to serve metrics for Prometheus meanwhile; without a host only to this machine")
}

// view adds the flags of those who look on.
func (f *passFlags) view(cmd *cobra.Command) {
	f.calendar(cmd)
	f.log(cmd)
	cmd.Flags().StringVar(&f.at, "now", "", "what time it is, or how much later than now it is, such as +31d (default: the time of this machine)")
}

// readPasses looks on, with the settings that passes have.
func (a *app) readPasses(cmd *cobra.Command, f *passFlags, fn func(dailyrun.Config) error) error {
	now, err := parseClock(f.at, time.Now())
	if err == nil {
		err = f.complete(cmd)
	}
	if err != nil {
		return err
	}
	return a.useLifecycle(cmd.Context(), reading, func(s *moraine.Store, records kv.Store) error {
		c, err := f.config(s, records, clockAt(f.at, now))
		if err != nil {
			return err
		}
		return fn(c)
	})
}

// complete takes from the environment what no flag gives.
func (f *passFlags) complete(cmd *cobra.Command) error {
	for _, v := range passVariables {
		text := os.Getenv(v.variable)
		if text == "" || cmd.Flags().Lookup(v.flag) == nil || cmd.Flags().Changed(v.flag) {
			continue
		}
		if err := cmd.Flags().Set(v.flag, text+v.unit); err != nil {
			return usageError{fmt.Sprintf("%s %q: not a value for --%s", v.variable, text, v.flag)}
		}
	}
	if f.day <= 0 {
		return usageError{fmt.Sprintf("--day %s: expected more than 0", f.day)}
	}
	if f.maxRuntime <= 0 && cmd.Flags().Lookup("max-runtime") != nil {
		return usageError{fmt.Sprintf("--max-runtime %s: expected more than 0", f.maxRuntime)}
	}
	if f.metrics != "" {
		_, port, err := net.SplitHostPort(listenAddress(f.metrics))
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil {
			return usageError{fmt.Sprintf("--metrics-listen %s: expected [HOST]:PORT: %v", f.metrics, err)}
		}
	}
	if f.retentionDays < 0 || f.retentionDays > maxRetentionDays {
		return usageError{fmt.Sprintf("--retention-days %d: expected a number up to %d", f.retentionDays, maxRetentionDays)}
	}
	return nil
}

// maxRetentionDays is what retention rules allow, too.
const maxRetentionDays = 36500

// config returns the settings of a pass over a store, as of a time.
func (f *passFlags) config(s *moraine.Store, records kv.Store, now func() time.Time) (dailyrun.Config, error) {
	boundary, err := lifecycle.ParseBoundary(f.boundary)
	if err != nil {
		return dailyrun.Config{}, usageError{"--boundary: " + err.Error()}
	}
	shards, err := parseShards(f.shards)
	return dailyrun.Config{
		Store: s, Records: records, Shards: shards, RetentionWindow: time.Duration(f.retentionDays) * f.day,
		Walker: walker.New(s), WalkerInterval: f.walkEvery, Day: f.day, DayBoundary: boundary, MaxRuntime: f.maxRuntime, EventBudget: f.eventBudget, Now: now,
	}, err
}

// parseShards reads numbers and ranges of them; nil: all.
func parseShards(text string) (shards []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, fromErr := strconv.Atoi(first)
		to, toErr := strconv.Atoi(last)
		if fromErr != nil || toErr != nil || from < 0 || from > to || to >= lifecycle.Shards {
			return nil, usageError{fmt.Sprintf("--shards %s: expected numbers from 0 to %d, such as 0-7,12", text, lifecycle.Shards-1)}
		}
		for n := from; n <= to; n++ {
			shards = append(shards, n)
		}
	}
	slices.Sort(shards)
	return slices.Compact(shards), nil
}

// shardsText is the inverse of parseShards, of ascending numbers.
func shardsText(shards []int) string {
	var parts []string
	for i := 0; i < len(shards); {
		last := i
		for last+1 < len(shards) && shards[last+1] == shards[last]+1 {
			last++
		}
		part := strconv.Itoa(shards[i])
		if last > i {
			part += "-" + strconv.Itoa(shards[last])
		}
		parts = append(parts, part)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// latest is the last instant that records can have.
var latest = time.Unix(0, math.MaxInt64)

// parseClock reads what --now takes: a time, or after a plus how much later than the machine's clock, of which the unit may also be d, for days.
func parseClock(text string, machine time.Time) (time.Time, error) {
	t, err := parseAnyClock(text, machine)
	if err == nil && (t.Before(time.Unix(0, 0)) || t.After(latest)) {
		return time.Time{}, usageError{fmt.Sprintf("--now %s: expected a time from 1970 to %d", text, latest.Year()-1)}
	}
	return t, err
}

func parseAnyClock(text string, machine time.Time) (time.Time, error) {
	ahead, relative := strings.CutPrefix(text, "+")
	switch {
	case text == "":
		return machine, nil
	case !relative:
		t, err := parseTime(text)
		if err != nil {
			return time.Time{}, usageError{"--now: " + err.Error() + ", or how much later, such as +31d"}
		}
		return t, nil
	}
	if days, ok := strings.CutSuffix(ahead, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= maxRetentionDays {
			return machine.Add(time.Duration(n) * day), nil
		}
	} else if d, err := time.ParseDuration(ahead); err == nil && d >= 0 {
		return machine.Add(d), nil
	}
	return time.Time{}, usageError{fmt.Sprintf("--now %s: expected how much later, such as +31d or +36h", text)}
}
