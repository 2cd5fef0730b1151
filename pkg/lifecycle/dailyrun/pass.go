// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
)

// Run makes one pass and returns what it did, also with an error. What is wrong with one source, lane, shard or walk keeps no
// other from its turn; the error joins all. Settings that make no sense are graveler.ErrInvalidValue, and a repository that does
// not exist graveler.ErrRepositoryNotFound, and then there is no report, and nothing is done. When ctx ends, what was done is
// saved and the error matches ctx's.
//
// Passes may run at the same time, in any processes: where they act on one shard, they do some things twice, which changes nothing.
//
// Memory is some tens of megabytes, and what a chunk of 128k removals takes. Keys of changes are sorted on disk beyond a bound. A
// pass in which nothing changed and nothing fell due reads a few records per repository and shard.
func Run(ctx context.Context, c Config) (*Report, error) {
	p, err := newPass(c)
	if err != nil {
		return nil, err
	}
	for _, repo := range c.Repositories {
		if _, err := p.Store.GetRepository(ctx, repo); err != nil {
			return nil, fmt.Errorf("lifecycle pass: %w", err)
		}
	}
	bounded, cancel := context.WithTimeout(ctx, p.MaxRuntime)
	defer cancel()
	p.run(bounded)
	if ctx.Err() != nil {
		p.errs = append(p.errs, context.Cause(ctx))
	}
	p.report.Took = time.Since(p.began)
	return p.report, errors.Join(p.errs...)
}

// newPass freezes the time.
func newPass(c Config) (*pass, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	buckets, err := catalog.New(catalog.Config{Store: c.Store})
	if err != nil {
		return nil, err
	}
	p := &pass{
		Config: c, began: time.Now(), now: c.Now().UTC(), buckets: buckets, records: cursor.New(c.Records), feed: metalog.New(c.Store), dispatcher: c.Dispatcher,
		unknown: map[string]bool{}, repositories: map[string]graveler.RepositoryID{},
	}
	if ns := lifecycle.Nanoseconds(p.now); ns < 0 || ns == math.MaxInt64 {
		return nil, fmt.Errorf("%w: lifecycle pass: a clock that shows %s", graveler.ErrInvalidValue, p.now.Format(time.RFC3339))
	}
	p.report = &Report{Now: p.now, DryRun: c.DryRun != nil, Outcomes: map[Dispatched]int{}}
	if p.dispatcher == nil {
		p.dispatcher = &dispatch.Mover{Store: c.Store, Buckets: buckets, Committer: "lifecycle", Now: c.Now}
	}
	p.dispatcher = &dispatch.Retrier{Dispatcher: p.dispatcher}
	return p, nil
}

// pass is one run.
type pass struct {
	Config
	began      time.Time
	now        time.Time
	buckets    *catalog.Catalog
	records    *cursor.Store
	feed       *metalog.Reader
	dispatcher dispatch.Dispatcher

	shards       []*shard
	byNumber     [lifecycle.Shards]*shard
	sources      []*source
	snapshot     *engine.Snapshot                 // of all repositories
	unknown      map[string]bool                  // UIDs of repositories whose sources are not known; nil: that is so of all
	stale        bool                             // there are records of sources that are gone
	repositories map[string]graveler.RepositoryID // all, by UID
	report       *Report
	errs         []error
	unsaved      bool // something could not be saved, or there was nothing to save
	lost         bool // a shard has been another process's since letGo was called
}

// partial reports whether the pass is about some repositories only.
func (p *pass) partial() bool { return p.Repositories != nil }

func (p *pass) run(ctx context.Context) {
	p.begin(ctx)
	defer func() {
		for _, s := range p.shards {
			s.done()
		}
	}()
	for _, s := range p.rotated() {
		p.letGo()
		if !p.cut(ctx) {
			s.runLanes(ctx)
		}
	}
	p.runDeferred(ctx)
	p.letGo()
	p.walk(ctx) // which may take long
	p.prune(ctx)
	p.saveCursors(ctx)
	p.report.Took = time.Since(p.began)
	for _, s := range p.sources {
		p.report.Sources = append(p.report.Sources, s.report)
	}
	if p.Observer != nil && !p.unsaved {
		p.Observer.Saved(p.report)
	}
}

// begin reads what the pass works on.
func (p *pass) begin(ctx context.Context) {
	for _, n := range p.heldShards() {
		p.hold(ctx, n)
	}
	p.findSources(ctx)
}

