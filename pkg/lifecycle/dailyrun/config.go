// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// Store is what a pass needs of the versioned store; *graveler.Graveler has it.
type Store interface {
	catalog.Store
	metalog.Store
	walker.Store
	dispatch.Store

	GetBranch(ctx context.Context, repo graveler.RepositoryID, id graveler.BranchID) (graveler.Branch, error)
	RemoveSetting(ctx context.Context, repo graveler.RepositoryID, name, expected string) error
	Retention(ctx context.Context, repo graveler.RepositoryID) ([]graveler.RetentionRule, error)
	PutPin(ctx context.Context, repo graveler.RepositoryID, owner string, p graveler.PinParams) error
	RemovePin(ctx context.Context, repo graveler.RepositoryID, owner string) error
	EmptyTree() graveler.MetaRangeID
}

var _ Store = (*graveler.Graveler)(nil)

// Walker lists a tree by logical key. *walker.Walker does.
type Walker interface {
	// Walk yields the groups whose keys are greater than after, by key.
	Walk(ctx context.Context, repo graveler.RepositoryID, tree graveler.MetaRangeID, v catalog.Versioning, after string) iter.Seq2[*walker.Group, error]
}

// Limiter bounds how fast things are removed. *cluster.Limiter does.
type Limiter interface {
	// Wait waits until n more may be removed, and returns how long that took.
	Wait(ctx context.Context, n int) (time.Duration, error)
	// Rate returns how many may be removed per second, and how many of these at once, which is what is dispatched together; 0, 0: there is no bound.
	Rate() (perSecond float64, burst int)
}

// Holder says which shards are this process's. *cluster.Worker does, and *cluster.Turn which of them have waited for a pass.
type Holder interface {
	Shards() []int
	// Hold begins work on a shard, which ends with done; the context ends when the shard is no longer this process's. It returns
	// false where the shard is not among Shards.
	Hold(ctx context.Context, shard int) (work context.Context, done func(), ok bool)
}

// Observer is told what a pass has done.
type Observer interface {
	// Saved is called at the end of a pass, when everything has been saved. It must not keep the report's maps.
	Saved(r *Report)
}

const (
	// DefaultMaxRuntime is how long a pass may take where Config does not say.
	DefaultMaxRuntime = time.Hour

	// saving is how long it may take to save what was done, also after a pass was cut off.
	saving = 5 * time.Second

	// chunkItems and chunkBytes bound what is dispatched together.
	chunkItems = 128 << 10
	chunkBytes = 64 << 20

	// sortMemory bounds the keys of a source that are sorted in memory.
	sortMemory = 16 << 20
)

// Config is what a pass needs. Store and Records are required; the zero value of all else will do.
type Config struct {
	Store Store
	// Records is where positions are kept, in partition cursor.Partition.
	Records kv.Store

	// Dispatcher carries out what is due; nil: a dispatch.Mover over Store. Either is tried three times.
	Dispatcher dispatch.Dispatcher
	// Repositories are those that the pass is about; nil is all. A pass over some of them leaves what is remembered of the others
	// as it is, and cursors too, which are about all.
	Repositories []graveler.RepositoryID
	// Shards are those that the pass works on, each in [0, lifecycle.Shards); nil is all. Passes over other shards have walks of their own.
	Shards []int
	// Holder, unless it is nil, narrows them to what this process holds. A walk is not narrowed: whoever walks a repository does
	// so for all of Shards.
	Holder Holder
	// RetentionWindow is how far back branch logs are to be relied on; 0: as far as the longest delay of any rule needs, and a
	// day. The retention rules of a repository may narrow it for a branch.
	RetentionWindow time.Duration
	// Walker lists trees; nil: nothing is walked but where a lane starts cold.
	Walker Walker
	// WalkerInterval is how long after a walk the next one is due; 0: with each pass.
	WalkerInterval time.Duration
	// Limiter is waited for before anything is dispatched; nil: there is no limit.
	Limiter Limiter
	// Day and DayBoundary are the calendar; see lifecycle.Calendar.
	Day         time.Duration
	DayBoundary lifecycle.Boundary
	// MaxRuntime ends the pass, with what was done saved; 0: DefaultMaxRuntime. A pass that reaches it has not failed.
	MaxRuntime time.Duration
	// EventBudget bounds how many changes of a branch, how many candidates of each of its lanes, and how many keys of a walk over
	// it, a pass reads; 0: there is no bound. A move is never read in part.
	EventBudget int
	// DryRun makes a pass that changes nothing: it is told each removal that would be made, and nothing is dispatched or saved. nil: a real pass.
	DryRun func(source dispatch.Source, item dispatch.Item)
	// Now is the clock, which a pass asks once; nil: time.Now.
	Now func() time.Time
	// Observer is told of the pass; nil: nobody is.
	Observer Observer

	chunk int // items that are dispatched together; 0: chunkItems
}

// complete checks c and fills in the defaults.
func (c *Config) complete() error {
	for _, bad := range []struct {
		is   bool
		what string
	}{
		{c.Store == nil, "no store"},
		{c.Records == nil, "no store of records"},
		{c.RetentionWindow < 0, fmt.Sprintf("a retention window of %v", c.RetentionWindow)},
		{c.WalkerInterval < 0, fmt.Sprintf("a walker interval of %v", c.WalkerInterval)},
		{c.MaxRuntime < 0, fmt.Sprintf("a runtime of at most %v", c.MaxRuntime)},
		{c.EventBudget < 0, fmt.Sprintf("a budget of %d events", c.EventBudget)},
	} {
		if bad.is {
			return fmt.Errorf("%w: lifecycle pass: %s", graveler.ErrInvalidValue, bad.what)
		}
	}
	if err := c.calendar().Validate(); err != nil {
		return fmt.Errorf("%w: lifecycle pass: %w", graveler.ErrInvalidValue, err)
	}
	if c.Shards == nil {
		for shard := range lifecycle.Shards {
			c.Shards = append(c.Shards, shard)
		}
	}
	c.Shards = slices.Sorted(slices.Values(c.Shards))
	for i, shard := range c.Shards {
		if shard < 0 || shard >= lifecycle.Shards || i > 0 && shard == c.Shards[i-1] {
			return fmt.Errorf("%w: lifecycle pass: shards %v: each is in [0,%d), once", graveler.ErrInvalidValue, c.Shards, lifecycle.Shards)
		}
	}
	if c.MaxRuntime == 0 {
		c.MaxRuntime = DefaultMaxRuntime
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.chunk == 0 {
		c.chunk = chunkItems
	}
	return nil
}

func (c *Config) calendar() lifecycle.Calendar {
	return lifecycle.Calendar{Day: c.Day, Boundary: c.DayBoundary}
}

// walkerDue reports whether a walk is due: with each pass, or if there was none yet, or when the interval has gone by; and after
// one of a pass whose clock was ahead, which says nothing of what is due now.
func walkerDue(last, now time.Time, interval time.Duration) bool {
	return interval == 0 || last.IsZero() || last.After(now) || now.Sub(last) >= interval
}
