// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// smallCommits measures commits of one change: what each costs in syncs, and how many there are in a second on one branch and on
// many at the same time.
type smallCommits struct {
	Branches int           `json:"branches"`
	Window   time.Duration `json:"window_ns"`
}

// warmUps is how many windows of commits precede the measurement.
const warmUps = 3

func newSmallCommits(s Setting) *smallCommits {
	return &smallCommits{Branches: of(s, 64, 64, 3), Window: of(s, 3*time.Second, 400*time.Millisecond, 20*time.Millisecond)}
}

func (w *smallCommits) Flags(f *pflag.FlagSet) {
	f.Var((*positive)(&w.Branches), "branches", "branches that are committed to at the same time, each by a goroutine of its own")
	f.DurationVar(&w.Window, "window", w.Window, "how long commits are made in each round")
}

func (w *smallCommits) run(ctx context.Context, b *bench) error {
	repo, err := b.repository(ctx)
	if err != nil {
		return err
	}
	branches := make([]graveler.BranchID, w.Branches)
	for i := range branches {
		branches[i] = graveler.BranchID(fmt.Sprintf("branch-%04d", i))
		if _, err := b.store.CreateBranch(ctx, repo, branches[i], string(mainBranch)); err != nil {
			return err
		}
	}
	var alone, many bursts
	commitMany := func(ctx context.Context, _ int) (float64, error) {
		return many.run(ctx, w.Branches, w.Window, func(ctx context.Context, worker, n int) error {
			return b.commitOne(ctx, repo, branches[worker], worker, n)
		})
	}
	// The first commits of a repository make its directories for files, one sync each. What is measured is a repository in use.
	for range warmUps {
		if _, err := commitMany(ctx, 0); err != nil {
			return err
		}
	}
	var perCommit, syncsEach, lone []float64
	samples, err := measure.Alternate(ctx, b.Rounds,
		measure.Subject{Name: "one branch", Measure: func(ctx context.Context, _ int) (rate float64, err error) {
			var o oneBranch
			rate, err = alone.run(ctx, 1, w.Window, func(ctx context.Context, worker, n int) error { return o.commit(ctx, b, repo, n) })
			perCommit = append(perCommit, o.took/float64(o.commits))
			syncsEach = append(syncsEach, float64(o.syncs)/float64(o.commits))
			return rate, err
		}},
		measure.Subject{Name: "many branches", Measure: commitMany},
		measure.Subject{Name: "sync rate", Measure: func(ctx context.Context, _ int) (float64, error) {
			return reference.SyncRate(ctx, b.dir, syncWindow)
		}})
	if err != nil {
		return err
	}
	for i, rate := range samples[2] {
		lone = append(lone, rate/syncsEach[i])
	}
	b.metric("commits on one branch", result.PerSecond, samples[0]...)
	b.metricAt("commits on many branches", w.Branches, "branches", result.PerSecond, samples[1]...)
	b.metricAt("many branches ÷ one", w.Branches, "branches", result.Speed, result.Ratio(samples[1], samples[0])...)
	b.metric("time in a commit", result.Seconds, perCommit...)
	b.metric("syncs per commit", result.Count, syncsEach...)
	b.reference("syncs of the disk", result.PerSecond, samples[2]...)
	b.reference("syncs of the disk ÷ syncs per commit", result.PerSecond, lone...)
	b.metric("commits ÷ (syncs of the disk ÷ syncs per commit)", result.Speed, result.Ratio(each(perCommit, func(s float64) float64 { return 1 / s }), lone)...)
	return w.check(ctx, b, repo, branches, alone.done, many.done)
}

// oneBranch adds up what commits took, without the staging of what they commit.
type oneBranch struct {
	commits int
	took    float64
	syncs   int64
}

func (o *oneBranch) commit(ctx context.Context, b *bench, repo graveler.RepositoryID, n int) error {
	e := b.entries(writer(0), 0).entry(n)
	if err := b.store.Set(ctx, repo, mainBranch, e.Key, *e.Value); err != nil {
		return err
	}
	before, err := b.syncs()
	if err != nil {
		return err
	}
	took, err := b.commitTimed(ctx, repo, mainBranch)
	if err != nil {
		return err
	}
	after, err := b.syncs()
	o.commits, o.took, o.syncs = o.commits+1, o.took+took, o.syncs+after-before
	return err
}

// commitOne stages an entry of a worker and commits it.
func (b *bench) commitOne(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, worker, n int) error {
	e := b.entries(writer(worker), 0).entry(n)
	if err := b.store.Set(ctx, repo, branch, e.Key, *e.Value); err != nil {
		return err
	}
	_, err := b.commit(ctx, repo, branch)
	return err
}

func (w *smallCommits) check(ctx context.Context, b *bench, repo graveler.RepositoryID, branches []graveler.BranchID, alone, many []int) error {
	if _, err := b.verifyBranch(ctx, repo, b.written(alone)); err != nil {
		return err
	}
	commits := 0
	for i, branch := range append([]graveler.BranchID{mainBranch}, branches...) {
		n, want := alone[0], sequence(nil)
		if i > 0 {
			n = many[i-1]
			want = b.entries(writer(i-1), n).all
			if _, err := b.verifyList(ctx, repo, string(branch), want); err != nil {
				return err
			}
		}
		if err := b.verifyLog(ctx, repo, branch, n+1); err != nil { // with that of the repository's creation
			return err
		}
		commits += n
	}
	b.checked("%d commits are in the logs of %d branches, with their entries", commits, 1+len(branches))
	return nil
}

// verifyLog counts the commits of a branch.
func (b *bench) verifyLog(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, want int) error {
	n := 0
	for _, err := range b.store.Log(ctx, repo, string(branch), graveler.LogOptions{}) {
		if err != nil {
			return err
		}
		n++
	}
	if n != want {
		return fmt.Errorf("%s/%s: %w: the log has %d commits, and %d were made", repo, branch, ErrWrong, n, want)
	}
	return nil
}
