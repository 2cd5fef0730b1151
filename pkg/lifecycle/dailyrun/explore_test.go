// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/explore"
	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// exploration is one order in which the calls of two passes and of two users go on, with or without a fault. The rule is a day;
// all keys are of one shard.
type exploration struct {
	*testing.T
	scheduler *explore.Scheduler
	store     *explore.Store
	trees     *memtrees.Store
	keys      []string // of objects that are due: one is left alone, one overwritten, one deleted, over one an entry is staged; and one of an object that is not due
	shard     int
	now       time.Time // of the passes
	dispatch  func(*graveler.Graveler) dispatch.Dispatcher
}

const (
	leftAlone = iota
	overwritten
	deleted
	stagedOver
	young
)

// runExploration returns what is wrong with the outcome of one run, nil if nothing is. With planted, what is due is dispatched by that.
func runExploration(t *testing.T, c explore.Chooser, planted func(*graveler.Graveler) dispatch.Dispatcher, faults int) (problem error) {
	synctest.Test(t, func(t *testing.T) {
		x := &exploration{T: t, trees: memtrees.New(), dispatch: planted, shard: 3}
		x.scheduler = explore.NewScheduler(c, faults, explore.FailBefore, explore.FailAfter, explore.CrashBefore, explore.CrashAfter)
		x.store = explore.NewStore(mem.New(), x.scheduler)
		x.keys, _ = inOneShard(young + 1)
		x.setUp()
		for process := range 2 {
			g := x.open()
			x.scheduler.Go(process, func(ctx context.Context) { x.pass(ctx, g) })
		}
		users := x.open()
		x.scheduler.Go(2, func(ctx context.Context) {
			x.put(ctx, users, overwritten, "new")
			if c, err := x.catalog(users); err == nil {
				_, _ = c.Delete(ctx, in(bucket), x.keys[deleted], catalog.DeleteParams{})
			}
			_, _ = users.Commit(ctx, bucket, "main", graveler.CommitParams{Committer: "user"})
		})
		x.scheduler.Go(3, func(ctx context.Context) { x.put(ctx, users, stagedOver, "staged") })
		err := x.scheduler.Schedule()
		if err == nil {
			err = x.check()
		}
		if err != nil {
			problem = fmt.Errorf("%w\n%s", err, strings.Join(x.scheduler.Trace(), "\n"))
		}
	})
	return problem
}

func (x *exploration) open() *graveler.Graveler {
	g, err := graveler.New(graveler.Config{Refs: ref.New(x.store), Staging: staging.New(x.store), Trees: x.trees})
	require.NoError(x, err)
	return g
}

func (x *exploration) catalog(g *graveler.Graveler) (*catalog.Catalog, error) {
	return catalog.New(catalog.Config{Store: g})
}

func (x *exploration) put(ctx context.Context, g *graveler.Graveler, which int, address string) {
	c, err := x.catalog(g)
	require.NoError(x, err)
	// What a fault lets fail may have taken place, or not.
	_, _ = c.Put(ctx, in(bucket), x.keys[which], catalog.Object{PhysicalAddress: address}, catalog.Conditions{})
}

func (x *exploration) setUp() {
	ctx, g := context.Background(), x.open()
	c, err := x.catalog(g)
	require.NoError(x, err)
	require.NoError(x, c.CreateBucket(ctx, bucket, catalog.CreateBucketParams{}))
	days := 1
	require.NoError(x, dailyrun.SetConfiguration(ctx, g, bucket, lifecycle.Configuration{Rules: []lifecycle.Rule{{ID: "day", Enabled: true, Expiration: &lifecycle.Expiration{Days: &days}}}}))
	for which := range x.keys {
		if which == young {
			time.Sleep(day)
		}
		x.put(ctx, g, which, "old")
		if which >= young-1 {
			_, err := g.Commit(ctx, bucket, "main", graveler.CommitParams{Committer: "user"})
			require.NoError(x, err)
		}
	}
	time.Sleep(day / 2)
	x.now = time.Now()
}

