// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// source is a branch whose objects rules are about.
type source struct {
	*pass
	id         sourceID
	log        metalog.Source
	target     dispatch.Source
	versioning catalog.Versioning
	snapshot   *engine.Snapshot // of the repository
	retention  time.Duration    // how far back the log is relied on

	replay, scan []*engine.CompiledAction // those that lanes replay, and those that ask the objects themselves
	prefixes     walker.Prefixes          // of both
	positions    []*position
	head         cursor.Point           // the newest one when the pass began
	unfrozen     error                  // why the head is not known
	points       map[int64]cursor.Point // heads as of other times
	windows      map[window]*touched
	budgeted     map[window]*touched   // what of a window is read in this pass
	past         map[int]*walker.Tree  // the horizons of delays
	judged       *walker.Tree          // that head
	sent         bool                  // the pass has dispatched something that gone does not see
	moved        bool                  // the pass has moved the head since
	newest       *walker.Tree          // the head since; nil: it is not known
	planned      map[uint64]bool       // hashes of the entries that a dry run has named
	stepped      map[*cursor.Lane]bool // those that were given a step in this pass
	stopped      map[*cursor.Lane]bool // those that can do nothing more in this pass
	ready        bool                  // rules and head are known
	walked       bool                  // everything that is there has been looked at in this pass
	report       SourceReport
}

// findSources finds the branches that rules are about. A repository whose rules cannot be read is an error, and no other's business.
func (p *pass) findSources(ctx context.Context) {
	all := map[graveler.RepositoryID]engine.Repository{}
	for r, err := range p.Store.ListRepositories(ctx, "") {
		if err != nil {
			p.unknown = nil
			p.missed(ctx, fmt.Errorf("list repositories: %w", err))
			return
		}
		p.repositories[r.UID] = r.ID
		if p.partial() && !slices.Contains(p.Repositories, r.ID) {
			p.unknown[r.UID] = true
			continue
		}
		configuration, err := p.repository(ctx, r)
		if errors.Is(err, ErrNoConfiguration) {
			continue
		}
		if isGone(err) {
			p.unknown[r.UID] = true // what is remembered of it goes when it is gone for good
			continue
		}
		if err != nil {
			p.unknown[r.UID] = true
			p.missed(ctx, fmt.Errorf("repository %s: %w", r.ID, err))
			continue
		}
		all[r.ID] = configuration
	}
	var err error
	if p.snapshot, err = engine.Compile(all, p.calendar()); err != nil {
		p.missed(ctx, err)
	}
}

// isGone reports whether an error is that a repository is being deleted, or has been meanwhile: there is nothing to be done in it
// then, which is no error of a pass.
func isGone(err error) bool {
	return errors.Is(err, graveler.ErrRepositoryNotFound) || errors.Is(err, graveler.ErrRepositoryInDeletion)
}

// missed takes note of an error that has kept the pass from something in every shard.
func (p *pass) missed(ctx context.Context, err error) {
	for _, s := range p.shards {
		s.behind = true
	}
	p.fail(ctx, err)
}

