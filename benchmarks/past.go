// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

const day = 24 * time.Hour

// past is a bucket in a store with a clock of its own, which stands where it is put, long before now: objects grow old without
// anybody waiting. The lifecycle rule of the bucket is about the objects below a prefix.
type past struct {
	*bench
	store *moraine.Store // in the place of the bench's
	repo  graveler.RepositoryID
	clock time.Time
}

// Prefixes of keys.
const (
	dueLater = "due"  // the rule is about them
	kept     = "kept" // it is not
)

// past makes a bucket whose objects expire after some days, with some objects that do and some that do not.
func (b *bench) past(ctx context.Context, days, expiring, keeping int) (_ *past, err error) {
	p := &past{bench: b, clock: firstDay}
	if p.store, err = b.open(ctx, 0, p.now); err != nil {
		return nil, err
	}
	err = p.store.ResetClock(ctx) // the bucket before has seen later times
	if err == nil {
		err = p.fill(ctx, days, expiring, keeping)
	}
	if err != nil {
		return nil, errors.Join(err, p.store.Close())
	}
	return p, nil
}

func (p *past) now() time.Time { return p.clock }

func (p *past) fill(ctx context.Context, days, expiring, keeping int) error {
	c, err := catalog.New(catalog.Config{Store: p.store, Now: p.now})
	if err != nil {
		return err
	}
	p.made++
	p.repo = graveler.RepositoryID(fmt.Sprintf("bench-%d", p.made))
	if err := c.CreateBucket(ctx, p.repo, catalog.CreateBucketParams{}); err != nil {
		return err
	}
	p.repositories = append(p.repositories, p.repo)
	prefix := dueLater + "/"
	rule := lifecycle.Rule{ID: "bench", Enabled: true, Filter: lifecycle.Filter{Prefix: &prefix}, Expiration: &lifecycle.Expiration{Days: &days}}
	if err := dailyrun.SetConfiguration(ctx, p.store, p.repo, lifecycle.Configuration{Rules: []lifecycle.Rule{rule}}); err != nil {
		return err
	}
	all := joined(p.objects(dueLater, expiring).all, p.objects(kept, keeping).all)
	head, err := importSorted(ctx, p.store, p.repo, all)
	if err != nil {
		return err
	}
	return p.verifyRoot(ctx, head, all)
}

// put commits entries.
func (p *past) put(ctx context.Context, entries ...graveler.Entry) error {
	for chunk := range slices.Chunk(entries, bulkEntries) {
		if err := p.store.SetMany(ctx, p.repo, mainBranch, chunk); err != nil {
			return err
		}
	}
	_, err := commit(ctx, p.store, p.repo, mainBranch)
	return err
}

// reopen opens the store anew: a process that has nothing in memory.
func (p *past) reopen(ctx context.Context) error {
	store, err := p.open(ctx, 0, p.now)
	if err != nil {
		return err
	}
	old := p.store
	p.store = store
	return old.Close()
}

// passed is what a pass came to.
type passed struct {
	calls   float64 // of the engine and of the block storage
	seconds float64
}

// pass makes a pass of a process that has nothing in memory yet, which must remove so many objects.
func (p *past) pass(ctx context.Context, remove int) (passed, error) {
	p.clock = p.clock.Add(time.Second)
	if err := p.reopen(ctx); err != nil {
		return passed{}, err
	}
	var report *dailyrun.Report
	before := p.calls()
	took, err := timed(func() (err error) {
		report, err = dailyrun.Run(ctx, dailyrun.Config{Store: p.store.Graveler, Records: p.kv, DayBoundary: lifecycle.Exact, Now: p.now})
		return err
	})
	if err != nil {
		return passed{}, err
	}
	removed := 0
	for dispatched, n := range report.Outcomes {
		removed += n
		if dispatched.Repository != p.repo || dispatched.Outcome != lifecycle.Done {
			return passed{}, fmt.Errorf("%w: a pass has %s %d objects of %s", ErrWrong, dispatched.Outcome, n, dispatched.Repository)
		}
	}
	if removed != remove || report.CutOff {
		return passed{}, fmt.Errorf("%w: a pass has removed %d objects of %s, of which %d are due", ErrWrong, removed, p.repo, remove)
	}
	return passed{float64(p.calls() - before), took}, nil
}

// moves returns how many moves lifecycle passes have made.
func (p *past) moves(ctx context.Context) (n int, err error) {
	branch, err := p.store.GetBranch(ctx, p.repo, mainBranch)
	if err != nil {
		return 0, err
	}
	for m, err := range p.store.MoveLog(ctx, p.repo, graveler.LogName{Branch: mainBranch, UID: branch.UID}, 0, math.MaxInt64) {
		if err != nil {
			return 0, err
		}
		if m.Op == graveler.OpLifecycle {
			n++
		}
	}
	return n, nil
}

// end compares what the bucket shows with what must be there, and removes it.
func (p *past) end(ctx context.Context, want ...sequence) error {
	_, err := p.verifyBranch(ctx, p.repo, joined(want...))
	if err == nil {
		err = p.discard(ctx, p.repo)
	}
	return err
}
