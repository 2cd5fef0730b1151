// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moraine-store/moraine/internal/explore"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// Repositories are made, used, deleted and cleaned up in any order, with faults and crashes. Whatever is
// left must be whole, or nothing: a repository that works, or a free name and no partition.
func TestRepositoriesMadeAndDeletedInAnyOrder(t *testing.T) {
	n := 1000
	if nightly() {
		n = 300_000
	}
	sample(t, n, func(seed uint64) string { return runRepositories(t, seed) })
}

func runRepositories(t *testing.T, seed uint64) (problem string) {
	random := rand.New(rand.NewPCG(seed, 2))
	fates := []explore.Fate{explore.FailBefore, explore.FailAfter, explore.FailLate, explore.CrashBefore, explore.CrashAfter}
	synctest.Test(t, func(t *testing.T) {
		x := &exploration{t: t, scheduler: explore.NewScheduler(explore.NewDraw(seed), random.IntN(3), fates...)}
		x.setUp()
		var steps []string
		for i := range 2 + random.IntN(2) {
			var own []string
			for range 1 + random.IntN(3) {
				own = append(own, []string{"create", "create", "delete", "write", "commit", "branch", "maintain"}[random.IntN(7)])
			}
			steps = append(steps, fmt.Sprint(own))
			x.scheduler.Go(i%2, func(ctx context.Context) {
				for _, do := range own {
					if err := onPool(ctx, x.processes[i%2], do); err != nil && !expectedOfPool(err) {
						problem = fmt.Sprintf("%s: %v", do, err)
					}
				}
			})
		}
		err := x.scheduler.Schedule()
		if err == nil && problem == "" {
			err = x.checkPool(context.Background())
		}
		if err != nil {
			problem = err.Error()
		}
		if problem != "" {
			problem = fmt.Sprintf("%s\nsteps: %v\n%s", problem, steps, strings.Join(x.scheduler.Trace(), "\n"))
		}
	})
	return problem
}

func onPool(ctx context.Context, g *graveler.Graveler, do string) (err error) {
	switch do {
	case "create":
		_, err = g.CreateRepository(ctx, "pool", graveler.CreateRepositoryParams{})
	case "delete":
		err = g.DeleteRepository(ctx, "pool")
	case "write":
		err = g.Set(ctx, "pool", "main", key("a"), value("1"))
	case "commit":
		_, err = g.Commit(ctx, "pool", "main", graveler.CommitParams{AllowEmpty: true})
	case "branch":
		_, err = g.CreateBranch(ctx, "pool", "other", "main")
	case "maintain":
		_, err = g.Maintain(ctx)
	}
	return err
}

func expectedOfPool(err error) bool {
	for _, expected := range []error{
		explore.ErrInjected, explore.ErrCrashed, context.Canceled, graveler.ErrExists, graveler.ErrNotFound, graveler.ErrRepositoryInDeletion,
	} {
		if errors.Is(err, expected) {
			return true
		}
	}
	return false
}

func (x *exploration) checkPool(ctx context.Context) error {
	g := x.open(nil)
	upkeep := func() error {
		time.Sleep(time.Second)
		_, err := g.Maintain(ctx)
		return err
	}
	if err := errors.Join(upkeep(), upkeep()); err != nil {
		return err
	}
	r, err := g.GetRepository(ctx, "pool")
	if err == nil {
		for _, do := range []string{"write", "commit", "delete"} {
			if err := onPool(ctx, g, do); err != nil {
				return fmt.Errorf("the repository that is left (%v): %s: %w", r, do, err)
			}
		}
	} else if !errors.Is(err, graveler.ErrRepositoryNotFound) {
		return fmt.Errorf("neither there nor gone: %w", err)
	}
	if err := errors.Join(upkeep(), upkeep()); err != nil {
		return err
	}
	held, err := x.store.Partitions(ctx)
	for _, p := range held {
		if strings.HasPrefix(p, "pool") {
			return fmt.Errorf("left behind: %s", p)
		}
	}
	if err := onPool(ctx, g, "create"); err != nil {
		return fmt.Errorf("the name is not free: %w", err)
	}
	return err
}