// repository adds the sources of a repository.
func (p *pass) repository(ctx context.Context, r graveler.Repository) (engine.Repository, error) {
	c, err := p.configuration(ctx, r.ID)
	if err != nil {
		return engine.Repository{}, err
	}
	snapshot, err := engine.Compile(map[graveler.RepositoryID]engine.Repository{r.ID: c}, p.calendar())
	if err != nil {
		return engine.Repository{}, err
	}
	rules, err := p.Store.Retention(ctx, r.ID)
	if err != nil {
		return engine.Repository{}, err
	}
	branches := []graveler.BranchID{r.DefaultBranch}
	for _, b := range c.Configuration.Branches {
		if id := graveler.BranchID(b); !slices.Contains(branches, id) {
			branches = append(branches, id)
		}
	}
	var sources []*source
	for _, id := range branches {
		s := p.newSource(snapshot, c.Versioning)
		s.target = dispatch.Source{Repository: r.ID, Branch: id}
		b, err := p.Store.GetBranch(ctx, r.ID, id)
		switch {
		case errors.Is(err, graveler.ErrBranchNotFound):
			s.report.Skipped = "there is no such branch"
		case err != nil:
			return engine.Repository{}, err
		case r.ReadOnly || b.ReadOnly:
			s.report.Skipped = "the repository is read-only"
		case b.Protected&graveler.ActionMove != 0:
			s.report.Skipped = "the branch is protected against moves"
		}
		s.target.UID = b.UID
		s.report.Source = s.target
		s.id = sourceID{r.UID, b.UID}
		s.log = metalog.Source{Repository: r.ID, Branch: id, UID: b.UID}
		s.retention = p.retention(snapshot, rules, id)
		if s.report.Skipped == "" {
			// The newest head, whatever time its move has: clocks differ.
			s.head, s.unfrozen = s.point(ctx, math.MaxInt64)
		}
		sources = append(sources, s)
	}
	p.sources = append(p.sources, sources...)
	return c, nil
}

func (p *pass) newSource(snapshot *engine.Snapshot, v catalog.Versioning) *source {
	return &source{
		pass: p, snapshot: snapshot, versioning: v, points: map[int64]cursor.Point{}, windows: map[window]*touched{}, budgeted: map[window]*touched{},
		past: map[int]*walker.Tree{}, planned: map[uint64]bool{}, stepped: map[*cursor.Lane]bool{}, stopped: map[*cursor.Lane]bool{},
	}
}

// configuration reads the rules of a repository, and how its bucket keeps versions.
func (p *pass) configuration(ctx context.Context, repo graveler.RepositoryID) (engine.Repository, error) {
	c, _, err := configuration(ctx, p.Store, repo)
	if err != nil {
		return engine.Repository{}, err
	}
	versioning, err := p.buckets.Versioning(ctx, repo)
	return engine.Repository{Configuration: c, Versioning: versioning}, err
}

// retention returns how far back the log of a branch is relied on.
func (p *pass) retention(s *engine.Snapshot, rules []graveler.RetentionRule, branch graveler.BranchID) time.Duration {
	window := p.window(s)
	for _, r := range rules {
		if r.Matches(branch) {
			if r.Days > 0 {
				window = min(window, days(r.Days, lifecycle.Calendar{}))
			}
			break
		}
	}
	return window
}

// window returns how far back logs are relied on for some rules.
func (p *pass) window(s *engine.Snapshot) time.Duration {
	if p.RetentionWindow > 0 {
		return p.RetentionWindow
	}
	return days(s.MaxEffectiveTTL()+1, p.calendar())
}

// days returns the length of some days, or the greatest there is.
func days(n int, c lifecycle.Calendar) time.Duration {
	day := c.Day
	if day == 0 {
		day = 24 * time.Hour
	}
	if int64(n) > math.MaxInt64/int64(day) {
		return math.MaxInt64
	}
	return time.Duration(n) * day
}

// isLive reports whether a source may have records.
func (p *pass) isLive(id sourceID) bool {
	return p.unknown == nil || p.unknown[id.repository] || slices.ContainsFunc(p.sources, func(s *source) bool { return s.id == id })
}

// fail takes note of an error that has stopped some of a source.
func (s *source) fail(ctx context.Context, err error) {
	if err == nil {
		return
	}
	if isGone(err) {
		s.report.Skipped = "the repository has been deleted"
		return
	}
	err = fmt.Errorf("lifecycle of %s/%s: %w", s.target.Repository, s.target.Branch, err)
	s.report.Err = errors.Join(s.report.Err, err)
	s.pass.fail(ctx, err)
}

