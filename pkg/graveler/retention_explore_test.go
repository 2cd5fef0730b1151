// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/internal/explore"
	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// agedRun is one run of a program on a store with a past, of which retention takes what is older than a day while others use it and the clock jumps.
type agedRun struct {
	t         *testing.T
	scheduler *explore.Scheduler
	store     *explore.Store
	trees     *memtrees.Store
	processes [2]*graveler.Graveler
	now       atomic.Int64 // nanoseconds since the epoch; one more at each look, as no two runs begin at the same time

	publishing int                                  // writes of branch records under way
	moves      map[graveler.LogName][]graveler.Move // that took place
	commits    []graveler.CommitID                  // of the past
	named      map[graveler.CommitID]bool           // of these, those that main, side and tags name
	dev        graveler.LogName                     // the log of the branch dev
	pins       map[string]graveler.PinParams        // that somebody may rely on
	problem    string
}

// plantedFault puts a fault into what the processes use.
type plantedFault func(x *agedRun, c *graveler.Config)

var agedKinds = []string{
	"retain", "retain", "retain", "release", "release", "jump", "jump", "jump",
	"commit", "compact", "reset", "reset-dirty", "undo-move", "tag", "branch", "delete", "restore", "restore-gone", "pin", "pin-log", "unpin", "import", "merge", "get", "log",
}

// namingKinds are those that race for a commit, or for a part of a log.
var namingKinds = []string{"retain", "retain", "retain", "tag", "branch", "pin", "reset-dirty", "pin-log", "jump"}

// Retention runs beside everything else, in any order, with faults and crashes, and with hours and days between any two calls of
// the store. Whatever is kept must be there.
func TestRetentionBesideEverythingInAnyOrder(t *testing.T) {
	n := 250
	if nightly() {
		n = 100_000
	}
	sample(t, n, func(seed uint64) string { return runAged(t, nil, seed) })
}

func runAged(t *testing.T, plant plantedFault, seed uint64) (problem string) {
	random := rand.New(rand.NewPCG(seed, 3))
	synctest.Test(t, func(t *testing.T) {
		x := &agedRun{t: t, moves: map[graveler.LogName][]graveler.Move{}, named: map[graveler.CommitID]bool{}, pins: map[string]graveler.PinParams{}}
		x.scheduler = explore.NewScheduler(explore.NewDraw(seed), random.IntN(3), explore.FailBefore, explore.FailAfter, explore.CrashBefore, explore.CrashAfter)
		x.setUp(plant, random)
		var program []string
		kinds := [][]string{agedKinds, namingKinds}[random.IntN(2)]
		for i := range 2 + random.IntN(3) {
			var own []step
			for range 1 + random.IntN(3) {
				own = append(own, step{do: kinds[random.IntN(len(kinds))], key: fmt.Sprint(random.IntN(len(x.commits))), text: fmt.Sprint(13 + 12*random.IntN(2))})
			}
			program = append(program, fmt.Sprint(i, own))
			x.scheduler.Go(i%2, func(ctx context.Context) { x.act(ctx, i, own) })
		}
		err := x.scheduler.Schedule()
		if err == nil && x.problem == "" {
			err = x.check(context.Background())
		}
		if err != nil {
			x.problem = err.Error()
		}
		if x.problem != "" {
			problem = fmt.Sprintf("%s\nprogram: %v\ncommits: %v\n%s", x.problem, program, x.commits, strings.Join(x.scheduler.Trace(), "\n"))
		}
	})
	return problem
}

func (x *agedRun) clock() time.Time { return time.Unix(0, x.now.Add(1)) }

func (x *agedRun) pass(d time.Duration) { x.now.Add(int64(d)) }

func (x *agedRun) horizon(graveler.BranchID) int64 { return x.now.Load() - int64(day) }

func (x *agedRun) must(err error) {
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *agedRun) open(plant plantedFault) *graveler.Graveler {
	c := graveler.Config{Refs: ref.New(x.store), Staging: staging.New(x.store), Trees: x.trees, Grace: time.Nanosecond, Now: x.clock}
	if plant != nil {
		plant(x, &c)
	}
	c.Refs = publishingRefs{c.Refs, x}
	g, err := graveler.New(c)
	x.must(err)
	return g
}

