// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// concurrentCommits measures how commits to one branch get on with each other: of many goroutines in one process and, where the
// engine lets several processes share a store, of many processes.
type concurrentCommits struct {
	Goroutines int           `json:"goroutines"`
	Window     time.Duration `json:"window_ns"`
	Processes  int           `json:"processes"`
	Writers    int           `json:"writers"`
	Commits    int           `json:"commits"`
}

func newConcurrentCommits(s Setting) *concurrentCommits {
	return &concurrentCommits{
		Goroutines: of(s, 64, 64, 3), Window: of(s, 3*time.Second, 400*time.Millisecond, 20*time.Millisecond), Processes: of(s, 4, 4, 2), Writers: of(s, 1, 1, 2), Commits: of(s, 50, 20, 3),
	}
}

func (w *concurrentCommits) Flags(f *pflag.FlagSet) {
	f.Var((*positive)(&w.Goroutines), "goroutines", "goroutines of one process that commit, against one alone")
	f.DurationVar(&w.Window, "window", w.Window, "how long they do so in each round")
	f.Var((*positive)(&w.Processes), "processes", "processes that commit, against one alone, on PostgreSQL")
	f.Var((*positive)(&w.Writers), "writers", "goroutines of each process")
	f.Var((*positive)(&w.Commits), "commits", "commits of each goroutine of a process")
}

func (w *concurrentCommits) run(ctx context.Context, b *bench) error {
	var lone, many team
	for _, t := range []*team{&lone, &many} {
		var err error
		if t.repo, err = b.repository(ctx); err != nil {
			return err
		}
	}
	subjects := []measure.Subject{
		{Name: "one goroutine", Measure: func(ctx context.Context, _ int) (float64, error) { return lone.run(ctx, b, 1, w.Window) }},
		{Name: "many goroutines", Measure: func(ctx context.Context, _ int) (float64, error) { return many.run(ctx, b, w.Goroutines, w.Window) }},
	}
	if b.isDatabase() {
		for _, n := range []int{1, w.Processes} {
			subjects = append(subjects, measure.Subject{Name: fmt.Sprintf("%d processes", n), Measure: func(ctx context.Context, _ int) (float64, error) { return w.processes(ctx, b, n) }})
		}
	}
	samples, err := measure.Alternate(ctx, b.Rounds, subjects...)
	if err != nil {
		return err
	}
	b.metricAt("commits", 1, "goroutines", result.PerSecond, samples[0]...)
	b.metricAt("commits", w.Goroutines, "goroutines", result.PerSecond, samples[1]...)
	b.metricAt("commits ÷ those of one goroutine", w.Goroutines, "goroutines", result.Speed, result.Ratio(samples[1], samples[0])...)
	if b.isDatabase() {
		b.metricAt("commits", 1, "processes", result.PerSecond, samples[2]...)
		b.metricAt("commits", w.Processes, "processes", result.PerSecond, samples[3]...)
		b.metricAt("commits ÷ those of one process", w.Processes, "processes", result.Speed, result.Ratio(samples[3], samples[2])...)
		b.checked("all %d commits of %d processes succeeded, and have their entries, in each of %d rounds", w.Processes*w.Writers*w.Commits, w.Processes, b.Rounds)
	}
	for _, t := range []team{lone, many} {
		n, err := b.verifyBranch(ctx, t.repo, b.written(t.done))
		if err != nil {
			return err
		}
		b.checked("%d commits by %d goroutines have their entries", n, len(t.done))
	}
	return nil
}

// team is goroutines that commit to one branch.
type team struct {
	bursts
	repo graveler.RepositoryID
}

func (t *team) run(ctx context.Context, b *bench, goroutines int, window time.Duration) (float64, error) {
	return t.bursts.run(ctx, goroutines, window, func(ctx context.Context, worker, n int) error {
		return commitOwn(ctx, b.store, t.repo, worker, b.entries(writer(worker), 0).entry(n))
	})
}

// commitOwn stages an entry on main and commits it. Where others commit too, one of them may have taken the entry along already:
// then there is nothing to commit, and the head must have it.
func commitOwn(ctx context.Context, store committer, repo graveler.RepositoryID, worker int, e graveler.Entry) error {
	if err := store.Set(ctx, repo, mainBranch, e.Key, *e.Value); err != nil {
		return err
	}
	_, err := store.Commit(ctx, repo, mainBranch, graveler.CommitParams{Message: "bench", Committer: fmt.Sprintf("worker %d", worker)})
	if !errors.Is(err, graveler.ErrNoChanges) {
		return err
	}
	v, err := store.Get(ctx, repo, string(mainBranch)+"@", e.Key)
	if errors.Is(err, graveler.ErrEntryNotFound) || err == nil && !v.Same(e.Value) {
		return fmt.Errorf("%w: nothing to commit, and the head does not have %q", ErrWrong, e.Key)
	}
	return err
}

// committer is the part of a store that commitOwn needs.
type committer interface {
	Set(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, key graveler.Key, value graveler.Value) error
	Commit(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, p graveler.CommitParams) (graveler.CommitResult, error)
	Get(ctx context.Context, repo graveler.RepositoryID, ref string, key graveler.Key) (*graveler.Value, error)
}

// processes lets processes commit to the main branch of a new repository, and returns how many commits they made in a second, all together.
func (w *concurrentCommits) processes(ctx context.Context, b *bench, n int) (perSecond float64, err error) {
	repo, err := b.repository(ctx)
	if err != nil {
		return 0, err
	}
	took, err := b.startProcesses(ctx, n, order{
		Store: b.storeURL, Blocks: b.blocksURL, Repository: repo, Writers: w.Writers, Commits: w.Commits, Seed: b.Seed, ValueBytes: b.ValueBytes,
	})
	if err != nil {
		return 0, err
	}
	done := make([]int, n*w.Writers)
	for i := range done {
		done[i] = w.Commits
	}
	if _, err := b.verifyBranch(ctx, repo, b.written(done)); err != nil {
		return 0, err
	}
	return float64(sum(done)) / took, nil
}
