// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// A history is a list of steps. Each step is data and means something whatever came before it, so that one that fails can be made
// shorter by leaving out steps.
type history struct {
	Day      time.Duration
	Boundary lifecycle.Boundary
	Window   time.Duration // for which the log is relied on; 0: as long as the rules need
	Steps    []step
}

// step is one thing that users, the clock or lifecycle do. What the numbers mean depends on what is done.
type step struct {
	Do         string
	Repo, On   int // a repository; a branch of it
	Key, A, B  int
	Meanwhile  []step // of a pass: what users do after it has frozen what it works on
	Blocked    []string
	CutAt      int  // of a pass: the call at which it is cut off; 0: none
	Crash      bool // of a pass that is cut off: nothing that it calls works from there on
	RetryLater bool // of a pass: what is blocked is to be tried later
	passSettings
}

// passSettings are what passes differ in: each may leave something to later ones.
type passSettings struct {
	Shards    []int         // nil: all
	Budget    int           // of events; 0: none
	Burst     int           // how many removals the rate allows at once; 0: there is no rate
	Grants    int           // how often it does, until the time limit ends the pass; 0: as often as it is asked
	WalkEvery time.Duration // where the log is too short for some rules
	Chunk     int           // of items; 0: more than there are
}

// works reports whether a pass works on a shard.
func (s passSettings) works(shard int) bool {
	return s.Shards == nil || slices.Contains(s.Shards, shard)
}

func (s step) String() string {
	text := fmt.Sprintf("%s repo=%d branch=%d key=%d a=%d b=%d", s.Do, s.Repo, s.On, s.Key, s.A, s.B)
	if s.Do == "pass" || s.Do == "finish" {
		text += fmt.Sprintf(" blocked=%v cut=%d crash=%t %+v meanwhile=%v", s.Blocked, s.CutAt, s.Crash, s.passSettings, s.Meanwhile)
	}
	return text
}

const day = time.Minute // so that clocks may go back by a few days: the store refuses one that is more than five minutes behind

var (
	repositories = []graveler.RepositoryID{"one", "two"}
	branches     = []graveler.BranchID{"main", "dev"}
	keys         = []string{"a/1", "a/2", "bk"} // in the first repository, two are of one shard
)

// chances are how often each step comes. Puts come most, so that there is something to expire; most changes are committed at once.
var chances = []struct {
	do     string
	weight int
}{
	{"put", 24}, {"delete", 6}, {"remove version", 4}, {"displace again", 4}, {"tag", 4}, {"commit", 4}, {"merge", 3}, {"reset", 5}, {"revert", 3}, {"drop branch", 1}, {"rules", 2}, {"enable", 1}, {"suspend", 1},
	{"lock", 2}, {"hold", 2}, {"upload", 2}, {"abort", 1}, {"clock", 14}, {"clock back", 1}, {"unstage", 1}, {"protect", 1}, {"pass", 16},
}

func anyStep(r *rand.Rand, passes bool) step {
	total := 0
	for _, c := range chances {
		total += c.weight
	}
	for {
		n := r.IntN(total)
		i := 0
		for n >= chances[i].weight {
			n -= chances[i].weight
			i++
		}
		s := step{Do: chances[i].do, Key: r.IntN(len(keys)+1) % len(keys), A: r.IntN(1000), B: r.IntN(1000)}
		if r.IntN(8) == 0 {
			s.Repo = 1
		}
		if r.IntN(4) == 0 {
			s.On = 1
		}
		if s.Do != "pass" {
			if passes || !strings.HasPrefix(s.Do, "clock") {
				return s
			}
			continue
		}
		if !passes {
			continue
		}
		if r.IntN(4) == 0 {
			for range 1 + r.IntN(4) {
				s.Meanwhile = append(s.Meanwhile, anyStep(r, false))
			}
		}
		if r.IntN(3) == 0 {
			s.Blocked, s.RetryLater = append(s.Blocked, keys[r.IntN(len(keys))]), r.IntN(2) == 0
		}
		if r.IntN(4) == 0 {
			s.CutAt, s.Crash = 1+r.IntN(16<<r.IntN(8)), r.IntN(2) == 0
		}
		if r.IntN(6) == 0 {
			s.Shards = r.Perm(lifecycle.Shards)[:1+r.IntN(lifecycle.Shards)]
		}
		if r.IntN(6) == 0 {
			s.Budget = 1 + r.IntN(6)
		}
		if r.IntN(6) == 0 {
			s.Burst, s.Grants = 1+r.IntN(4), r.IntN(4)
		}
		if r.IntN(3) == 0 {
			s.Chunk = 1 + r.IntN(3)
		}
		if r.IntN(3) == 0 {
			s.WalkEvery = time.Duration(1+r.IntN(3)) * day
		}
		return s
	}
}