// pass makes a pass; what it returns is of no account, since calls fail.
func (x *exploration) pass(ctx context.Context, g *graveler.Graveler) error {
	c := dailyrun.Config{Store: g, Records: x.store, Shards: []int{x.shard}, Day: day, DayBoundary: lifecycle.Exact, Now: func() time.Time { return x.now }}
	if x.dispatch != nil {
		c.Dispatcher = x.dispatch(g)
	}
	_, err := dailyrun.Run(ctx, c)
	return err
}

// check makes a pass that nobody disturbs, and looks at what passes have removed, and at what is left.
func (x *exploration) check() error {
	ctx, g := context.Background(), x.open()
	if err := x.pass(ctx, g); err != nil {
		return fmt.Errorf("the last pass: %w", err)
	}
	before := map[graveler.CommitID]map[string]string{}
	for m, err := range g.BranchLog(ctx, bucket, "main", 0) {
		if err != nil {
			return err
		}
		if before[m.New], err = x.addresses(g, string(m.New)); err != nil {
			return err
		}
		if m.Op != graveler.OpLifecycle {
			continue
		}
		for key, address := range before[m.Old] {
			if before[m.New][key] != address && (address != "old" || key == x.keys[young]) {
				return fmt.Errorf("a pass has removed %s, which is %s", key, address)
			}
		}
	}
	left, err := x.addresses(g, "main@")
	if err != nil {
		return err
	}
	for which, key := range x.keys {
		if address := left[key]; which != young && address == "old" {
			return fmt.Errorf("%s is left", key)
		}
	}
	if left[x.keys[young]] == "" {
		return errors.New("what is young has gone")
	}
	return nil
}

// addresses returns what a ref has, by key.
func (x *exploration) addresses(g *graveler.Graveler, ref string) (map[string]string, error) {
	all := map[string]string{}
	for l, err := range g.List(context.Background(), bucket, ref, graveler.ListOptions{}) {
		if err != nil {
			return nil, err
		}
		o, err := catalog.Decode(*l.Value)
		if err != nil {
			return nil, err
		}
		all[string(l.Key)] = o.PhysicalAddress
	}
	return all, nil
}

func explorations() int {
	switch {
	case os.Getenv("MORAINE_NIGHTLY") != "":
		return 20_000
	case raceDetector:
		return 200
	default:
		return 1000
	}
}

func TestPassesBesideUsersAndEachOtherRemoveNothingThatShouldStay(t *testing.T) {
	for seed := range explorations() {
		if problem := runExploration(t, explore.NewDraw(uint64(seed)), nil, seed%3); problem != nil {
			require.NoError(t, problem, "seed %d", seed)
		}
	}
}

// careless removes what the entries of items hold by now, whatever that is.
type careless struct{ *graveler.Graveler }

func (c careless) Dispatch(ctx context.Context, source dispatch.Source, batches []dispatch.Batch) ([][]dispatch.Result, error) {
	results := make([][]dispatch.Result, len(batches))
	for i, b := range batches {
		for _, item := range b.Items {
			results[i] = append(results[i], dispatch.Result{Outcome: lifecycle.Done})
			if err := c.remove(ctx, source, item.Key); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

func (c careless) remove(ctx context.Context, source dispatch.Source, key graveler.Key) error {
	p := graveler.ChangeTreeParams{CommitParams: graveler.CommitParams{Committer: "lifecycle"}, Op: graveler.OpLifecycle, UID: source.UID}
	_, err := c.ChangeTree(ctx, source.Repository, source.Branch, p, func(context.Context, *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
		return func(yield func(graveler.Entry, error) bool) { yield(graveler.Entry{Key: key}, nil) }, nil
	})
	if errors.Is(err, graveler.ErrNoChanges) {
		return nil
	}
	return err
}

func TestTheExplorerFindsADispatcherThatDoesNotLookAgain(t *testing.T) {
	var problem error
	for seed := uint64(0); problem == nil && seed < 500; seed++ {
		problem = runExploration(t, explore.NewDraw(seed), func(g *graveler.Graveler) dispatch.Dispatcher { return careless{g} }, 0)
	}
	require.ErrorContains(t, problem, "a pass has removed")
}
