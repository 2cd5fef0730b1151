// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"
)

// Config is what New wires together. Refs, Staging and Trees are required.
type Config struct {
	Refs    Refs
	Staging Staging
	Trees   Trees
	// Namespace is where repositories that name no namespace of their own keep their range files: a URL, or a path below the
	// store's block storage. It may be empty.
	Namespace string
	Hooks     Hooks
	Observer  Observer         // nil: nobody looks
	Now       func() time.Time // nil: time.Now
	// CommitShare is how much of the machine a commit, or another fold of uncommitted changes, may take beside other work, in
	// time; see CommitParams.Share. 0: all of it.
	CommitShare float64
	// Grace is how long a partition that nothing lists any more is kept before Maintain drops it, and how old a half-done
	// creation must be to be undone. It must be longer than any write can be under way. 0: 10 minutes.
	Grace time.Duration
}

// Hooks are called around moves of a branch's head, and other changes of what it shows.
type Hooks struct {
	// PreCommit is called before a head moves, by a commit, a merge, a revert, a cherry-pick, an import, a change of its tree or
	// a reset to a ref. An error refuses it (ErrRefused). Changes are those of the head. Where the branch moves meanwhile, all
	// but commits are made, and asked about, again.
	//
	// It is called once per commit, after its changes are sealed and before anything is built; also where the commit then turns
	// out to change nothing. An error refuses the commit (ErrRefused), and the changes stay uncommitted: the next commit of the
	// branch, or one that is under way in another process, takes them and is asked itself. So a hook must judge the changes.
	PreCommit func(ctx context.Context, e PreCommitEvent) error
	// Guard is asked before a branch shows something else by other means than staged writes; see Revision. Its error refuses that
	// and is returned as it is; nothing has been written then but files that nothing refers to. It is asked after PreCommit, and
	// again where the branch moves meanwhile. Every process needs the same one.
	Guard func(ctx context.Context, r *Revision) error
	// PostCommit is called once after a commit was made, by any operation that makes one. A reset and a merge that is a fast-forward make none.
	PostCommit func(ctx context.Context, repository RepositoryID, branch BranchID, c Commit)
}

// Observer is told of each operation when it ends. It must be safe for concurrent use and quick.
type Observer interface {
	// Operation gives the name of an operation (such as "stage", "get", "commit"), how long it took and what it returned.
	Operation(name string, took time.Duration, err error)
}

const (
	// maxClockSkew is how far clocks of machines may be apart; see Graveler.moveTime.
	maxClockSkew = 5 * time.Minute
	// watermarkPeriod is how often a process looks at the store's watermark, and the least by which it advances it.
	watermarkPeriod = time.Minute
	defaultGrace    = 10 * time.Minute

	// compactItems is the length of a sealed list from which Maintain compacts it, maxItems the one at which an operation that
	// would add to it compacts it first.
	compactItems = 8
	maxItems     = 64

	cachedRecords = 10_000
)

// Graveler is the versioned store. It is safe for concurrent use and starts no goroutine that outlives a call.
type Graveler struct {
	refs      Refs
	staging   Staging
	trees     Trees
	namespace string
	hooks     Hooks
	observer  Observer
	now       func() time.Time
	grace     time.Duration
	share     float64

	repositories *knownRepositories
	branches     *otter.Cache[branchKey, *Branch]   // as last read or written: a hint
	commits      *otter.Cache[commitKey, *Commit]   // immutable
	kept         *otter.Cache[commitKey, time.Time] // when a commit was found not to expire
	reads        sharedReads
	queue        queue // for compare-and-set on a branch's record
	turns        queue // for commits to a branch
	clock        watermark
}

type commitKey struct {
	partition string
	id        CommitID
}

// New returns a store over the given parts.
func New(c Config) (*Graveler, error) {
	if c.Refs == nil || c.Staging == nil || c.Trees == nil {
		return nil, errors.New("graveler: Refs, Staging and Trees are required")
	}
	if err := checkShare(c.CommitShare); err != nil {
		return nil, err
	}
	g := &Graveler{
		refs: c.Refs, staging: c.Staging, trees: c.Trees, namespace: c.Namespace,
		hooks: c.Hooks, observer: c.Observer, now: c.Now, grace: c.Grace, share: cmp.Or(c.CommitShare, 1),
		repositories: newKnownRepositories(),
		branches:     newCache[branchKey, *Branch](),
		commits:      newCache[commitKey, *Commit](),
		kept:         newCache[commitKey, time.Time](),
		reads:        sharedReads{reads: map[branchKey]*readPair{}},
		queue:        queue{slots: map[branchKey]*slot{}},
		turns:        queue{slots: map[branchKey]*slot{}},
	}
	if g.now == nil {
		g.now = time.Now
	}
	if g.grace == 0 {
		g.grace = defaultGrace
	}
	return g, nil
}

// newCache returns a cache that does its upkeep on the goroutines that use it, so that there are none to wait for.
func newCache[K comparable, V any]() *otter.Cache[K, V] {
	return otter.Must(&otter.Options[K, V]{MaximumSize: cachedRecords, Executor: func(fn func()) { fn() }})
}

// observe reports an operation; it is deferred with the address of the operation's error.
func (g *Graveler) observe(name string, start time.Time, err *error) {
	if g.observer != nil {
		g.observer.Operation(name, time.Since(start), *err)
	}
}

func newNonce() string { return uuid.NewString() }

func newToken(repo RepositoryID, branch BranchID) StagingToken {
	return StagingToken(fmt.Sprintf("%s-%s:%s", repo, branch, uuid.NewString()))
}