func anyHistory(r *rand.Rand) history {
	h := history{Day: day, Boundary: lifecycle.Boundary(r.IntN(2))}
	if r.IntN(4) == 0 {
		h.Window = time.Duration(2+r.IntN(2)) * day
	}
	h.Steps = append(h.Steps, step{Do: "rules", A: r.IntN(1000), B: r.IntN(1000)}, step{Do: "drop branch"})
	if r.IntN(3) > 0 {
		h.Steps = append(h.Steps, step{Do: "enable"})
	}
	for range 20 + r.IntN(60) {
		h.Steps = append(h.Steps, anyStep(r, true))
	}
	if r.IntN(3) == 0 {
		h.Steps = append(h.Steps, anyHiding(r)...)
	}
	if h.Window == 0 && r.IntN(3) == 0 {
		h.Steps = append(h.Steps, anyFinish(r))
	}
	h.Steps = append(h.Steps, step{Do: "clock", A: 999}, step{Do: "pass"}, step{Do: "clock", A: 999}, step{Do: "pass"})
	return h
}

// anyHiding is changes that are hidden by a reset a day later, and brought back after another one, and then a pass each day,
// which something may be in the way of: chance alone seldom hides what a step stands before.
func anyHiding(r *rand.Rand) (steps []step) {
	change := func() step {
		return step{Do: []string{"put", "put", "delete", "remove version", "lock"}[r.IntN(5)], Key: r.IntN(len(keys)), A: r.IntN(1000)}
	}
	later := step{Do: "clock", A: 900 + r.IntN(100), B: 1}
	for range 2 + r.IntN(4) {
		steps = append(steps, change())
	}
	steps = append(steps, later, step{Do: "reset"}, later, step{Do: "reset"})
	blocked := keys[r.IntN(len(keys))]
	for range 3 + r.IntN(3) {
		pass := step{Do: "pass"}
		switch r.IntN(4) {
		case 0:
			pass.Budget = 1 + r.IntN(2)
		case 1, 2:
			pass.Blocked = []string{blocked}
		}
		if steps = append(steps, later); r.IntN(4) == 0 {
			steps = append(steps, step{Do: "remove version", Key: r.IntN(len(keys)), A: r.IntN(1000)})
		}
		steps = append(steps, pass)
	}
	return steps
}

// anyFinish is passes that have all the same bounds, until there is nothing to do for them: however narrow the bounds are, they
// must come to an end of what is due and not blocked.
func anyFinish(r *rand.Rand) step {
	s := step{Do: "finish"}
	if r.IntN(2) == 0 {
		s.Blocked = append(s.Blocked, keys[r.IntN(len(keys))])
	}
	if r.IntN(2) == 0 {
		s.Budget = 1 + r.IntN(3)
	}
	if r.IntN(2) == 0 {
		s.Burst, s.Grants = 1+r.IntN(2), 1+r.IntN(2)
	}
	return s
}

// world is a store with two buckets that a history happens to.
type world struct {
	history
	ctx context.Context
	// users is the store as users have it, engine as lifecycle has it: calls of that one can fail.
	users, engine *graveler.Graveler
	records       kv.Store
	catalog       *catalog.Catalog
	clock         time.Time
	latest        time.Time // that the clock has shown
	rules         map[graveler.RepositoryID]lifecycle.Configuration
	call          func() error // asked before each call of engine
	puts          int
	settings      passSettings // of the pass under way
	limiter       *grants      // of the pass under way; nil: there is none
}

