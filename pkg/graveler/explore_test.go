// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
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

// step is one operation of a program, on the branch "dev".
type step struct {
	do   string
	key  string
	text string
}

func (s step) String() string { return strings.TrimSpace(s.do + " " + s.key + " " + s.text) }

// program is a list of steps for each actor. Actors with even numbers belong to one process, the others to another.
type program [][]step

// event is a step that was taken, for the checker.
type event struct {
	step
	actor       int
	began, done int // in calls of the engine; done is forever where the outcome is unknown
	unknown     bool
	err         error
	value       string          // of a get
	view        string          // of a list, and of what a commit committed
	views       map[string]bool // for "nothing to commit": what the head was meanwhile
	overlapped  []string        // the keys that others were writing meanwhile
	movedAway   bool            // of a commit: what it sealed may have been reset away after a transaction had put it elsewhere
	commit      graveler.CommitID
}

const forever = 1 << 40

// exploration is one run of a program.
type exploration struct {
	t         *testing.T
	costly    bool
	apart     bool                   // what is published is written one record after the other
	plant     func(*graveler.Config) // puts a fault into the processes; nil: none
	scheduler *explore.Scheduler
	store     *explore.Store
	trees     *memtrees.Store
	processes [2]*graveler.Graveler
	base      graveler.CommitID
	heads     []headChange

	mu     sync.Mutex
	events []*event
}

type headChange struct {
	clock int
	head  graveler.CommitID
	move  int64
	live  bool
}

// runProgram runs a program once and returns what is wrong with the outcome, "" if nothing is.
func runProgram(t *testing.T, p program, costly bool, c explore.Chooser, faults int, fates ...explore.Fate) (problem string) {
	return runPlanted(t, nil, p, costly, c, faults, fates...)
}

// runPlanted is runProgram with a fault in the processes.
func runPlanted(t *testing.T, plant func(*graveler.Config), p program, costly bool, c explore.Chooser, faults int, fates ...explore.Fate) (problem string) {
	synctest.Test(t, func(t *testing.T) {
		x := &exploration{t: t, costly: costly, plant: plant, scheduler: explore.NewScheduler(c, faults, fates...)}
		// An engine with costly fences is one that is likely to write record by record. Of the others, half of the random programs meet each kind.
		x.apart = costly || len(slices.Concat(p...))%2 == 1
		x.setUp()
		for i, steps := range p {
			x.scheduler.Go(i%2, func(ctx context.Context) { x.act(ctx, i, steps) })
		}
		err := x.scheduler.Schedule()
		if err == nil {
			err = x.check(context.Background())
		}
		if err != nil {
			problem = fmt.Sprintf("%v\nprogram: %v, costly fences: %v\n%s\n%s", err, p, costly, strings.Join(x.scheduler.Trace(), "\n"), x.history())
		}
	})
	return problem
}

func (x *exploration) setUp() {
	ctx := context.Background()
	url := "mem:"
	if x.costly {
		url = costlyFences
	}
	inner, err := kv.Open(ctx, url, kv.Engines{"mem": mem.Open}, kv.OpenOptions{})
	x.must(err)
	x.store = explore.NewStore(inner, x.scheduler)
	x.store.Apart = x.apart
	x.trees = memtrees.New()
	for i := range x.processes {
		x.processes[i] = x.open(x.plant)
	}
	g := x.open(nil)
	_, err = g.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	x.must(err)
	x.must(g.Set(ctx, "lake", "main", key("b"), value("0")))
	res, err := g.Commit(ctx, "lake", "main", graveler.CommitParams{})
	x.must(err)
	x.base = res.Commit.ID
	_, err = g.CreateBranch(ctx, "lake", "src", "main")
	x.must(err)
	x.must(g.Set(ctx, "lake", "src", key("a"), value("src")))
	_, err = g.Commit(ctx, "lake", "src", graveler.CommitParams{})
	x.must(err)
	time.Sleep(time.Second) // of the bubble's clock: clean-up is of what is older
	x.store.OnWrite = x.noteHead
	_, err = g.CreateBranch(ctx, "lake", "dev", "main")
	x.must(err)
	_, err = g.Maintain(ctx)
	x.must(err)
	for _, g := range x.processes { // their caches are warm
		_, err := g.Get(ctx, "lake", "dev", key("b"))
		x.must(err)
	}
}