// publishingRefs counts the writes of branch records that are under way. Between the last look at the clock and such a write
// there is nothing; that days pass just there is not explored.
type publishingRefs struct {
	graveler.Refs
	x *agedRun
}

func (p publishingRefs) PutBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch) (graveler.Stamp, error) {
	p.x.publishing++
	defer func() { p.x.publishing-- }()
	return p.Refs.PutBranch(ctx, r, b)
}

func (p publishingRefs) PublishBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	p.x.publishing++
	defer func() { p.x.publishing-- }()
	return p.Refs.PublishBranch(ctx, r, b, before)
}

// setUp makes the past, and brings retention to a point of its work that the seed picks.
func (x *agedRun) setUp(plant plantedFault, random *rand.Rand) {
	ctx := context.Background()
	x.now.Store(1_700_000_000e9)
	inner, err := kv.Open(ctx, "mem:", kv.Engines{"mem": mem.Open}, kv.OpenOptions{})
	x.must(err)
	x.store = explore.NewStore(inner, x.scheduler)
	x.store.OnWrite = x.noteMove
	x.trees = memtrees.New()
	x.trees.Now = x.clock
	g := x.open(nil)
	_, err = g.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	x.must(err)
	x.must(g.SetRetention(ctx, "lake", []graveler.RetentionRule{{Pattern: "*", Days: 1}}))
	commit := func(branch graveler.BranchID, k string) {
		x.pass(time.Hour)
		x.must(g.Set(ctx, "lake", branch, key(k), value(fmt.Sprint("v", len(x.commits)))))
		res, err := g.Commit(ctx, "lake", branch, graveler.CommitParams{})
		x.must(err)
		x.commits = append(x.commits, res.Commit.ID)
	}
	branch := func(id graveler.BranchID, from string) {
		_, err := g.CreateBranch(ctx, "lake", id, from)
		x.must(err)
	}
	commit("main", "a")
	commit("main", "a")
	branch("side", "main")
	commit("side", "s")
	commit("main", "a")
	_, err = g.CreateTag(ctx, "lake", "v1", "main")
	x.must(err)
	commit("main", "c")
	branch("dev", "main")
	commit("dev", "d")
	commit("dev", "d")
	_, err = g.Reset(ctx, "lake", "dev", "main", graveler.ResetParams{})
	x.must(err)
	branch("gone", "dev")
	commit("gone", "g")
	commit("main", "c")
	x.must(g.Set(ctx, "lake", "dev", key("u"), value("uncommitted")))
	x.must(g.Compact(ctx, "lake", "dev"))
	x.must(g.Set(ctx, "lake", "side", key("u"), value("staged")))
	b, err := g.GetBranch(ctx, "lake", "dev")
	x.must(err)
	x.dev = graveler.LogName{Branch: "dev", UID: b.UID}
	for range random.IntN(5) {
		x.pass(25 * time.Hour)
		if random.IntN(2) == 0 {
			commit([]graveler.BranchID{"main", "side"}[random.IntN(2)], "a")
		}
		_, err = g.Retain(ctx, "lake", graveler.RetainParams{})
		x.must(err)
	}
	if random.IntN(2) == 0 {
		x.must(g.DeleteBranch(ctx, "lake", "gone", true))
	}
	x.pass(time.Duration([]int{1, 13, 25}[random.IntN(3)]) * time.Hour)
	for _, ref := range []string{"main", "side", "v1"} {
		c, err := g.ResolveRef(ctx, "lake", ref)
		x.must(err)
		x.named[c.ID] = true
	}
	for i := range x.processes {
		x.processes[i] = x.open(plant)
		_, err := x.processes[i].Get(ctx, "lake", "dev", key("u")) // their caches are warm
		x.must(err)
	}
}

