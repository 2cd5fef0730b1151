// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

const weekRules = `{"Rules": [{"ID": "week", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "Expiration": {"Days": 7}}]}`

// newRules is newLake with two objects, and a rule for one of them.
func newRules(t *testing.T) *shell {
	s := newLake(t)
	s.ok("put", "lake/main:tmp/a")
	s.ok("put", "lake/main:b")
	s.ok("commit", "lake/main", "-m", "x")
	s.ok("lifecycle", "set", "lake", s.file("rules.json", weekRules))
	return s
}

func TestRulesAreReadFromStandardInput(t *testing.T) {
	s := newLake(t)
	for _, rules := range []string{weekRules, "\n " + weekRules, s.ok("lifecycle", "set", "lake", s.file("r", weekRules)) + s.ok("lifecycle", "get", "lake")} {
		var out, problems bytes.Buffer
		err := execute(t.Context(), nil, append(s.global, "lifecycle", "set", "lake", "-"), strings.NewReader(rules), &out, &problems)
		require.NoError(t, err)
		require.Empty(t, out.String()+problems.String())
		require.Contains(t, s.ok("lifecycle", "get", "lake"), "<ID>week</ID>")
	}
	s.fails(exitUsage, "lifecycle", "set", "lake", s.file("large", strings.Repeat(" ", maxRulesBytes+1)))
}

func TestOperatorsSettingsComeFromTheEnvironmentUnlessAFlagIsGiven(t *testing.T) {
	s := newRules(t)
	for _, v := range passVariables {
		t.Run(v.variable, func(t *testing.T) {
			run := []string{"lifecycle", "run"}
			if v.flag == "burst" {
				run = append(run, "--rate=1")
			}
			t.Setenv(v.variable, "-5")
			require.Contains(t, s.fails(exitUsage, run...), "-5", "it is taken")
			s.ok(append(run, "--"+v.flag+"=3"+v.unit)...)
			t.Setenv(v.variable, "many")
			require.Contains(t, s.fails(exitUsage, run...), v.variable)
		})
	}
}

// A pass that starts early would take what is not due; one whose clock is behind, or right, does not.
func TestOnlyAClockAheadNeedsForce(t *testing.T) {
	s := newRules(t)
	for _, ahead := range [][]string{{"--now", "+1s"}, {"--now", "+1d"}, {"--now", "2200-01-01"}, {"--day", "23h"}} {
		require.Contains(t, s.fails(exitUsage, append([]string{"lifecycle", "run"}, ahead...)...), "ahead of time")
		s.ok(append([]string{"lifecycle", "run", "--dry-run"}, ahead...)...)
	}
	for _, fine := range [][]string{{"--now", "2020-01-01"}, {"--day", "24h"}, {"--boundary", "exact"}, nil} {
		s.ok(append([]string{"lifecycle", "run"}, fine...)...)
	}
	require.Contains(t, s.ok("ls", "lake/main:", "--recursive"), "tmp/a")
	s.ok("lifecycle", "run", "--now", "+9d", "--force")
	require.NotContains(t, s.ok("ls", "lake/main:", "--recursive"), "tmp/a")
	require.Contains(t, s.ok("ls", "lake/main:"), "b")
}