func (x *exploration) must(err error) {
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *exploration) open(plant func(*graveler.Config)) *graveler.Graveler {
	c := graveler.Config{Refs: ref.New(x.store), Staging: staging.New(x.store), Trees: x.trees, Grace: time.Nanosecond}
	if plant != nil {
		plant(&c)
	}
	g, err := graveler.New(c)
	x.must(err)
	return g
}

// noteHead keeps the states that the record of "dev" goes through.
func (x *exploration) noteHead(clock int, _, key, stored []byte) {
	if string(key) != "branches/dev" || stored == nil {
		return
	}
	var b refpb.BranchData
	x.must(proto.Unmarshal(stored, &b))
	x.heads = append(x.heads, headChange{
		clock: clock, head: graveler.CommitID(b.GetHead()), move: b.GetLastMove().GetTime(), live: b.GetState() == refpb.BranchState_BRANCH_STATE_LIVE,
	})
}

func (x *exploration) act(ctx context.Context, actor int, steps []step) {
	g := x.processes[actor%2]
	for _, s := range steps {
		if x.scheduler.Crashed(actor % 2) {
			return
		}
		e := &event{step: s, actor: actor, began: 2*x.scheduler.Now() + 1}
		x.mu.Lock()
		x.events = append(x.events, e)
		x.mu.Unlock()
		e.err = take(context.WithValue(ctx, doing{}, s.do), g, "lake", e)
		e.done = 2 * x.scheduler.Now()
		if errors.Is(e.err, explore.ErrInjected) || errors.Is(e.err, explore.ErrCrashed) || errors.Is(e.err, context.Canceled) {
			e.unknown, e.done = true, forever
		}
		if x.costly && (s.do == "set" || s.do == "delete") && errors.Is(e.err, graveler.ErrBranchNotFound) {
			e.unknown = true // it may have been seen before the branch went, which it only notices afterwards
		}
	}
}

// doing is the key of a context's value that names the step it is for.
type doing struct{}

// take performs a step and fills in what it returned.
func take(ctx context.Context, g *graveler.Graveler, repo graveler.RepositoryID, e *event) error {
	k := key(e.key)
	switch e.do {
	case "set":
		return g.Set(ctx, repo, "dev", k, value(e.text))
	case "delete":
		return g.Delete(ctx, repo, "dev", k)
	case "set-if-absent":
		return g.SetIfAbsent(ctx, repo, "dev", k, value(e.text))
	case "set-if":
		return g.SetIf(ctx, repo, "dev", k, value(e.text), value("0").Identity)
	case "delete-prefix":
		return g.DeletePrefix(ctx, repo, "dev", k)
	case "change-tree":
		return toggle(ctx, g, repo, "dev", e.step)
	case "get":
		v, err := g.Get(ctx, repo, "dev", k)
		if err == nil {
			e.value = string(v.Data)
		}
		return err
	case "list":
		view, err := listed(ctx, g, repo, "dev")
		e.view = view
		return err
	case "commit", "commit-empty":
		res, err := g.Commit(ctx, repo, "dev", graveler.CommitParams{Message: e.String(), AllowEmpty: e.do == "commit-empty"})
		e.commit = res.Commit.ID
		return err
	case "commit-part":
		res, err := g.Commit(ctx, repo, "dev", graveler.CommitParams{Message: e.String(), Prefixes: []graveler.Key{k}})
		e.commit = res.Commit.ID
		return err
	case "merge", "merge-dirty":
		_, err := g.Merge(ctx, repo, "src", "dev", graveler.MergeParams{Strategy: graveler.SourceWins, AllowDirty: e.do == "merge-dirty"})
		return err
	case "reset", "reset-dirty":
		_, err := g.Reset(ctx, repo, "dev", "main", graveler.ResetParams{AllowDirty: e.do == "reset-dirty"})
		return err
	case "reset-prefix":
		return g.ResetStaged(ctx, repo, "dev", k)
	case "reset-key":
		return g.ResetStagedKey(ctx, repo, "dev", k)
	case "compact":
		return g.Compact(ctx, repo, "dev")
	case "maintain":
		_, err := g.Maintain(ctx)
		return err
	case "delete-branch":
		return g.DeleteBranch(ctx, repo, "dev", true)
	case "create-branch":
		_, err := g.CreateBranch(ctx, repo, "dev", "main")
		return err
	}
	return transact(ctx, g, repo, e)
}

