// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Store is what a catalog needs of the versioned store; *graveler.Graveler has it.
type Store interface {
	Repositories
	Entries
}

// Repositories are what buckets are.
type Repositories interface {
	CreateRepository(ctx context.Context, id graveler.RepositoryID, p graveler.CreateRepositoryParams) (graveler.Repository, error)
	GetRepository(ctx context.Context, id graveler.RepositoryID) (graveler.Repository, error)
	ListRepositories(ctx context.Context, after graveler.RepositoryID) iter.Seq2[graveler.Repository, error]
	DeleteRepository(ctx context.Context, id graveler.RepositoryID) error
	SetReadOnly(ctx context.Context, repo graveler.RepositoryID, readOnly bool) error
	ProtectBranches(ctx context.Context, repo graveler.RepositoryID, change func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error)) error
	GetSetting(ctx context.Context, repo graveler.RepositoryID, name string) (graveler.Setting, error)
	PutSetting(ctx context.Context, repo graveler.RepositoryID, name string, data []byte, expected string) (graveler.Setting, error)
	ListAllBranches(ctx context.Context, repo graveler.RepositoryID, after graveler.BranchID) iter.Seq2[graveler.Branch, error]
}

// Entries are what objects are.
type Entries interface {
	Get(ctx context.Context, repo graveler.RepositoryID, ref string, key graveler.Key) (*graveler.Value, error)
	List(ctx context.Context, repo graveler.RepositoryID, ref string, o graveler.ListOptions) iter.Seq2[graveler.Listing, error]
	Transact(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, change func(ctx context.Context, tx *graveler.Transaction) error) error
	Commit(ctx context.Context, repo graveler.RepositoryID, branch graveler.BranchID, p graveler.CommitParams) (graveler.CommitResult, error)
}

// Config is what New needs. Store is required.
type Config struct {
	Store Store
	Now   func() time.Time // nil: time.Now
	// Checkpoint says when Run commits what the catalog has changed.
	Checkpoint CheckpointPolicy
}

// CheckpointPolicy says how much may be uncommitted on a branch, and for how long, before it is committed: whichever is reached first. 0: no bound.
type CheckpointPolicy struct {
	Changes   int
	Interval  time.Duration
	Committer string
}

// Catalog keeps the objects of buckets. It is safe for concurrent use, also by many processes on one store: what one of them
// remembers is a hint, which every change verifies.
type Catalog struct {
	store      Store
	now        func() time.Time
	checkpoint CheckpointPolicy
	known      known
	changes    changeCounts
}

// New returns a catalog over a store.
func New(c Config) (*Catalog, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("catalog: Store is required")
	case c.Checkpoint.Changes < 0 || c.Checkpoint.Interval < 0:
		return nil, errors.New("catalog: the bounds of a checkpoint policy must not be negative")
	case c.Now == nil:
		c.Now = time.Now
	}
	return &Catalog{
		store: c.Store, now: c.Now, checkpoint: c.Checkpoint,
		known:   known{branches: map[branchName]knownSettings{}, defaults: map[graveler.RepositoryID]knownDefault{}},
		changes: changeCounts{counts: map[branchName]int{}, reached: make(chan struct{}, 1)},
	}, nil
}

// Bucket names what an operation is about: a repository at a ref. The zero Ref is the default branch. Reads take any ref; changes need a branch.
type Bucket struct {
	Repository graveler.RepositoryID
	Ref        string
}

func (b Bucket) String() string {
	if b.Ref == "" {
		return string(b.Repository)
	}
	return string(b.Repository) + "/" + b.Ref
}

// branchName is a branch of a repository, by name.
type branchName struct {
	repository graveler.RepositoryID
	branch     graveler.BranchID
}

// ref returns the ref that a bucket means. The default branch of a repository never changes, but the repository may have been
// deleted and made again: reads notice that a moment (defaultTrust) later, changes at once.
func (c *Catalog) ref(ctx context.Context, b Bucket) (string, error) {
	if b.Ref != "" {
		return b.Ref, nil
	}
	if branch, ok := c.known.defaultOf(b.Repository); ok {
		return string(branch), nil
	}
	began := time.Now()
	r, err := c.store.GetRepository(ctx, b.Repository)
	if err != nil {
		return "", err
	}
	c.known.setDefault(b.Repository, knownDefault{r.DefaultBranch, began})
	return string(r.DefaultBranch), nil
}

// errOtherDefault: the branch that was taken for the default one is not.
var errOtherDefault = errors.New("the repository has another default branch")

// change makes one transaction on the branch that b names. do is given the settings of the bucket, which hold when the
// transaction takes place, and returns how many changes to count; it is called again where something has changed meanwhile.
func (c *Catalog) change(ctx context.Context, b Bucket, do func(ctx context.Context, tx *graveler.Transaction, s settings) (changes int, err error)) error {
	for {
		name, err := c.ref(ctx, b)
		if err != nil {
			return err
		}
		on, changed := branchName{b.Repository, graveler.BranchID(name)}, 0
		err = c.store.Transact(ctx, on.repository, on.branch, func(ctx context.Context, tx *graveler.Transaction) error {
			if b.Ref == "" && tx.Repository().DefaultBranch != on.branch {
				return errOtherDefault
			}
			s, err := c.settingsFor(ctx, on, tx)
			if err != nil {
				return err
			}
			changed, err = do(ctx, tx, s)
			return err
		})
		if errors.Is(err, errOtherDefault) {
			c.known.forgetDefault(b.Repository)
			continue
		}
		if err == nil {
			c.changed(on, changed)
		}
		return err
	}
}

// reader shows a ref, each entry as it is when it is read.
type reader struct {
	store Store
	repo  graveler.RepositoryID
	ref   string
}

func (r reader) Get(ctx context.Context, keys ...graveler.Key) ([]*graveler.Value, error) {
	values := make([]*graveler.Value, len(keys))
	for i, key := range keys {
		v, err := r.store.Get(ctx, r.repo, r.ref, key)
		if err != nil && !errors.Is(err, graveler.ErrEntryNotFound) {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

func (r reader) List(ctx context.Context, o graveler.ListOptions) iter.Seq2[graveler.Listing, error] {
	return r.store.List(ctx, r.repo, r.ref, o)
}

// describe wraps an error with what was being done to what.
func describe(err error, doing string, b Bucket, key string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s:%q: %w", doing, b, key, err)
}

// changeCounts are how many changes each branch has seen since it was last taken.
type changeCounts struct {
	mu     sync.Mutex
	counts map[branchName]int
	// reached has an element after a branch has reached the bound of the policy.
	reached chan struct{}
}

// changed counts changes that have been made on a branch, for checkpoints.
func (c *Catalog) changed(on branchName, n int) {
	if n == 0 {
		return
	}
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	c.changes.counts[on] += n
	if limit := c.checkpoint.Changes; limit > 0 && c.changes.counts[on] >= limit {
		select {
		case c.changes.reached <- struct{}{}:
		default:
		}
	}
}
