// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// longCommit is the workload that decides whether a store is usable: many entries are staged, and committed while writers go on
// staging on the same branch.
type longCommit struct {
	Entries int           `json:"entries"`
	Writers int           `json:"writers"`
	Readers int           `json:"readers"`
	Around  time.Duration `json:"around_ns"`
	Rate    float64       `json:"rate"`
	Paced   bool          `json:"paced"`
	Share   float64       `json:"share"`
	// Percents are the shares of the frontier, in percent of the machine.
	Percents numbers `json:"percents"`

	share float64 // of the variant under way; 0: the whole machine
}

func newLongCommit(s Setting) *longCommit {
	return &longCommit{Entries: of(s, 1_000_000, 100_000, 1_000), Writers: of(s, 16, 16, 3), Around: of(s, 10*time.Second, 800*time.Millisecond, 20*time.Millisecond), Paced: true, Share: 0.25, Percents: of(s, numbers{6, 12, 25, 50, 100}, numbers{12, 25, 50, 100}, numbers{50, 100})}
}

func (w *longCommit) Flags(f *pflag.FlagSet) {
	f.Var((*positive)(&w.Entries), "entries", "entries that are staged beforehand")
	f.Var((*positive)(&w.Writers), "writers", "goroutines that stage entries all the time, before, during and after the commit")
	f.IntVar(&w.Readers, "readers", w.Readers, "goroutines that get entries of the branch all the time")
	f.DurationVar(&w.Around, "around", w.Around, "how long they do so before the commit begins, and after it has ended")
	f.Float64Var(&w.Rate, "rate", w.Rate, "writes per second, of all writers together, that are due at fixed times (0: each writer writes again as soon as it can)")
	f.BoolVar(&w.Paced, "paced", w.Paced, "do it once more, at half the rate that the writers had before the commit")
	f.Float64Var(&w.Share, "share", w.Share, "do it once more, and once more at half the rate, with a commit that takes this share of the machine (0: do not)")
	f.Var(&w.Percents, "percents", "shares of the machine, in percent, that the commit takes for the plot of what each costs writers")
}

// Variants of long-commit.
const (
	unpaced = "unpaced"
	paced   = "paced"
	shared  = "shared"
	// pacedShared is both: the load that a store is meant to run at, and a commit that knows of it.
	pacedShared = "paced and shared"
	frontier    = "frontier"
)

const (
	pointEvery = 100 * time.Millisecond
	// Phases.
	before = "before"
	during = "during"
	after  = "after"
	// Operations.
	opWrite = "write"
	opRead  = "read"
)

func (w *longCommit) run(ctx context.Context, b *bench) error {
	if w.Readers < 0 || w.Rate < 0 || !(w.Share >= 0 && w.Share <= 1) {
		return fmt.Errorf("%w: %d readers, a rate of %g, a share of %g", ErrConfig, w.Readers, w.Rate, w.Share)
	}
	b.run.Variant = unpaced
	if w.Rate > 0 {
		b.run.Variant = fmt.Sprintf("at %g/s", w.Rate)
	}
	capacity, err := w.rounds(ctx, b, w.Rate)
	if err == nil && w.Paced && w.Rate == 0 {
		b.begin(paced)
		_, err = w.rounds(ctx, b, max(capacity/2, 1))
	}
	if err == nil && w.Share > 0 {
		b.begin(shared)
		w.share = w.Share
		_, err = w.rounds(ctx, b, w.Rate)
		if err == nil && w.Paced && w.Rate == 0 {
			b.begin(pacedShared)
			_, err = w.rounds(ctx, b, max(capacity/2, 1))
		}
		w.share = 0
	}
	if err == nil && len(w.Percents) > 1 {
		b.begin(frontier)
		err = w.frontier(ctx, b)
	}
	return err
}