// listed returns all entries of a ref, as the checker's states are written.
func listed(ctx context.Context, g *graveler.Graveler, repo graveler.RepositoryID, ref string) (string, error) {
	var lines []string
	for l, err := range g.List(ctx, repo, ref, graveler.ListOptions{}) {
		if err != nil {
			return "", err
		}
		lines = append(lines, string(l.Key)+"="+string(l.Value.Data))
	}
	slices.Sort(lines)
	return strings.Join(lines, " "), nil
}

// check compares what happened with what may happen, and what is left with what may be left.
func (x *exploration) check(ctx context.Context) error {
	g := x.open(nil)
	for _, e := range x.events {
		if err := x.complete(ctx, g, e); err != nil {
			return err
		}
	}
	if err := x.checkLog(ctx, g); err != nil {
		return err
	}
	last := &event{step: step{do: "list"}, actor: -1, began: 2*x.scheduler.Now() + 1, done: 2*x.scheduler.Now() + 2}
	last.view, last.err = listed(ctx, g, "lake", "dev")
	x.events = append(x.events, last)
	if result := porcupine.CheckOperationsTimeout(branchSpec, x.operations(), 10*time.Second); result != porcupine.Ok {
		return fmt.Errorf("no order of the steps explains what they returned (%s)", result)
	}
	return x.checkLeftovers(ctx, g, last.view, last.err == nil)
}

// complete adds to an event what the checker must know beyond what the call returned.
func (x *exploration) complete(ctx context.Context, g *graveler.Graveler, e *event) (err error) {
	e.overlapped = x.overlapped(e)
	if !strings.HasPrefix(e.do, "commit") {
		return nil
	}
	if e.unknown { // whether it took place shows in the heads that the branch has had
		for _, h := range x.heads {
			c, err := g.ResolveRef(ctx, "lake", string(h.head))
			if err != nil {
				return err
			}
			if c.Message == e.String() {
				e.unknown, e.err, e.commit = false, nil, c.ID
			}
		}
		if e.unknown {
			return nil
		}
	}
	if e.err == nil {
		e.view, err = listed(ctx, g, "lake", string(e.commit))
		return err
	}
	if errors.Is(e.err, graveler.ErrNoChanges) {
		e.movedAway = x.during(e, "swap") && (x.during(e, "reset-prefix") || x.during(e, "reset-key"))
		e.views = map[string]bool{}
		for i, h := range x.heads {
			ended := i+1 < len(x.heads) && 2*x.heads[i+1].clock < e.began
			if ended || 2*h.clock > e.done {
				continue
			}
			view, err := listed(ctx, g, "lake", string(h.head))
			if err != nil {
				return err
			}
			e.views[view] = true
		}
	}
	return nil
}

func (e *event) overlaps(o *event) bool { return o != e && o.began <= e.done && e.began <= o.done }

// overlapped returns the keys that others may have written during an event.
func (x *exploration) overlapped(e *event) []string {
	var keys []string
	for _, k := range []string{"a", "b", "b/c"} {
		if slices.ContainsFunc(x.events, func(o *event) bool {
			return o.writes(k) && o.overlaps(e)
		}) {
			keys = append(keys, k)
		}
	}
	return keys
}

// during reports whether a step of some kind overlapped an event.
func (x *exploration) during(e *event, do string) bool {
	return slices.ContainsFunc(x.events, func(o *event) bool { return o.do == do && o.overlaps(e) })
}