// noteMove keeps the moves that branch records go through.
func (x *agedRun) noteMove(_ int, _, k, stored []byte) {
	if !strings.HasPrefix(string(k), "branches/") || stored == nil {
		return
	}
	var b refpb.BranchData
	x.must(proto.Unmarshal(stored, &b))
	m := graveler.Move{
		Time: b.LastMove.Time, Previous: b.LastMove.Previous, Op: graveler.Op(b.LastMove.Op), Old: graveler.CommitID(b.LastMove.Old), New: graveler.CommitID(b.LastMove.New),
		CommittedThrough: b.LastMove.CommittedThrough, Actor: b.LastMove.Actor,
	}
	log := graveler.LogName{Branch: graveler.BranchID(b.Id), UID: b.Uid}
	if all := x.moves[log]; len(all) == 0 || all[len(all)-1] != m {
		x.moves[log] = append(all, m)
	}
}

func (x *agedRun) act(ctx context.Context, actor int, steps []step) {
	for _, s := range steps {
		if x.scheduler.Crashed(actor % 2) {
			return
		}
		err := x.take(context.WithValue(ctx, doing{}, s.do), actor, s)
		if err != nil && !expectedOfAged(err, s.do) {
			x.problem = fmt.Sprintf("%s: %v", s, err)
		}
	}
}

func expectedOfAged(err error, do string) bool {
	if errors.Is(err, graveler.ErrCorrupt) {
		return false
	}
	// Where days pass between a look at the clock and one at the watermark, the clock seems to be wrong.
	expected := []error{explore.ErrInjected, explore.ErrCrashed, graveler.ErrClockSkew}
	if do != "retain" && do != "release" {
		expected = append(expected, graveler.ErrExpired, graveler.ErrExists, graveler.ErrNotFound, graveler.ErrDirtyBranch, graveler.ErrNoChanges, graveler.ErrConflict, graveler.ErrLogTruncated)
	}
	if do == "import" {
		expected = append(expected, graveler.ErrSwept)
	}
	return slices.ContainsFunc(expected, func(e error) bool { return errors.Is(err, e) })
}

// check looks at what is left, and then lets retention do all that there is to do: what must go goes, and nothing else.
func (x *agedRun) check(ctx context.Context) error {
	g := x.open(nil)
	if err := x.checkNow(ctx, g); err != nil {
		return err
	}
	for range 7 {
		x.pass(25 * time.Hour)
		if _, err := g.Retain(ctx, "lake", graveler.RetainParams{Release: x.release(ctx, g)}); err != nil {
			return fmt.Errorf("a last run: %w", err)
		}
	}
	if err := x.checkNow(ctx, g); err != nil {
		return fmt.Errorf("in the end: %w", err)
	}
	kept, err := keptNow(ctx, g, x.moves, x.horizon, func(graveler.CommitID) bool { return true })
	if err != nil {
		return err
	}
	r, err := g.GetRepository(ctx, "lake")
	if err != nil {
		return err
	}
	return checkNothingElse(ctx, g, x.trees, r.Namespace, kept)
}

func (x *agedRun) checkNow(ctx context.Context, g *graveler.Graveler) error {
	if err := checkViewsAndLogs(ctx, g, x.moves, func(graveler.BranchID) int64 { return x.now.Load() }); err != nil {
		return err
	}
	for owner, p := range x.pins {
		for uid, from := range p.Logs {
			start, err := g.LogStart(ctx, "lake", graveler.LogName{Branch: "dev", UID: uid})
			if err != nil || start >= from {
				return fmt.Errorf("the log that %s has pinned from %d on begins at %d (%w)", owner, from, start, err)
			}
		}
		for _, id := range p.Commits {
			if _, err := listed(ctx, g, "lake", string(id)); err != nil {
				return fmt.Errorf("pin of %s: %w", owner, err)
			}
		}
	}
	kept, err := keptNow(ctx, g, x.moves, x.horizon, func(id graveler.CommitID) bool { return x.named[id] })
	if err != nil {
		return err
	}
	for id := range kept {
		if _, err := listed(ctx, g, "lake", string(id)); err != nil {
			return fmt.Errorf("commit %s is kept: %w", id, err)
		}
	}
	return nil
}