// point returns the head as of an instant. Its time is that of the move that made it the head, so that it is the same point until the next move.
func (s *source) point(ctx context.Context, at int64) (cursor.Point, error) {
	if p, ok := s.points[at]; ok {
		return p, nil
	}
	head, err := s.feed.HeadAt(ctx, s.log, at)
	if err != nil {
		return cursor.Point{}, err
	}
	p := cursor.Point{Time: head.Time, Tree: head.Tree, Commit: head.Commit}
	s.points[at] = p
	return p, nil
}

// horizon returns the head as of so many days before the frozen time, but none after through, up to which the log was read.
func (s *source) horizon(ctx context.Context, delay int, through cursor.Point) (cursor.Point, error) {
	at := max(0, lifecycle.Nanoseconds(s.calendar().Horizon(delay, s.now)))
	if at >= through.Time {
		return through, nil
	}
	return s.point(ctx, at)
}

// open returns a tree of the source.
func (s *source) open(ctx context.Context, tree graveler.MetaRangeID) (*walker.Tree, error) {
	return walker.Open(ctx, s.Store, s.target.Repository, tree, s.versioning)
}

// present returns the tree by which is judged what is due: the head that the pass found. What moves later is for the next pass,
// also where the pass itself does it, and what is dispatched is judged once more.
func (s *source) present(ctx context.Context) (*walker.Tree, error) {
	var err error
	if s.judged == nil {
		s.judged, err = s.open(ctx, s.head.Tree)
	}
	return s.judged, err
}

// gone reports whether this pass has taken an object away already, which several lanes may come to.
func (s *source) gone(ctx context.Context, o *walker.Object) (bool, error) {
	if !s.moved {
		return false, nil
	}
	if s.newest == nil {
		head, err := s.feed.HeadAt(ctx, s.log, math.MaxInt64)
		if err != nil {
			return false, err
		}
		if s.newest, err = s.open(ctx, head.Tree); err != nil {
			return false, err
		}
	}
	v, err := s.newest.Entry(o.Entry)
	return err == nil && (v == nil || !sameObject(*v, o)), err
}

// lookAnew lets gone see what the pass has dispatched so far.
func (s *source) lookAnew() error {
	if !s.sent {
		return nil
	}
	s.sent, s.moved = false, true
	return closeTree(&s.newest)
}

func closeTree(t **walker.Tree) error {
	if *t == nil {
		return nil
	}
	open := *t
	*t = nil
	return open.Close()
}

// held reports whether the branch showed an object so many days ago.
func (s *source) held(ctx context.Context, delay int, o *walker.Object) (bool, error) {
	t := s.past[delay]
	if t == nil {
		p, err := s.horizon(ctx, delay, s.head)
		if errors.Is(err, graveler.ErrLogTruncated) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if t, err = s.open(ctx, p.Tree); err != nil {
			return false, err
		}
		s.past[delay] = t
	}
	v, err := t.Entry(o.Entry)
	if err != nil || v == nil {
		return false, err
	}
	return sameObject(*v, o), nil
}

// sameObject reports whether a value that the entry of an object had was that object: the same content, and, of a version that is
// not current, displaced at the same time. One that became current meanwhile and was displaced once more is as young as that.
// What was no object was another one.
func sameObject(v graveler.Value, o *walker.Object) bool {
	if bytes.Equal(v.Identity, o.Value) {
		return true
	}
	place, err := catalog.ParseKey(o.Entry)
	if err != nil {
		return false
	}
	then, err := lifecycle.NewObject(place, v, catalog.VersioningOff)
	return err == nil && bytes.Equal(then.ContentIdentity, o.ContentIdentity) && then.NoncurrentSince.Equal(o.NoncurrentSince)
}

// close releases everything that the source holds open.
func (s *source) close() error {
	errs := []error{closeTree(&s.judged), closeTree(&s.newest)}
	for _, t := range s.past {
		errs = append(errs, t.Close())
	}
	for _, t := range s.windows {
		errs = append(errs, t.close())
	}
	clear(s.past)
	clear(s.windows)
	clear(s.budgeted)
	return errors.Join(errs...)
}
