// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/benchmarks/chart"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// points are numbers of goroutines that targets are for.
var points = map[string]map[string]string{
	"kv":            {"goroutines": "1,8,64", "window": "0"},
	"staged-writes": {"goroutines": "1,16,64", "window": "0"},
	"long-commit":   {"readers": "1"},
}

func requireSound(t *testing.T, d *result.Document, workloads int, engines ...string) {
	t.Helper()
	seen := map[string]bool{}
	for _, r := range d.Runs {
		seen[r.Workload+" on "+r.Engine] = true
		require.Empty(t, r.Error, r.Title())
		require.NotEmpty(t, r.Checked, r.Title())
		require.NotEmpty(t, r.Metrics, r.Title())
		require.NotEmpty(t, r.Durability, r.Title())
		require.Contains(t, engines, r.Engine)
		for _, m := range r.Metrics {
			require.NotEmpty(t, m.Samples, m.ID())
			for _, s := range m.Samples {
				require.False(t, math.IsNaN(s) || math.IsInf(s, 0) || s < 0, "%s of %s: %v", m.ID(), r.Title(), m.Samples)
			}
		}
	}
	require.Len(t, seen, workloads*len(engines))
}

// requireNothingLeft makes sure that the suite has cleaned up.
func requireNothingLeft(t *testing.T, c Config) {
	t.Helper()
	left, err := os.ReadDir(c.Dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// requireJudged makes sure that something measures each target of the engine, of the workloads that have run.
func requireJudged(t *testing.T, d *result.Document, engine string) {
	t.Helper()
	for _, want := range targets() {
		r := d.Find(want.workload, want.variant, engine)
		if r == nil {
			continue
		}
		judged := slices.ContainsFunc(d.Targets, func(v result.Verdict) bool {
			return v.Engine == engine && v.Target == want.name && strings.HasPrefix(v.Metric, want.metric)
		})
		require.Equal(t, want.isFor(engine), judged, "%s on %s", want.name, engine)
		if want.isFor(engine) && !strings.Contains(want.metric, "during ÷ before") { // on a slow disk, no write may end in a phase of a moment
			require.NotEmpty(t, want.points(r), "%s: nothing measures %q", want.name, want.metric)
		}
	}
}

func TestEveryWorkloadRunsAndIsJudged(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	var workloads []Workload
	for _, w := range Workloads(Tiny) {
		workloads = append(workloads, tiny(t, w.Name, points[w.Name]))
	}
	c := config(t, "bolt")
	c.Rounds = 1
	d, err := Run(t.Context(), c, workloads)
	require.NoError(t, err)
	requireSound(t, d, len(workloads), "bolt")
	requireJudged(t, d, "bolt")
	requireNothingLeft(t, c)

	names, err := chart.Write(d, filepath.Join(c.Dir, "plots"))
	require.NoError(t, err)
	for _, name := range []string{"kv-rate-by-goroutines", "commit-size-time-by-entries", "one-change-time-by-entries"} {
		require.Contains(t, names, name)
	}
}

func TestEnginesAreComparedWithTheirOwnRivals(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	workloads := []Workload{tiny(t, "kv", points["kv"]), tiny(t, "concurrent-commits", nil)}
	c := config(t, "pebble")
	c.Rounds = 1
	d, err := Run(t.Context(), c, workloads)
	require.NoError(t, err)
	requireSound(t, d, len(workloads), "pebble")
	requireJudged(t, d, "pebble")
	requireNothingLeft(t, c)

	c.Engines, c.Store = nil, testpg.Start(t).NewDatabase(t)
	d, err = Run(t.Context(), c, workloads) // one after the other in one store, which each leaves empty
	require.NoError(t, err)
	requireSound(t, d, len(workloads), "postgres")
	requireJudged(t, d, "postgres")
	requireNothingLeft(t, c)
	require.NotEmpty(t, d.Versions["postgres"])
}

func TestObjectsAndLifecycleAreMeasuredOnEveryEngine(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	engines := []string{"mem", "pebble", "postgres"}
	c := config(t, engines...)
	c.Rounds = 3
	d, err := Run(t.Context(), c, []Workload{tiny(t, "objects", nil), tiny(t, "lifecycle", nil)})
	require.NoError(t, err)
	requireSound(t, d, 2, engines...)
	requireNothingLeft(t, c)
	for _, engine := range engines {
		requireJudged(t, d, engine)
	}
	for _, v := range d.Targets {
		if v.Target == "nothing due costs nothing" {
			require.True(t, v.Met, "%s: calls are counted, not timed", v.Metric)
		}
	}

	names, err := chart.Write(d, filepath.Join(c.Dir, "plots"))
	require.NoError(t, err)
	for _, name := range []string{"objects-rate-by-writers", "objects-time-by-keys", "lifecycle-time-by-objects", "lifecycle-time-by-days"} {
		require.Contains(t, names, name)
	}
}

func TestPostgresIsStartedWhereItIsInstalled(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	c := config(t, "mem", "postgres")
	d, err := Run(t.Context(), c, []Workload{tiny(t, "import", nil)})
	require.NoError(t, err)
	requireSound(t, d, 1, "mem", "postgres")
	requireNothingLeft(t, c)
	for _, v := range d.Targets {
		require.NotEqual(t, "mem", v.Engine)
	}
}

func TestTheTablesOfOlderDeploymentsAreMeasuredWithoutAnEngine(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	c := config(t, "sql")
	c.Rounds = 1
	workloads := []Workload{tiny(t, "staged-writes", nil), tiny(t, "small-commits", nil), tiny(t, "concurrent-commits", nil), tiny(t, "objects", nil)}
	d, err := Run(t.Context(), c, workloads)
	require.NoError(t, err)
	requireSound(t, d, len(workloads), "sql")
	requireNothingLeft(t, c)
	require.Empty(t, d.Targets, "they are there to compare with")

	for _, name := range []string{"kv", "lifecycle"} {
		_, err = Run(t.Context(), c, []Workload{tiny(t, name, nil)})
		require.ErrorIs(t, err, ErrConfig)
	}

	c.Engines, c.Store = nil, sqlstore.Scheme+strings.TrimPrefix(testpg.Start(t).NewDatabase(t), "postgres")
	d, err = Run(t.Context(), c, workloads) // one after the other in one store, which each leaves empty
	require.NoError(t, err)
	requireSound(t, d, len(workloads), "sql")
}

func TestALongCommitHasThreePhasesAndItsDocumentSurvivesItsJSON(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	c := config(t, "mem")
	c.Rounds = 1
	d, err := Run(t.Context(), c, []Workload{tiny(t, "long-commit", map[string]string{"readers": "1"})})
	require.NoError(t, err)
	require.NotNil(t, d.Find("long-commit", "unpaced", "mem"))
	require.NotNil(t, d.Find("long-commit", "paced", "mem"))
	require.NotNil(t, d.Find("long-commit", "paced and shared", "mem"))
	require.Len(t, d.Runs, 5)
	for _, r := range d.Runs {
		require.NotEmpty(t, r.Counts)
		if r.Variant == "frontier" {
			require.Len(t, r.Metrics, 2*4, "four figures of each of two shares")
			continue
		}
		require.Len(t, r.Phases, 3)
		at := 0.0
		for i, p := range r.Phases {
			require.Equal(t, []string{"before", "during", "after"}[i], p.Name)
			require.Equal(t, at, p.From)
			require.Less(t, p.From, p.To)
			at = p.To
		}
		require.NotEmpty(t, r.Phases[0].Operations) // in a phase of a moment a busy machine may get round to one kind only
	}

	path := filepath.Join(t.TempDir(), "result.json")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, d.Write(f))
	require.NoError(t, f.Close())
	read, err := result.Read(path)
	require.NoError(t, err)
	require.Equal(t, d, read)
	for _, c := range result.Compare(d, read) {
		require.Equal(t, 1.0, c.Ratio, c.Metric)
		require.Equal(t, "within spread", c.Verdict)
	}
}

func TestAStoreThatHoldsSomethingIsLeftAlone(t *testing.T) {
	t.Parallel() // much of it is waiting for the disk
	c := config(t)
	c.Store, c.Blocks = "bolt:"+filepath.Join(t.TempDir(), "meta.db"), "file:"+t.TempDir()
	s, err := moraine.Open(t.Context(), moraine.Options{Store: c.Store, Blocks: c.Blocks})
	require.NoError(t, err)
	_, err = s.CreateRepository(t.Context(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	d, err := Run(t.Context(), c, []Workload{tiny(t, "merge", nil)})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "lake")
	require.Nil(t, d)
	requireNothingLeft(t, c)

	s, err = moraine.Open(t.Context(), moraine.Options{Store: c.Store, Blocks: c.Blocks})
	require.NoError(t, err)
	require.NoError(t, s.DeleteRepository(t.Context(), "lake"))
	require.NoError(t, s.Close())
	d, err = Run(t.Context(), c, []Workload{tiny(t, "merge", nil), tiny(t, "kv", nil)})
	require.NoError(t, err)
	requireSound(t, d, 2, "bolt")
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"no engine":        func(c *Config) { c.Engines = nil },
		"unknown engine":   func(c *Config) { c.Engines = []string{"oracle"} },
		"engine twice":     func(c *Config) { c.Engines = []string{"mem", "mem"} },
		"engine and store": func(c *Config) { c.Store = "mem:" },
		"blocks alone":     func(c *Config) { c.Blocks = "mem:" },
		"no rounds":        func(c *Config) { c.Rounds = 0 },
		"tiny values":      func(c *Config) { c.ValueBytes = 10 },
		"huge values":      func(c *Config) { c.ValueBytes = 1 << 20 },
	} {
		c := config(t, "mem")
		change(&c)
		d, err := Run(t.Context(), c, []Workload{tiny(t, "merge", nil)})
		require.ErrorIs(t, err, ErrConfig, name)
		require.Nil(t, d, name)
	}
	for name, params := range map[string]map[string]string{
		"merge":       {"changes": "900"},
		"one-change":  {"rewrite": "700"},
		"list":        {"staged": "2000"},
		"point-get":   {"hot": "5000"},
		"long-commit": {"readers": "-1"},
		"objects":     {"page": "200"},
	} {
		d, err := Run(t.Context(), config(t, "mem"), []Workload{tiny(t, name, params)})
		require.ErrorIs(t, err, ErrConfig, name)
		require.Nil(t, d, name)
	}
	require.Error(t, (*numbers)(&[]int{}).Set("1,x"))
	require.Error(t, (*numbers)(&[]int{}).Set("0"))
	require.Error(t, (*positive)(new(int)).Set("-1"))
}

func TestFiguresOfAPageAreReplaced(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "README.md")
	require.NoError(t, os.WriteFile(page, []byte("above\n"+readmeBegin+"old\n"+readmeEnd+"below\n"), 0o600))
	d, err := Run(t.Context(), config(t, "mem"), []Workload{tiny(t, "merge", nil)})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, Refresh(page, d, []string{"one"}, filepath.Join(dir, "plots")))
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Regexp(t, `(?s)^above\n`+readmeBegin+`\n!\[one\]\(plots/one\.svg\)\n.*\| merge ÷ commit.*\n`+readmeEnd+`below\n$`, string(text))
	require.NotContains(t, string(text), "old")
	require.NoError(t, os.WriteFile(page, []byte("no markers\n"), 0o600))
	require.ErrorContains(t, Refresh(page, d, nil, dir), "not there")
}