func TestMetricsAreServedWhileAWorkerRuns(t *testing.T) {
	s := newRules(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := execute(ctx, nil, append(s.global, "lifecycle", "worker", "--metrics-listen", "127.0.0.1:0"), strings.NewReader(""), io.Discard, w)
		ended <- err
		_ = w.Close()
	}()
	said := ""
	buffer := make([]byte, 4096)
	for !strings.Contains(said, "daily_run:") {
		n, err := r.Read(buffer)
		said += string(buffer[:n])
		require.NoError(t, err, said)
	}
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`).FindString(said)
	require.NotEmpty(t, url, said)
	answer, err := http.Get(url)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	for _, name := range []string{"s3_lifecycle_cursor_min_ts_ns{shard=\"15\"} 1", "s3_lifecycle_daily_run_last_walked_ns{", "s3_lifecycle_daily_run_shard_duration_seconds", "s3_lifecycle_daily_run_events_scanned_total{", "s3_lifecycle_dispatch_limiter_wait_seconds"} {
		require.Contains(t, string(text), name)
	}
	stop()
	_, err = io.Copy(io.Discard, r)
	require.NoError(t, err)
	require.NoError(t, <-ended)
	_, err = http.Get(url) //nolint:bodyclose // there is none
	require.Error(t, err)
	require.Empty(t, s.ok("kv", "scan", "lifecycle", "--prefix", "leases/"), "it gives back what it held")
}

func TestOnlyThisMachineMayAskForMetricsWhereNoHostIsGiven(t *testing.T) {
	for given, want := range map[string]string{":9100": "127.0.0.1:9100", "9100": "127.0.0.1:9100", "0.0.0.0:9100": "0.0.0.0:9100", "[::1]:9100": "[::1]:9100", "host:9100": "host:9100"} {
		require.Equal(t, want, listenAddress(given))
	}
}

func TestShardsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, text := range []string{"0-15", "3", "0-2,4-15", "0,2,4", "14-15"} {
		shards, err := parseShards(text)
		require.NoError(t, err)
		require.Equal(t, text, shardsText(shards))
	}
	shards, err := parseShards("4,1-2,2-3")
	require.NoError(t, err)
	require.Equal(t, "1-4", shardsText(shards))
	for _, text := range []string{"16", "-1", "1-", "a", "2-1", "1,,2"} {
		_, err := parseShards(text)
		require.ErrorAs(t, err, &usageError{}, text)
	}
}

func TestAClockIsMovedToATimeOrByOne(t *testing.T) {
	machine := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"": machine, "+31d": machine.AddDate(0, 0, 31), "+36h": machine.Add(36 * time.Hour), "+0d": machine, "2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC),
	} {
		at, err := parseClock(text, machine)
		require.NoError(t, err)
		require.True(t, want.Equal(at), text)
	}
	for _, text := range []string{"+", "+d", "+-1d", "+-1h", "+99999d", "31d", "-31d", "tomorrow", "1969-12-31", "2262-04-12", "0001-01-01"} {
		_, err := parseClock(text, machine)
		require.ErrorAs(t, err, &usageError{}, text)
	}
}

// Whoever runs passes by a schedule learns from the exit code that something is not done.
func TestAPassWithErrorsOrBlocksFails(t *testing.T) {
	a := &app{stderr: io.Discard, printer: newPrinter(io.Discard)}
	r := &dailyrun.Report{Sources: []dailyrun.SourceReport{{}}}
	require.Zero(t, exitCode(a.printPass(r, nil)))
	require.Equal(t, exitFailed, exitCode(a.printPass(r, fmt.Errorf("x: %w", graveler.ErrInvalidName))), "it is not the caller's command line")
	require.Equal(t, exitFailed, exitCode(a.printPass(r, context.Canceled)))
	r.Sources[0].Blocked = 1
	require.Equal(t, exitConflict, exitCode(a.printPass(r, nil)))
	require.Equal(t, exitUsage, exitCode(a.printPass(nil, usageError{"no"})), "it has not begun")
}

func TestRulesArePrintedSoThatPeopleCanReadThem(t *testing.T) {
	s := newLake(t)
	rules := `<LifecycleConfiguration><Rule><ID>a</ID><Filter><Prefix> &lt;&#xA;é&#xD; </Prefix></Filter><Status>Enabled</Status><Expiration><Days>7</Days></Expiration></Rule>` +
		`<Rule><ID>b</ID><Filter/><Status>Enabled</Status><Expiration><Days>8</Days></Expiration></Rule></LifecycleConfiguration>`
	s.ok("lifecycle", "set", "lake", s.file("rules.xml", rules))
	before := s.ok("lifecycle", "get", "lake", "--format", "json")
	got := s.ok("lifecycle", "get", "lake")
	require.Contains(t, got, "\n  <Rule>\n    <ID>b</ID>\n")
	s.ok("lifecycle", "set", "lake", s.file("again.xml", got))
	require.Equal(t, before, s.ok("lifecycle", "get", "lake", "--format", "json"), "nothing has changed by it")
}

func TestAWorkerOfShorterDaysNeedsForce(t *testing.T) {
	s := newRules(t)
	require.Contains(t, s.fails(exitUsage, "lifecycle", "worker", "--day", "1s"), "not due yet")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, fine := range [][]string{{"--day", "24h"}, {"--day", "1s", "--force"}} {
		err := execute(ctx, nil, append(append(s.global, "lifecycle", "worker"), fine...), strings.NewReader(""), io.Discard, io.Discard)
		require.NotErrorAs(t, err, &usageError{})
	}
}

func TestExplainLeavesOutWhatIsAboutOtherObjects(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:a")
	s.ok("commit", "lake/main", "-m", "x")
	s.ok("lifecycle", "set", "lake", s.file("rules.json", `{"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {}, "Expiration": {"Days": 1}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}]}`))
	explain := []string{"lifecycle", "explain", "lake/main:a"}
	require.NotContains(t, s.ok(explain...), "AbortMPU")
	require.Contains(t, s.ok(explain...), "1 day after")
	_, stdout, _ := s.run(append(explain, "--verbose")...)
	require.Contains(t, stdout, "it is not about current objects")
	require.Contains(t, s.ok(append(explain, "--output", "json")...), "AbortMPU")
	s.ok("lifecycle", "set", "lake", s.file("uploads.json", `{"Rules": [{"ID": "r", "Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}]}`))
	require.Contains(t, s.ok(explain...), "it is not about current objects", "nothing else is to be said")
	s.fails(exitNotFound, "lifecycle", "explain", "lake/nowhere:a")
}
