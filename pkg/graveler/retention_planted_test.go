// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// forcedExpirations replaces marks whatever they have become.
type forcedExpirations struct{ graveler.Refs }

func (f forcedExpirations) PutExpiration(ctx context.Context, r *graveler.Repository, e graveler.Expiration) error {
	for {
		err := f.Refs.PutExpiration(ctx, r, e)
		if !errors.Is(err, graveler.ErrChanged) {
			return err
		}
		now, err := f.GetExpiration(ctx, r, e.Commit)
		if err != nil && !errors.Is(err, graveler.ErrNotFound) {
			return err
		}
		e.Stamp = now.Stamp
	}
}

// carelessNames finds every commit fit to be named.
type carelessNames struct{ graveler.Refs }

func (c carelessNames) GetExpiration(ctx context.Context, r *graveler.Repository, id graveler.CommitID) (graveler.Expiration, error) {
	if do, _ := ctx.Value(doing{}).(string); slices.Contains([]string{"tag", "branch", "pin", "reset", "reset-dirty", "restore", "restore-gone", "undo-move"}, do) {
		return graveler.Expiration{}, graveler.ErrNotFound
	}
	return c.Refs.GetExpiration(ctx, r, id)
}

// earlyPins looks for pins before the intent to shorten a log is announced, and not afterwards.
type earlyPins struct {
	graveler.Refs
	pins []graveler.Pin
}

func (e *earlyPins) LogBounds(ctx context.Context, r *graveler.Repository, uid string) (graveler.LogBounds, error) {
	if do, _ := ctx.Value(doing{}).(string); do == "retain" || do == "release" {
		if b, err := e.Refs.LogBounds(ctx, r, uid); err != nil || b.Intent > b.Start {
			return b, err // the second look
		}
		e.pins = nil
		for p, err := range e.Refs.ScanPins(ctx, r) {
			if err != nil {
				return graveler.LogBounds{}, err
			}
			e.pins = append(e.pins, p)
		}
	}
	return e.Refs.LogBounds(ctx, r, uid)
}

func (e *earlyPins) ScanPins(ctx context.Context, r *graveler.Repository) iter.Seq2[graveler.Pin, error] {
	if do, _ := ctx.Value(doing{}).(string); do != "retain" && do != "release" {
		return e.Refs.ScanPins(ctx, r)
	}
	return func(yield func(graveler.Pin, error) bool) {
		for _, p := range e.pins {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// noBases marks without the bases of branches.
type noBases struct{ graveler.Refs }

func (n noBases) ScanBranches(ctx context.Context, r *graveler.Repository, from graveler.BranchID) iter.Seq2[*graveler.Branch, error] {
	return func(yield func(*graveler.Branch, error) bool) {
		for b, err := range n.Refs.ScanBranches(ctx, r, from) {
			if err == nil {
				b = b.Clone()
				b.Base = ""
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

// commitsFirst reads the commits before the names.
type commitsFirst struct {
	graveler.Refs
	commits []*graveler.Commit
}

func (c *commitsFirst) ScanTags(ctx context.Context, r *graveler.Repository, from graveler.TagID) iter.Seq2[*graveler.Tag, error] {
	c.commits = nil
	for commit, err := range c.Refs.ScanCommits(ctx, r, "") {
		if err == nil {
			c.commits = append(c.commits, commit)
		}
	}
	return c.Refs.ScanTags(ctx, r, from)
}

func (c *commitsFirst) ScanCommits(ctx context.Context, r *graveler.Repository, from graveler.CommitID) iter.Seq2[*graveler.Commit, error] {
	if do, _ := ctx.Value(doing{}).(string); do != "retain" && do != "release" {
		return c.Refs.ScanCommits(ctx, r, from)
	}
	return func(yield func(*graveler.Commit, error) bool) {
		for _, commit := range c.commits {
			if !yield(commit, nil) {
				return
			}
		}
	}
}

// silentStart removes moves without recording where the log begins.
type silentStart struct{ graveler.Refs }

func (s silentStart) PutLogBounds(ctx context.Context, r *graveler.Repository, uid string, b graveler.LogBounds) error {
	if b.Start > 0 {
		return nil
	}
	return s.Refs.PutLogBounds(ctx, r, uid, b)
}

// ageless removes files whatever their age.
type ageless struct {
	graveler.Trees
	x *agedRun
}

func (a ageless) RemoveFiles(ctx context.Context, ns string, ids []string, _ time.Time) ([]string, error) {
	a.x.trees.Now = func() time.Time { return a.x.clock().Add(100 * day) }
	defer func() { a.x.trees.Now = a.x.clock }()
	return a.Trees.RemoveFiles(ctx, ns, ids, a.x.clock().Add(day))
}

func (a ageless) ListFiles(ctx context.Context, ns string) iter.Seq2[graveler.StoredFile, error] {
	return func(yield func(graveler.StoredFile, error) bool) {
		for f, err := range a.Trees.ListFiles(ctx, ns) {
			f.ModTime = time.Time{}
			if !yield(f, err) {
				return
			}
		}
	}
}

// noWatermark knows of no other clock.
type noWatermark struct{ graveler.Refs }

func (noWatermark) Watermark(context.Context) (int64, error) { return 0, nil }

// standingStill gives one process a clock that does not see the days that pass: it publishes what it built long ago.
func standingStill(x *agedRun, c *graveler.Config) {
	if x.processes[0] == nil || x.processes[1] != nil {
		return
	}
	at := x.clock()
	c.Now = func() time.Time { return at }
	c.Refs = noWatermark{c.Refs}
}

// Each part of retention's protocols is needed: without it the explorer soon finds a run that goes wrong.
func TestTheExplorerFindsPlantedFaultsOfRetention(t *testing.T) {
	refs := func(wrap func(graveler.Refs) graveler.Refs) plantedFault {
		return func(_ *agedRun, c *graveler.Config) { c.Refs = wrap(c.Refs) }
	}
	// What only one run in a thousand finds is looked for near a run that does, but for the nightly tests.
	rare := map[string]uint64{"marks replaced whatever they are": 1200, "published after days": 2340}
	for name, plant := range map[string]plantedFault{
		"marks replaced whatever they are":  refs(func(r graveler.Refs) graveler.Refs { return forcedExpirations{r} }),
		"every commit may be named":         refs(func(r graveler.Refs) graveler.Refs { return carelessNames{r} }),
		"no look for pins after the intent": refs(func(r graveler.Refs) graveler.Refs { return &earlyPins{Refs: r} }),
		"bases not marked":                  refs(func(r graveler.Refs) graveler.Refs { return noBases{r} }),
		"commits read before their names":   refs(func(r graveler.Refs) graveler.Refs { return &commitsFirst{Refs: r} }),
		"start of logs not recorded":        refs(func(r graveler.Refs) graveler.Refs { return silentStart{r} }),
		"age of files not looked at":        func(x *agedRun, c *graveler.Config) { c.Trees = ageless{c.Trees, x} },
		"published after days":              standingStill,
	} {
		t.Run(name, func(t *testing.T) {
			from := rare[name]
			if nightly() {
				from = 0
			}
			for seed := from; seed < 20_000; seed++ {
				if problem := runAged(t, plant, seed); problem != "" {
					t.Logf("found by run %d", seed+1)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}