func newWorld(ctx context.Context, h history) (*world, error) {
	w := &world{history: h, ctx: ctx, clock: time.Date(2030, 1, 1, 0, 0, 10, 0, time.UTC), rules: map[graveler.RepositoryID]lifecycle.Configuration{}}
	w.latest = w.clock
	store, trees := mem.New(), memtrees.New()
	now := func() time.Time { return w.clock }
	faulty := kvtest.Faulty(store, func(ctx context.Context, _ kvtest.Op, call func(context.Context) error) error {
		if w.call != nil {
			if err := w.call(); err != nil {
				return err
			}
		}
		return call(ctx)
	})
	w.records = faulty
	var err error
	if w.users, err = graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: trees, Now: now}); err != nil {
		return nil, err
	}
	if w.engine, err = graveler.New(graveler.Config{Refs: ref.New(faulty), Staging: staging.New(faulty), Trees: faultyTrees{trees, w}, Now: now}); err != nil {
		return nil, err
	}
	if w.catalog, err = catalog.New(catalog.Config{Store: w.users, Now: now}); err != nil {
		return nil, err
	}
	for _, repo := range repositories {
		if err := w.catalog.CreateBucket(ctx, repo, catalog.CreateBucketParams{}); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// faultyTrees fails as the script of the world has it.
type faultyTrees struct {
	graveler.Trees
	w *world
}

func (f faultyTrees) Get(ctx context.Context, ns string, tree graveler.MetaRangeID, key graveler.Key) (*graveler.Value, error) {
	if f.w.call != nil {
		if err := f.w.call(); err != nil {
			return nil, err
		}
	}
	return f.Trees.Get(ctx, ns, tree, key)
}

func (f faultyTrees) Apply(ctx context.Context, ns string, tree graveler.MetaRangeID, changes graveler.Iterator[graveler.Entry]) (graveler.MetaRangeID, error) {
	if f.w.call != nil {
		if err := f.w.call(); err != nil {
			return "", err
		}
	}
	return f.Trees.Apply(ctx, ns, tree, changes)
}

// do makes a step of a user or of the clock. What the store refuses is no error.
func (w *world) do(s step) error {
	repo, branch, key := repositories[s.Repo], branches[s.On], keys[s.Key]
	in := catalog.Bucket{Repository: repo, Ref: string(branch)}
	w.clock = w.clock.Add(time.Duration(1+s.A%7) * time.Millisecond)
	var err error
	switch s.Do {
	case "put":
		w.puts++
		o := catalog.Object{PhysicalAddress: fmt.Sprint("object ", w.puts), Size: int64(s.A % 4), Tags: tags(s.B)}
		_, err = w.catalog.Put(w.ctx, in, key, o, catalog.Conditions{})
	case "delete":
		_, err = w.catalog.Delete(w.ctx, in, key, catalog.DeleteParams{})
	case "remove version":
		err = w.version(in, key, s.A, func(id string) error {
			_, err := w.catalog.Delete(w.ctx, in, key, catalog.DeleteParams{VersionID: id})
			return err
		})
	case "displace again": // the version that the current one has displaced
		var current catalog.Object
		if current, err = w.catalog.Get(w.ctx, in, key, catalog.GetParams{}); err == nil {
			_, err = w.catalog.Delete(w.ctx, in, key, catalog.DeleteParams{VersionID: current.VersionID})
		}
		if err == nil && s.A%2 == 0 {
			_, err = w.users.Commit(w.ctx, repo, branch, graveler.CommitParams{Committer: "user"})
		}
		if err == nil {
			s.Do = "put"
			return w.do(s)
		}
	case "tag":
		err = w.version(in, key, s.A, func(id string) error { return w.catalog.PutTagging(w.ctx, in, key, id, tags(s.B)) })
	case "lock":
		if _, err = w.catalog.ObjectLock(w.ctx, repo); err != nil {
			err = w.catalog.SetObjectLock(w.ctx, repo, catalog.ObjectLockConfig{Enabled: true})
		}
		if err == nil {
			until := w.clock.Add(time.Duration(1+s.B%3) * day)
			err = w.version(in, key, s.A, func(id string) error {
				return w.catalog.PutRetention(w.ctx, in, key, id, catalog.Retention{Mode: catalog.LockGovernance, Until: until}, s.B%5 == 0)
			})
		}
	case "hold":
		err = w.version(in, key, s.A, func(id string) error { return w.catalog.PutLegalHold(w.ctx, in, key, id, s.B%2 == 0) })
	case "commit":
		_, err = w.users.Commit(w.ctx, repo, branch, graveler.CommitParams{Committer: "user", Message: fmt.Sprint(s.A)})
	case "merge":
		_, err = w.users.Merge(w.ctx, repo, string(branches[1-s.On]), branch, graveler.MergeParams{
			CommitParams: graveler.CommitParams{Committer: "user"}, Strategy: graveler.SourceWins, AllowDirty: true, FastForward: s.A%2 == 0,
		})
	case "reset":
		err = w.reset(repo, branch, s.A)
	case "revert":
		_, err = w.users.Revert(w.ctx, repo, branch, fmt.Sprintf("%s~%d", branch, s.A%3), graveler.PickParams{
			CommitParams: graveler.CommitParams{Committer: "user"}, Parent: 1, AllowDirty: true, Strategy: graveler.DestWins,
		})
	case "drop branch":
		if err = w.users.DeleteBranch(w.ctx, repo, branches[1], true); err == nil && s.A%2 == 0 {
			_, err = w.users.CreateBranch(w.ctx, repo, branches[1], string(branches[0])+"@")
		}
		if errors.Is(err, graveler.ErrBranchNotFound) {
			_, err = w.users.CreateBranch(w.ctx, repo, branches[1], string(branches[0])+"@")
		}
	case "rules":
		err = w.setRules(repo, anyRules(rand.New(rand.NewPCG(uint64(s.A), uint64(s.B)))))
	case "enable", "suspend":
		v := catalog.VersioningEnabled
		if s.Do == "suspend" {
			v = catalog.VersioningSuspended
		}
		err = w.catalog.SetVersioning(w.ctx, repo, v)
	case "upload", "abort":
		err = w.upload(in, key, s.A, s.Do == "abort")
	case "protect":
		err = w.users.ProtectBranches(w.ctx, repo, func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
			if s.A%3 > 0 {
				return nil, nil
			}
			return []graveler.ProtectionRule{{Pattern: string(branch), Forbid: graveler.ActionMove}}, nil
		})
	case "unstage":
		err = w.users.ResetStaged(w.ctx, repo, branch, nil)
	case "clock":
		// Mostly less than a day, now and then some days; now and then to a midnight, exactly.
		w.clock = w.clock.Add(time.Duration(s.A+1) * day / 900)
		if s.B%5 == 0 {
			w.clock = w.clock.Truncate(day).Add(day)
		}
		if s.B%11 == 0 {
			w.clock = w.clock.Add(2 * day)
		}
	case "clock back":
		w.clock = w.clock.Add(-time.Duration(s.A+1) * day / 500)
		if floor := w.latest.Add(-2 * day); w.clock.Before(floor) {
			w.clock = floor
		}
	default:
		return fmt.Errorf("unknown step %q", s.Do)
	}
	switch s.Do {
	case "put", "delete", "remove version", "tag", "lock", "hold", "upload", "abort":
		if err == nil && s.B%5 < 3 {
			_, err = w.users.Commit(w.ctx, repo, branch, graveler.CommitParams{Committer: "user"})
		}
	}
	if w.clock.After(w.latest) {
		w.latest = w.clock
	}
	return unlessRefused(err)
}