// checkLog compares the branch's log with the moves that its record went through.
func (x *exploration) checkLog(ctx context.Context, g *graveler.Graveler) error {
	var moves []int64
	for m, err := range g.BranchLog(ctx, "lake", "dev", 0) {
		if errors.Is(err, graveler.ErrBranchNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.New != "" {
			if _, err := g.ResolveRef(ctx, "lake", string(m.New)); err != nil {
				return fmt.Errorf("the log names a commit: %w", err)
			}
		}
		moves = append(moves, m.Time)
	}
	var expected []int64
	for _, h := range x.heads {
		if len(expected) == 0 || expected[len(expected)-1] != h.move {
			expected = append(expected, h.move)
		}
	}
	expected = expected[len(expected)-min(len(moves), len(expected)):] // of the branch's latest life
	if !slices.Equal(expected, moves) || !slices.IsSorted(moves) {
		return fmt.Errorf("the log has moves at %v, the record had them at %v", moves, expected)
	}
	return nil
}

// checkLeftovers commits what is left and cleans up. Then nothing may be left over, nor may the branch show anything else.
func (x *exploration) checkLeftovers(ctx context.Context, g *graveler.Graveler, view string, exists bool) error {
	token := graveler.StagingToken("")
	if exists {
		if _, err := g.Commit(ctx, "lake", "dev", graveler.CommitParams{}); err != nil && !errors.Is(err, graveler.ErrNoChanges) {
			return err
		}
		for _, ref := range []string{"dev", "dev@"} {
			if now, err := listed(ctx, g, "lake", ref); err != nil || now != view {
				return fmt.Errorf("after a last commit %s shows %q instead of %q (%v)", ref, now, view, err)
			}
		}
		b, err := g.GetBranch(ctx, "lake", "dev")
		if err != nil || len(b.Items) > 0 || b.Base != "" {
			return fmt.Errorf("items left that nothing will take: %v, base %q (%v)", b.Items, b.Base, err)
		}
		token = b.Token
	}
	time.Sleep(time.Second)
	if _, err := g.Maintain(ctx); err != nil {
		return err
	}
	held, err := x.store.Partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range held {
		// Where fences are costly a write may come after its token was dropped; a grace period longer than writes take is what
		// keeps that from happening.
		if strings.Contains(p, ":") && !x.costly {
			return fmt.Errorf("partition left that nothing will drop: %s", p)
		}
	}
	for c, err := range ref.New(x.store).ScanCleanups(ctx) {
		if err != nil || c.Partition != string(token) { // which somebody meant to take off the list
			return fmt.Errorf("clean-up that is never done: %v (%v)", c, err)
		}
	}
	return nil
}

func (x *exploration) history() string {
	var b strings.Builder
	for _, e := range x.events {
		fmt.Fprintf(&b, "%d [%d, %d] %s: value %q view %q views %v err %v\n", e.actor, e.began, e.done, e.step, e.value, e.view, e.views, e.err)
	}
	return b.String()
}

// operations is the history as the checker wants it.
func (x *exploration) operations() []porcupine.Operation {
	var ops []porcupine.Operation
	for i, e := range x.events {
		add := func(client int, input any) {
			ops = append(ops, porcupine.Operation{ClientId: client, Input: input, Call: int64(e.began), Output: e, Return: int64(e.done)})
		}
		if e.unknown && strings.HasPrefix(e.do, "commit") {
			continue // it did not take place
		}
		add(i, e)
		if e.commit != "" {
			add(i+10_000, publication{e.view})
		}
		if x.costly && (e.do == "set" || e.do == "delete") && (e.err == nil || e.unknown) {
			others := x.textsOf(e.key)
			for repeated := 1; repeated <= 3; repeated++ { // under each new token
				add(i+1000*repeated, echo{e, others})
			}
		}
	}
	return ops
}

// textsOf returns what the key may ever have held.
func (x *exploration) textsOf(key string) []string {
	texts := []string{"0"}
	for _, e := range x.events {
		if e.key == key && e.text != "" {
			texts = append(texts, e.text)
		}
	}
	return texts
}

// echo is what a write that is not fenced may do besides taking place: take place again under the next token; or be seen for a
// while in a token that a commit has passed over, until the commit takes the token away and what was there before the write shows
// again. All this ends before the write is acknowledged.
type echo struct {
	of     *event
	others []string // what may have been there before
}

// nightly reports whether the long form of the tests is asked for.
func nightly() bool { return os.Getenv("MORAINE_NIGHTLY") != "" }
