// SPDX-License-Identifier: Apache-2.0

// Package cluster shares the shards of lifecycle, and the rate of its deletions, among the processes of a store.
//
// Each process has a [Worker]. It tells that it is there by a record workers/<ID> in partition [cursor.Partition], and takes its
// part of the shards by records leases/shard-NN, which are written on condition only (kv.Store.SetIf): of two that want a shard
// one gets it. Records are renewed while the worker runs. A worker that stops releases what it holds; one that dies is silent,
// and its shards move on when its leases are over.
//
// # Clocks
//
// When a lease is over is a matter of two clocks that nobody compares. So the holder counts from before it wrote the record, by
// whichever of its clocks (monotonic or not) says that more time has gone, and stops work when the lease's term has passed.
// Another worker counts from after it first saw the record as it is, by its own monotonic clock, and takes over when it has seen
// no renewal for the term: that is never earlier than the holder stops, however wrong the time of day is on either machine. Only
// for a worker that has not watched for so long, such as one that was just started, the time in the record counts: it must be
// past by more than five minutes, by which the clocks of a store's machines may differ (a process whose clock is further off
// cannot move branches).
//
// That leaves a process that is stopped in the middle and goes on later, and clocks that are further apart. Then two workers act
// on one shard, for as long as the first does not look at its context. That does no harm, since removals compare identities;
// leases only keep work from being done twice.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/rs/xid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// Why the context of a shard's work has ended ([context.Cause]).
var (
	// ErrLost: the lease was taken by another worker, or could not be renewed in time.
	ErrLost = errors.New("lease is lost")

	// ErrGivenBack: another worker waits for the shard. It gets it when the work has ended.
	ErrGivenBack = errors.New("shard is given back")

	// ErrClosed: the worker is being closed.
	ErrClosed = errors.New("worker is closed")
)

const (
	defaultLease = time.Minute
	// maxSkew is how far clocks may differ before the time in a record is misjudged; the same as package graveler allows.
	maxSkew = 5 * time.Minute
)

var namePattern = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$`)

// Config says how a worker takes part.
type Config struct {
	Store kv.Store
	// Name is what the worker's ID begins with, such as the name of the machine: at most 64 of A-Z, a-z, 0-9, '.', '_' and '-'.
	// It may be empty, and need not be unique.
	Name string
	// Shards are those that the worker would take, in any order; none is all.
	Shards []int
	// LeaseFor is how long a worker may be silent before its shards move on: by default a minute, at most an hour.
	LeaseFor time.Duration
	// RenewEvery is how often leases are renewed, and shares looked at: by default, and at most, a third of LeaseFor. A round
	// costs two scans and a write per shard.
	RenewEvery time.Duration
	// DeletesPerSecond and DeletesBurst are those of all workers together, as NewLimiter takes them.
	DeletesPerSecond float64
	DeletesBurst     int
	// Now is the time; nil is time.Now.
	Now func() time.Time
}

// Worker is the part of this process. Its methods are safe for concurrent use.
type Worker struct {
	c       Config
	id      string
	limiter *Limiter

	life    sync.Mutex // held by Start and Close
	stop    context.CancelFunc
	stopped chan struct{} // closed when the loop has ended; nil before Start

	// Of the rounds, of which there is one at a time: Start makes the first, the loop the others.
	epoch int64 // counts them
	seen  map[string]sighting
	wake  chan struct{} // asks the loop for one
	gain  chan struct{} // tells Turns that there are shards that work can begin on, and could not before

	mu      sync.Mutex // held for moments
	leases  map[int]*lease
	work    map[int]*work
	err     error // of the last round
	gained  bool  // by the round under way
	closing bool
}

// lease is a shard that this worker holds.
type lease struct {
	renewed time.Time // before the record was last written
	leaving bool      // to be released as soon as nobody works on it
}

// work is somebody who works on a shard.
type work struct {
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

// New returns a Worker, which holds nothing until it is started. Settings that make no sense are [graveler.ErrInvalidValue].
func New(c Config) (*Worker, error) {
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("%w: lifecycle worker: %w", graveler.ErrInvalidValue, err)
	}
	limiter, err := NewLimiter(c.DeletesPerSecond, c.DeletesBurst)
	if err != nil {
		return nil, err
	}
	limiter.share(0)
	id := xid.New().String()
	if c.Name != "" {
		id = c.Name + "-" + id
	}
	return &Worker{
		c: c, id: id, limiter: limiter, wake: make(chan struct{}, 1), gain: make(chan struct{}, 1), leases: map[int]*lease{}, work: map[int]*work{},
	}, nil
}

// complete checks the settings and fills in the defaults.
func (c *Config) complete() error {
	if c.Store == nil {
		return errors.New("no store")
	}
	if !namePattern.MatchString(c.Name) {
		return fmt.Errorf("name %q: at most 64 of A-Z, a-z, 0-9, '.', '_' and '-', beginning with a letter or a digit", c.Name)
	}
	c.Shards = slices.Sorted(slices.Values(c.Shards))
	if len(c.Shards) == 0 {
		for shard := range lifecycle.Shards {
			c.Shards = append(c.Shards, shard)
		}
	}
	if err := checkShards(c.Shards); err != nil {
		return err
	}
	if c.LeaseFor == 0 {
		c.LeaseFor = defaultLease
	}
	if c.RenewEvery == 0 {
		c.RenewEvery = c.LeaseFor / 3
	}
	if c.LeaseFor < 0 || c.LeaseFor > maxTerm || c.RenewEvery <= 0 || c.RenewEvery > c.LeaseFor/3 {
		return fmt.Errorf("leases for %v that are renewed every %v: at most %v, and three times as long", c.LeaseFor, c.RenewEvery, maxTerm)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// ID returns the worker's ID, which no other worker has, nor will have after a restart.
func (w *Worker) ID() string { return w.id }

// Limiter returns the limiter of everything that this worker removes: its part of the rate, in proportion to the shards that it holds.
func (w *Worker) Limiter() *Limiter { return w.limiter }

// Err returns what went wrong in the last round of renewals, or nil. A malformed record is part of it until somebody removes it;
// its shard is held by nobody.
func (w *Worker) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