// unlessRefused returns the errors that no history should lead to.
func unlessRefused(err error) error {
	var code catalog.Code
	if errors.As(err, &code) {
		return nil
	}
	for _, refused := range []error{
		graveler.ErrNotFound, graveler.ErrNoChanges, graveler.ErrExists, graveler.ErrDirtyBranch, graveler.ErrInvalidRef, graveler.ErrInvalidValue, graveler.ErrConflict, graveler.ErrProtected,
	} {
		if errors.Is(err, refused) {
			return nil
		}
	}
	return err
}

func tags(n int) map[string]string {
	return map[string]string{"t": fmt.Sprint(n % 2)}
}

// version calls do with the ID of some version of a key, if it has any.
func (w *world) version(in catalog.Bucket, key string, n int, do func(id string) error) error {
	var ids []string
	for l, err := range w.users.List(w.ctx, in.Repository, in.Ref, graveler.ListOptions{}) {
		if err != nil {
			return err
		}
		place, err := catalog.ParseKey(l.Key)
		if err != nil {
			return err
		}
		if place.Key != key || place.Kind >= catalog.KindUpload {
			continue
		}
		o, err := catalog.Decode(*l.Value)
		if err != nil {
			return err
		}
		ids = append(ids, o.VersionID)
	}
	if len(ids) == 0 {
		return nil
	}
	id := ids[n%len(ids)]
	if id == "" {
		id = catalog.NullVersion
	}
	return do(id)
}

