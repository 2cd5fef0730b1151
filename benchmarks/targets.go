// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"slices"

	"github.com/moraine-store/moraine/benchmarks/result"
)

// target is what a figure of a run should come to. All are for two cores and the full setting.
type target struct {
	name     string // what is promised
	workload string
	variant  string
	engines  []string // nil: all that are measured, but for mem, which is durable nowhere, and sql, which is there to compare with
	metric   string
	// at is a point of the metric, or largest: the aim is for the full setting, but every setting shows where it stands. 0: every point.
	at float64
	// atLeast or else atMost is the aim.
	atLeast, atMost float64
	// every: not the median counts but the largest sample.
	every bool
}

// largest stands for the largest point of a metric.
const largest = -1

// same is the ratio of counts that passes for equal: a few calls more or less come of how clocks and pages fall.
const same = 1.05

// noSlower is the ratio of speeds that passes for equal: less cannot be told from noise.
const noSlower = 0.95

// targets is the one list of them.
func targets() []target {
	embedded := []string{"bolt", "pebble"}
	bolt, pebble, postgres := embedded[:1], embedded[1:], []string{"postgres"}
	fsync := "commits ÷ (syncs of the disk ÷ syncs per commit)"
	return []target{
		{name: "durable set", workload: "kv", engines: bolt, metric: "set ÷ " + groupedLoop, atLeast: 0.9},
		{name: "the bare loop is a worthy reference", workload: "kv", engines: bolt, metric: groupedLoop + " ÷ " + boltBatch, at: 8, atLeast: 4},
		{name: "the bare loop is a worthy reference", workload: "kv", engines: bolt, metric: groupedLoop + " ÷ " + boltBatch, at: 64, atLeast: 2},
		{name: "durable set", workload: "kv", engines: pebble, metric: "set ÷ " + rawPebble, atLeast: 0.7},
		{name: "durable set", workload: "kv", engines: postgres, metric: "set ÷ " + oneStatement, at: 64, atLeast: 2},
		{name: "a fence costs nothing", workload: "kv", engines: postgres, metric: "fenced ÷ set", at: 64, atLeast: noSlower},

		{name: "staging", workload: "staged-writes", metric: "staged writes ÷ " + engineSet, at: 16, atLeast: 0.7},
		{name: "staging", workload: "staged-writes", metric: "staged writes ÷ " + engineSet, at: 64, atLeast: 0.7},

		{name: "no writer is held up", workload: "long-commit", variant: unpaced, metric: "most retries of one write", atMost: 2, every: true},
		{name: "no writer is held up", workload: "long-commit", variant: paced, metric: "most retries of one write", atMost: 2, every: true},
		{name: "half the load does not notice a commit", workload: "long-commit", variant: paced, metric: "write p99 during ÷ before", atMost: 2},
		{name: "no writer is held up", workload: "long-commit", variant: shared, metric: "most retries of one write", atMost: 2, every: true},
		{name: "a quarter leaves the rest", workload: "long-commit", variant: shared, engines: pebble, metric: "writes during ÷ before", atLeast: 0.8},
		{name: "a quarter leaves the most of it", workload: "long-commit", variant: shared, engines: append(bolt[:1:1], postgres...), metric: "writes during ÷ before", atLeast: 0.6},
		{name: "a quarter is not felt", workload: "long-commit", variant: shared, metric: "write p99 during ÷ before", atMost: 3},
		{name: "half the load does not notice a commit that takes a quarter", workload: "long-commit", variant: pacedShared, metric: "write p99 during ÷ before", atMost: 2},
		{name: "no writer is held up", workload: "long-commit", variant: pacedShared, metric: "most retries of one write", atMost: 2, every: true},
		{name: "and goes on", workload: "long-commit", variant: shared, metric: "entries committed", atLeast: 80_000},

		{name: "commit", workload: "commit-size", metric: "commit ÷ " + tableWriter, at: largest, atLeast: 0.9},
		{name: "memory of a commit", workload: "commit-size", metric: "memory", at: largest, atMost: 400 << 20, every: true},
		{name: "memory of a commit", workload: "commit-size", metric: "memory ÷ that of the size before", at: largest, atMost: 1.3},
		{name: "staged keys go at once", workload: "commit-size", engines: embedded, metric: "drop of the staged keys", at: largest, atMost: 1},
		{name: "and nobody pays later", workload: "commit-size", engines: embedded, metric: "next commit after the drop ÷ one before it", at: largest, atMost: 1 / noSlower},

		{name: "syncs of a small commit", workload: "small-commits", engines: embedded, metric: "syncs per commit", atMost: 8},
		{name: "small commits", workload: "small-commits", metric: fsync, atLeast: 0.6},
		{name: "small commits on many branches", workload: "small-commits", metric: "many branches ÷ one", atLeast: 5},

		{name: "size does not matter", workload: "one-change", metric: "commit ÷ that in the fewest entries", at: largest, atMost: 1.5},
		{name: "size does not matter", workload: "one-change", metric: "diff ÷ that in the fewest entries", at: largest, atMost: 1.5},
		{name: "it pays to change in place", workload: "one-change", metric: "changes in prefixes ÷ full rewrite", atLeast: 4},
		{name: "and never costs more", workload: "one-change", metric: "scattered changes ÷ full rewrite", atLeast: noSlower},

		{name: "point get", workload: "point-get", metric: "get of a commit, blocks cached ÷ raw bbolt", atMost: 4},
		{name: "point get", workload: "point-get", metric: "get of a commit, page cache only ÷ raw bbolt", atMost: 12},
		{name: "point get", workload: "point-get", metric: "get of a branch ÷ of a commit", atMost: 3},
		{name: "list", workload: "list", metric: "page of a branch ÷ of a commit", atMost: 2},

		{name: "import", workload: "import", metric: "import ÷ " + tableWriter, atLeast: 0.6},
		{name: "merge", workload: "merge", metric: "merge ÷ commit of the same changes", atMost: 3},

		{name: "processes do not hold each other up", workload: "concurrent-commits", engines: postgres, metric: "commits ÷ those of one process", atLeast: noSlower},
		{name: "nor do goroutines", workload: "concurrent-commits", metric: "commits ÷ those of one goroutine", atLeast: 0.7},

		{name: "a put is a staged write", workload: "objects", metric: "time of puts ÷ staged writes", atMost: 1.3},
		{name: "versions cost little", workload: "objects", metric: "time of versioned puts ÷ staged writes", atMost: 1.8},
		{name: "versions cost little", workload: "objects", metric: "time of versioned puts over others ÷ staged writes", atMost: 1.8},
		{name: "what a delimiter hides is not read", workload: "objects", metric: "page with delimiter ÷ plain, of a commit", atMost: 3},
		{name: "what a delimiter hides is not read", workload: "objects", metric: "page with delimiter ÷ plain, all committed", atMost: 3},
		{name: "what a delimiter hides is not read", workload: "objects", metric: "page with delimiter ÷ plain, all uncommitted", atMost: 3},
		{name: "many deletions are one write", workload: "objects", engines: postgres, metric: "deletes in one call ÷ one by one", atLeast: 10},

		{name: "nothing due costs nothing", workload: "lifecycle", metric: "calls ÷ those " + inSmallest, at: largest, atMost: same},
		{name: "nothing due costs nothing", workload: "lifecycle", metric: "calls ÷ those " + ofShortest, at: largest, atMost: same},
		{name: "a day costs what it changes", workload: "lifecycle", metric: callsPerChange, at: largest, atMost: 0.5},
		{name: "all at once", workload: "lifecycle", engines: embedded, metric: removedAtOnce, atLeast: 200_000},
		{name: "rules that accept nothing", workload: "lifecycle", metric: matching, atLeast: 3_000_000},
		{name: "walk", workload: "lifecycle", metric: "walk ÷ listing", atLeast: 0.5},
		{name: "walk", workload: "lifecycle", metric: "decoding walk ÷ decoding listing", atLeast: 0.5},
	}
}