// frontier measures what commits of several shares cost those who write meanwhile.
func (w *longCommit) frontier(ctx context.Context, b *bench) error {
	defer func() { w.share = 0 }()
	const of = "percent of the machine"
	for _, percent := range w.Percents {
		w.share = float64(percent) / 100
		all, err := w.measure(ctx, b, w.Rate, (b.Rounds+1)/2)
		if err != nil {
			return err
		}
		write := func(figure func(result.Operation) float64) []float64 {
			return each(all, func(r commitRound) float64 { return figure(r.phases[during][opWrite]) })
		}
		b.metricAt("entries committed", percent, of, result.PerSecond, each(all, w.committed)...)
		b.metricAt("writes during", percent, of, result.PerSecond, write(func(o result.Operation) float64 { return o.PerSecond })...)
		b.metricAt("write p50 during", percent, of, result.Seconds, write(func(o result.Operation) float64 { return o.P50 })...)
		b.metricAt("write p99 during", percent, of, result.Seconds, write(func(o result.Operation) float64 { return o.P99 })...)
	}
	b.run.Phases, b.run.Series = nil, nil // of one share of many
	return nil
}

// rounds does everything several times, each in a repository of its own, and returns the median of the writes per second before
// the commit. The series of the last round is kept.
func (w *longCommit) rounds(ctx context.Context, b *bench, rate float64) (capacity float64, err error) {
	all, err := w.measure(ctx, b, rate, b.Rounds)
	if err != nil {
		return 0, err
	}
	return w.report(b, all), nil
}