// rotated returns the sources, in another order each time, so that each gets its turn before any other now and then, also where
// passes are cut off and come at the same time of each day.
func (p *pass) rotated() []*source {
	sources := slices.Clone(p.sources)
	rand.New(rand.NewPCG(uint64(p.now.UnixNano()), 0)).Shuffle(len(sources), func(i, j int) { sources[i], sources[j] = sources[j], sources[i] })
	return sources
}

// cut reports whether the pass has to end.
func (p *pass) cut(ctx context.Context) bool {
	if ctx.Err() != nil || p.lostAll() {
		p.report.CutOff = true
	}
	return p.report.CutOff
}

// lostAll reports whether all shards of the pass are other processes' by now.
func (p *pass) lostAll() bool {
	return len(p.shards) > 0 && !slices.ContainsFunc(p.shards, func(s *shard) bool { return s.work.Err() == nil })
}

// errLostAll: there is nothing left that the pass may do.
var errLostAll = errors.New("all shards have been lost")

// fail takes note of an error, unless it is that the pass has to end.
func (p *pass) fail(ctx context.Context, err error) {
	ended := func(as error) bool { return errors.Is(err, as) }
	if err == nil || p.cut(ctx) && slices.ContainsFunc([]error{context.DeadlineExceeded, context.Canceled, errLostAll}, ended) && !errors.Is(err, errUnsaved) {
		return
	}
	p.errs = append(p.errs, err)
	p.report.Errors = len(p.errs)
}

// errUnsaved: what was done could not be saved. Where that took too long it is an error, though the pass had to end.
var errUnsaved = errors.New("save what was done")

func unsaved(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errUnsaved, err)
}

// saver returns the context in which what was done is saved, which does not end with the pass.
func saver(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), saving)
}

// shard is one that the pass works on.
type shard struct {
	number    int
	work      context.Context // ends when the shard is no longer this process's
	done      func()
	cursor    cursor.Cursor
	stored    cursor.Cursor // as it is in the records
	positions map[sourceID]cursor.Position
	failed    bool // nothing is done or saved
	behind    bool // something that was due has not been done
	released  bool // see letGo
	events    int
}

// sourceID names a source in records.
type sourceID struct{ repository, branch string }

// ours reports whether the shard may be worked on.
func (s *shard) ours() bool { return !s.failed && s.work.Err() == nil }

func (p *pass) heldShards() []int {
	if p.Holder == nil {
		return p.Shards
	}
	var held []int
	for _, n := range p.Holder.Shards() {
		for _, wanted := range p.Shards {
			if n == wanted {
				held = append(held, n)
			}
		}
	}
	return held
}

// hold begins work on a shard, and reads its records.
func (p *pass) hold(ctx context.Context, n int) {
	s := &shard{number: n, work: context.WithoutCancel(ctx), done: func() {}, positions: map[sourceID]cursor.Position{}}
	if p.Holder != nil {
		work, done, ok := p.Holder.Hold(s.work, n)
		if !ok {
			return
		}
		s.work, s.done = work, done
	}
	p.shards, p.byNumber[n] = append(p.shards, s), s
	var err error
	if s.cursor, _, err = p.records.Cursor(ctx, n); err == nil {
		s.cursor.Shard = n
		s.stored = s.cursor
		for position, malformed := range p.records.Positions(ctx, n) {
			if malformed != nil {
				err = malformed
				break
			}
			s.positions[sourceID{position.RepositoryUID, position.BranchUID}] = position
		}
	}
	if err != nil {
		s.failed = true
		p.fail(ctx, fmt.Errorf("shard %d: %w", n, err))
	}
}

// letGo ends the work on shards that are another process's, which may wait for them, and not only when the pass ends. It is
// called where nothing of any shard is under way.
func (p *pass) letGo() {
	for _, s := range p.shards {
		if !s.released && s.work.Err() != nil {
			s.released = true
			s.done()
		}
	}
	p.lost = false
}

// shardOf returns the shard of a key, nil where the pass does not work on it.
func (p *pass) shardOf(repo graveler.RepositoryID, key string) *shard {
	s := p.byNumber[lifecycle.ShardOf(repo, key)]
	if s == nil {
		return nil
	}
	if !s.ours() {
		p.lost = p.lost || !s.failed && !s.released
		return nil
	}
	return s
}