// judge compares a document with the targets.
func judge(d *result.Document) []result.Verdict {
	var verdicts []result.Verdict
	for _, t := range targets() {
		for _, r := range d.Runs {
			if r.Workload == t.workload && r.Variant == t.variant && t.isFor(r.Engine) {
				verdicts = append(verdicts, t.judge(r)...)
			}
		}
	}
	return verdicts
}

func (t target) isFor(engine string) bool {
	if t.engines == nil {
		return engine != "mem" && engine != "sql"
	}
	return slices.Contains(t.engines, engine)
}

// judge returns one verdict per point of the metric.
func (t target) judge(r *result.Run) []result.Verdict {
	v := result.Verdict{Target: t.name, Workload: r.Title(), Engine: r.Engine, Metric: t.metric}
	if t.atLeast > 0 {
		v.AtLeast = &t.atLeast
	} else {
		v.AtMost = &t.atMost
	}
	var all []result.Verdict
	for _, m := range t.points(r) {
		one := v
		one.Metric, one.Unit, one.Measured, one.Figure, one.Min, one.Max = m.ID(), m.Unit, true, m.Median, m.Min, m.Max
		if t.every {
			one.Figure = m.Max
		}
		if t.atLeast > 0 {
			one.Met = one.Figure >= t.atLeast
		} else {
			one.Met = one.Figure <= t.atMost
		}
		all = append(all, one)
	}
	if all == nil {
		return []result.Verdict{v}
	}
	return all
}

// points are the metrics that count. Those of a run that failed do not.
func (t target) points(r *result.Run) (points []result.Metric) {
	if r.Error != "" {
		return nil
	}
	for _, m := range r.Metrics {
		switch {
		case m.Name != t.metric:
		case t.at == largest && len(points) == 1:
			points[0] = m // points come in ascending order
		case t.at <= 0 || t.at == m.At:
			points = append(points, m)
		}
	}
	return points
}