func (w *longCommit) measure(ctx context.Context, b *bench, rate float64, rounds int) (all []commitRound, err error) {
	for range rounds {
		r, err := w.round(ctx, b, rate)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	b.checked("no write was lost: all %d entries of %d rounds are there with their values, and nothing else; committed, they have the root IDs of fresh trees",
		sum(each(all, func(r commitRound) int { return r.entries })), len(all))
	return all, nil
}

// committed is how many entries the commit of a round took per second.
func (w *longCommit) committed(r commitRound) float64 {
	return (float64(w.Entries) + float64(r.phases[before][opWrite].Count)) / r.commit
}

// commitRound is what one round came to.
type commitRound struct {
	staging, commit float64 // seconds
	phases          map[string]map[string]result.Operation
	retries         int64 // the most of one write
	memory          int64 // the peak from the first write of the load to the end of the commit
	entries         int   // found to be as they must be
}

func (w *longCommit) round(ctx context.Context, b *bench, rate float64) (r commitRound, err error) {
	repo, err := b.repository(ctx)
	if err != nil {
		return r, err
	}
	es := b.entries("data", w.Entries)
	if r.staging, err = timed(func() error { return b.stage(ctx, repo, mainBranch, es) }); err != nil {
		return r, err
	}
	b.memory.Mark()
	rec := measure.NewRecorder(pointEvery, before)
	retries := make([]int64, w.Writers) // the most of one write of each
	writers := startLoad(ctx, w.Writers, rate, rec, opWrite, func(ctx context.Context, worker, n int) error {
		e := b.entries(writer(worker), 0).entry(n)
		var retried int64
		err := b.store.Set(measure.CountRetries(ctx, &retried), repo, mainBranch, e.Key, *e.Value)
		retries[worker] = max(retries[worker], retried)
		return err
	})
	readers := startLoad(ctx, w.Readers, 0, rec, opRead, func(ctx context.Context, worker, n int) error {
		i := int(mix(b.Seed^uint64(worker)<<32^uint64(n)) % uint64(w.Entries))
		return b.expect(ctx, repo, string(mainBranch), es, i)
	})
	err = w.lead(ctx, b, repo, rec, &r)
	done, failed := writers.stop()
	_, failedReaders := readers.stop()
	if err = errors.Join(err, failed, failedReaders); err != nil {
		return r, err
	}
	if b.run.Phases, b.run.Series, err = rec.Finish(); err != nil {
		return r, err
	}
	r.phases, r.retries = byName(b.run.Phases), slices.Max(retries)
	if r.entries, err = b.verifyBranch(ctx, repo, joined(es.all, b.written(done))); err != nil {
		return r, err
	}
	return r, b.discard(ctx, repo)
}

// lead leads through the phases.
func (w *longCommit) lead(ctx context.Context, b *bench, repo graveler.RepositoryID, rec *measure.Recorder, r *commitRound) error {
	if err := pause(ctx, w.Around); err != nil {
		return err
	}
	rec.Begin(during)
	err := b.counting("commit, with what the others do meanwhile", func() (err error) {
		r.commit, err = timed(func() error {
			_, err := b.store.Commit(ctx, repo, mainBranch, w.commitParams())
			return err
		})
		return err
	})
	rec.Begin(after)
	r.memory = b.memory.Peak()
	if err != nil {
		return err
	}
	return pause(ctx, w.Around)
}

// commitParams are those of the long commit.
func (w *longCommit) commitParams() graveler.CommitParams {
	return graveler.CommitParams{Message: "bench", Committer: "bench", Share: w.share}
}

func byName(phases []result.Phase) map[string]map[string]result.Operation {
	all := map[string]map[string]result.Operation{}
	for _, p := range phases {
		all[p.Name] = map[string]result.Operation{}
		for _, o := range p.Operations {
			all[p.Name][o.Name] = o
		}
	}
	return all
}

// each collects a figure of all rounds.
func each[T, F any](rounds []T, figure func(T) F) []F {
	var all []F
	for _, r := range rounds {
		all = append(all, figure(r))
	}
	return all
}

func (w *longCommit) report(b *bench, rounds []commitRound) (capacity float64) {
	b.metric("bulk staging", result.PerSecond, each(rounds, func(r commitRound) float64 { return float64(w.Entries) / r.staging })...)
	b.metric("commit", result.Seconds, each(rounds, func(r commitRound) float64 { return r.commit })...)
	b.metric("entries committed", result.PerSecond, each(rounds, w.committed)...)
	of := func(phase, op string, figure func(result.Operation) float64) []float64 {
		return each(rounds, func(r commitRound) float64 { return figure(r.phases[phase][op]) })
	}
	rate := func(o result.Operation) float64 { return o.PerSecond }
	latency := func(figure func(result.Operation) float64) func(result.Operation) float64 {
		return func(o result.Operation) float64 {
			if o.Count == 0 {
				return math.NaN()
			}
			return figure(o)
		}
	}
	p50 := latency(func(o result.Operation) float64 { return o.P50 })
	p99 := latency(func(o result.Operation) float64 { return o.P99 })
	longest := latency(func(o result.Operation) float64 { return o.Max })
	for _, op := range []string{opWrite, opRead} {
		if op == opRead && w.Readers == 0 {
			continue
		}
		for _, phase := range []string{before, during, after} {
			b.metric(op+"s "+phase, result.PerSecond, of(phase, op, rate)...)
		}
		for _, phase := range []string{before, during, after} {
			b.metric(op+" p50 "+phase, result.Seconds, of(phase, op, p50)...)
			b.metric(op+" p99 "+phase, result.Seconds, of(phase, op, p99)...)
			b.metric(op+" longest "+phase, result.Seconds, of(phase, op, longest)...)
		}
		b.metric(op+"s during ÷ before", result.Speed, result.Ratio(of(during, op, rate), of(before, op, rate))...)
		b.metric(op+" p99 during ÷ before", result.Slowdown, result.Ratio(of(during, op, p99), of(before, op, p99))...)
	}
	b.metric("most retries of one write", result.Count, each(rounds, func(r commitRound) float64 { return float64(r.retries) })...)
	b.metric("memory of writers and commit", result.Bytes, each(rounds, func(r commitRound) float64 { return float64(r.memory) })...)
	return result.Median(of(before, opWrite, rate))
}