// reset makes some former head the head again.
func (w *world) reset(repo graveler.RepositoryID, branch graveler.BranchID, n int) error {
	var heads []graveler.CommitID
	for m, err := range w.users.BranchLog(w.ctx, repo, branch, 0) {
		if err != nil {
			return err
		}
		heads = append(heads, m.New)
	}
	slices.Reverse(heads)
	_, err := w.users.Reset(w.ctx, repo, branch, string(heads[(1+n%5)%len(heads)]), graveler.ResetParams{AllowDirty: true})
	return err
}

// upload begins a multipart upload and puts a part of it, or aborts one.
func (w *world) upload(in catalog.Bucket, key string, n int, abort bool) error {
	if !abort {
		u, err := w.catalog.CreateUpload(w.ctx, in, key, catalog.Object{})
		if err == nil {
			_, _, err = w.catalog.PutPart(w.ctx, in, key, u.UploadID, catalog.Part{Number: 1, Size: 1, Checksum: "d41d8cd98f00b204e9800998ecf8427e"})
		}
		return err
	}
	var ids []string
	for l, err := range w.users.List(w.ctx, in.Repository, in.Ref, graveler.ListOptions{}) {
		if err != nil {
			return err
		}
		if place, err := catalog.ParseKey(l.Key); err != nil {
			return err
		} else if place.Kind == catalog.KindUpload && place.Key == key {
			ids = append(ids, place.UploadID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	_, err := w.catalog.AbortUpload(w.ctx, in, key, ids[n%len(ids)])
	return err
}

func (w *world) setRules(repo graveler.RepositoryID, c lifecycle.Configuration) error {
	document, err := c.JSON()
	if err != nil {
		return err
	}
	old, err := w.users.GetSetting(w.ctx, repo, "lifecycle")
	if err != nil && !errors.Is(err, graveler.ErrSettingNotFound) {
		return err
	}
	if _, err = w.users.PutSetting(w.ctx, repo, "lifecycle", document, old.Checksum); err == nil {
		w.rules[repo] = c
	}
	return err
}

func ptr[T any](v T) *T { return &v }

// anyRules draws a configuration of two to four rules, of delays of one to three days.
func anyRules(r *rand.Rand) lifecycle.Configuration {
	var c lifecycle.Configuration
	if r.IntN(3) == 0 {
		c.Branches = []string{"dev"}
	}
	for i := range 2 + r.IntN(3) {
		rule := lifecycle.Rule{ID: fmt.Sprint("rule ", i), Enabled: r.IntN(6) != 0}
		plain := false // a filter of a prefix only
		switch r.IntN(7) {
		case 0, 1:
			rule.Expiration = &lifecycle.Expiration{Days: ptr(1 + r.IntN(3))}
		case 2:
			rule.NoncurrentVersionExpiration = &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(1 + r.IntN(3))}
		case 3:
			rule.NoncurrentVersionExpiration = &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: ptr(1 + r.IntN(2))}
			if r.IntN(2) == 0 {
				rule.NoncurrentVersionExpiration.NoncurrentDays = ptr(1 + r.IntN(3))
			}
		case 4:
			rule.Expiration, plain = &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(true)}, true
		case 5:
			rule.AbortIncompleteMultipartUpload, plain = &lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: 1 + r.IntN(3)}, true
		case 6:
			date := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
			if r.IntN(2) == 0 {
				date = date.AddDate(1, 0, 0)
			}
			rule.Expiration = &lifecycle.Expiration{Date: &date}
		}
		if r.IntN(2) == 0 {
			rule.Filter.Prefix = ptr([]string{"a/", "a/1", "b"}[r.IntN(3)])
		}
		if !plain && r.IntN(3) == 0 {
			rule.Filter.Tags = []lifecycle.Tag{{Key: "t", Value: fmt.Sprint(r.IntN(2))}}
		}
		if !plain && r.IntN(4) == 0 {
			rule.Filter.SizeGreaterThan = ptr(int64(r.IntN(3)))
		}
		c.Rules = append(c.Rules, rule)
	}
	return c
}
