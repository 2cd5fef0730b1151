// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// LoadParams says what a repository is like that is made of records which exist already.
type LoadParams struct {
	// UID is the repository's, an xid that was given to no other before: for whoever wants to take the load up again where it is
	// cut off (ResumeLoad). "": a new one.
	UID           string
	DefaultBranch BranchID
	CreatedAt     time.Time // zero: now
	ReadOnly      bool
	// Namespace is where the repository's own folder is made, as in CreateRepositoryParams.
	Namespace string
	// Files is the namespace that holds the files of the trees: they are copied into the repository's own folder. "": whoever
	// loads puts the trees there (Loading.Repository names it).
	Files string
	// InPlace leaves the files where they are: Files becomes the repository's namespace. No other repository of this store may
	// have it, nor one of another store that is in use.
	InPlace bool
}

// Loading is a repository that is being made of records which exist already: from a dump, or from another system. Nobody sees it
// before Finish, which proves that it is whole.
//
// Names, branch UIDs, moves, commits with their IDs, and times are as they are given; the repository's UID and staging tokens are
// new. Commits and moves may come in any order, entries after their branch. Writes are made in the background: an error may show
// at a later call, and what was passed must not be changed. Whoever gets an error calls Abort. One goroutine at a time may call.
// After Finish has returned nil, and after Abort, every call but Abort is ErrClosed. Memory grows with the number of branches,
// live and deleted, by their UIDs; Finish takes some 70 bytes a commit besides, up to about 90 MiB.
//
// A load may take long. It shows that it lives with each call, and so must not pause for longer than Config.Grace: upkeep takes
// it for one that was cut off then, and undoes it, which the load is told with ErrRepositoryInDeletion.
type Loading struct {
	g      *Graveler
	params LoadParams
	// repo names the partition and the namespace; record is what is stored.
	repo   *Repository
	mu     sync.Mutex
	record *Repository
	failed error
	ended  bool
	// logs says of which branch the log of a UID is; of none, where only its moves have come so far. Only the one goroutine that calls uses it.
	logs map[string]BranchID
	// resumed: some of the records may have been written before.
	resumed bool
	// What is written in the background: records, and chunks of entries.
	records, chunks errgroup.Group
	batch           loadBatch
	// window is loadWindow, in tests less.
	window int
}

// How many writes of a load are under way at a time: enough for an engine to group them, and not too many to keep in memory.
const (
	recordsAtOnce = 256
	chunksAtOnce  = 4
)

// LoadRepository begins to make a repository of records that exist already. It returns ErrExists where the name is taken,
// ErrNamespaceTaken where the files are that it was to take over.
func (g *Graveler) LoadRepository(ctx context.Context, id RepositoryID, p LoadParams) (*Loading, error) {
	if err := ValidateRepositoryID(id); err != nil {
		return nil, err
	}
	if err := ValidateBranchID(p.DefaultBranch); err != nil {
		return nil, err
	}
	if p.InPlace && p.Files == "" {
		return nil, fmt.Errorf("load repository %s: %w: no namespace to take over", id, ErrInvalidValue)
	}
	l, err := g.loadRepository(ctx, id, p)
	if err != nil {
		return nil, fmt.Errorf("load repository %s: %w", id, err)
	}
	return l, nil
}

func (g *Graveler) loadRepository(ctx context.Context, id RepositoryID, p LoadParams) (*Loading, error) {
	r := &Repository{ID: id, UID: p.UID, DefaultBranch: p.DefaultBranch, ReadOnly: p.ReadOnly, Adopting: p.InPlace}
	if p.InPlace {
		r.Namespace = p.Files
	} else if p.Files != "" {
		if err := g.trees.CheckNamespace(ctx, p.Files); err != nil {
			return nil, err
		}
	}
	r, err := g.beginRepository(ctx, r, p.Namespace)
	if err != nil {
		return nil, err
	}
	l := g.newLoading(r, p)
	if p.InPlace {
		// After the record: of two that take over one namespace at the same time at least one sees the other.
		if err := l.checkUnowned(ctx); err != nil {
			return nil, errors.Join(err, l.Abort(ctx))
		}
	}
	return l, nil
}

func (g *Graveler) newLoading(r *Repository, p LoadParams) *Loading {
	l := &Loading{g: g, params: p, repo: r, record: r, logs: map[string]BranchID{}, window: loadWindow}
	l.records.SetLimit(recordsAtOnce)
	l.chunks.SetLimit(chunksAtOnce)
	return l
}

// checkUnowned returns ErrNamespaceTaken where another repository has the namespace, or its files are still to be removed. A
// folder is known by its last name, however the way to it is written: no two repositories are given folders of one name.
func (l *Loading) checkUnowned(ctx context.Context) error {
	folder := folderOf(l.repo.Namespace)
	for r, err := range l.g.refs.ScanRepositories(ctx, "") {
		if err != nil {
			return err
		}
		if r.UID != l.repo.UID && folderOf(r.Namespace) == folder {
			return fmt.Errorf("namespace %s: %w: %s", l.repo.Namespace, ErrNamespaceTaken, r.ID)
		}
	}
	for c, err := range l.g.refs.ScanCleanups(ctx) {
		if err != nil {
			return err
		}
		if c.Namespace != "" && folderOf(c.Namespace) == folder {
			return fmt.Errorf("namespace %s: %w: %s, which was deleted, and they are removed", l.repo.Namespace, ErrNamespaceTaken, c.RepositoryID)
		}
	}
	return nil
}

func folderOf(namespace string) string {
	place, _, _ := strings.Cut(namespace, "?")
	return path.Base(place)
}

// Repository returns the record of the repository as it was begun.
func (l *Loading) Repository() Repository { return *l.repo }

// alive renews the record when that is due, so that nobody takes the load for one that was cut off, and returns an error if
// somebody has, or if a write in the background failed.
func (l *Loading) alive(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return fmt.Errorf("load of repository %s: %w", l.repo.ID, ErrClosed)
	}
	now := l.g.now()
	if l.failed != nil || now.Sub(l.record.CreatedAt) < l.g.grace/4 {
		return l.failed
	}
	next := *l.record
	next.CreatedAt = now.UTC()
	if l.failed = l.g.putCreating(ctx, &next); l.failed == nil {
		l.record = &next
	}
	return l.failed
}

// write writes a record in the background.
func (l *Loading) write(ctx context.Context, do func() error) error {
	return l.behind(ctx, &l.records, do)
}

func (l *Loading) behind(ctx context.Context, group *errgroup.Group, do func() error) error {
	if err := l.alive(ctx); err != nil {
		return err
	}
	group.Go(func() error {
		err := do()
		if errors.Is(err, ErrFenceFailed) {
			err = fmt.Errorf("%w: the load stood still for longer than %s and was undone", ErrRepositoryInDeletion, l.g.grace)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.failed == nil {
			l.failed = err
		}
		return nil
	})
	return nil
}

// PutPin makes a pin.
func (l *Loading) PutPin(ctx context.Context, p Pin) error {
	if err := p.validate(); err != nil {
		return fmt.Errorf("pin of %q: %w", p.Owner, err)
	}
	return l.write(ctx, func() error { return l.g.refs.PutPin(ctx, l.repo, p) })
}

// PutTag makes a tag.
func (l *Loading) PutTag(ctx context.Context, t Tag) error {
	if err := ValidateTagID(t.ID); err != nil {
		return err
	}
	return l.write(ctx, func() error {
		err := l.g.refs.CreateTag(ctx, l.repo, &t)
		if l.resumed && errors.Is(err, ErrExists) {
			err = l.sameTag(ctx, t)
		}
		return err
	})
}

// PutCommit makes a commit. The ID of one of a version that this program knows must be the one that its fields have, and the
// nonce of one that was carried its digest.
func (l *Loading) PutCommit(ctx context.Context, c *Commit) error {
	switch {
	case c == nil:
		return fmt.Errorf("%w: no commit", ErrInvalidValue)
	case !isCommitID(string(c.ID)):
		return fmt.Errorf("commit %q: %w: an ID has 64 hexadecimal digits", c.ID, ErrInvalidValue)
	case c.Version == CommitVersion && c.ID != c.ComputeID():
		return fmt.Errorf("commit %s: %w: its fields have the ID %s", c.ID, ErrInvalidValue, c.ComputeID())
	case c.Carried() && c.Nonce != c.Digest():
		return fmt.Errorf("commit %s: %w: its fields are not those that it was carried with", c.ID, ErrInvalidValue)
	}
	return l.addCommit(ctx, c)
}

// PutExpiration makes an expiration. The tree of its commit need not be there.
func (l *Loading) PutExpiration(ctx context.Context, e Expiration) error {
	if !isCommitID(string(e.Commit)) {
		return fmt.Errorf("expiration of commit %q: %w: an ID has 64 hexadecimal digits", e.Commit, ErrInvalidValue)
	}
	return l.write(ctx, func() error { return l.g.refs.PutExpiration(ctx, l.repo, e) })
}

// PutBranch makes a live branch with the name, UID, head, last move and item counter of b, hidden or not, and nothing
// uncommitted. It returns its record. Every branch has a last move, if only its creation, which is where its head is from.
func (l *Loading) PutBranch(ctx context.Context, b Branch) (Branch, error) {
	if err := ValidateBranchID(b.ID); err != nil {
		return Branch{}, err
	}
	if b.LastMove.Time == 0 || b.LastMove.Op == OpDelete {
		return Branch{}, fmt.Errorf("branch %s: %w: it has no last move, or that is its deletion", b.ID, ErrInvalidValue)
	}
	if b.LastMove.New != b.Head {
		return Branch{}, fmt.Errorf("branch %s: %w: its head is %s, but its last move went to %s", b.ID, ErrInvalidValue, b.Head, b.LastMove.New)
	}
	if err := l.PutLog(ctx, LogName{b.ID, b.UID}); err != nil {
		return Branch{}, err
	}
	made := &Branch{
		ID: b.ID, UID: b.UID, State: BranchLive, Head: b.Head, Token: newToken(l.repo.ID, b.ID), ItemCounter: b.ItemCounter, Hidden: b.Hidden, LastMove: b.LastMove, Nonce: newNonce(),
	}
	var err error
	if made.Stamp, err = l.g.refs.PutBranch(ctx, l.repo, made); errors.Is(err, ErrChanged) {
		return l.sameBranch(ctx, made)
	}
	return *made, err
}

// PutLog records that a name had a branch, whose moves are to come. PutBranch does so for its branch.
func (l *Loading) PutLog(ctx context.Context, log LogName) error {
	if err := ValidateBranchID(log.Branch); err != nil {
		return err
	}
	if err := l.log(log.UID, log.Branch); err != nil {
		return err
	}
	return l.write(ctx, func() error { return l.g.refs.PutLogName(ctx, l.repo, log.Branch, log.UID) })
}

// log notes that the log of a UID is a branch's, or, if that is "", that it is of one which is named before or after.
func (l *Loading) log(uid string, branch BranchID) error {
	if err := validateBranchUID(uid); err != nil {
		return err
	}
	known := l.logs[uid]
	if known != "" && branch != "" && known != branch {
		return fmt.Errorf("branch %s: %w: its UID %s is that of branch %s", branch, ErrInvalidValue, uid, known)
	}
	l.logs[uid] = cmp.Or(branch, known)
	return nil
}

// PutMove makes a move in a branch's log: of a live branch any but the last, which is in its record.
func (l *Loading) PutMove(ctx context.Context, branchUID string, m Move) error {
	if err := l.log(branchUID, ""); err != nil {
		return err
	}
	return l.addMove(ctx, branchUID, m)
}

// PutLogStart says how far back the log of a branch reaches.
func (l *Loading) PutLogStart(ctx context.Context, branchUID string, at int64) error {
	if at <= 0 {
		return fmt.Errorf("log of branch %s: %w: it cannot begin at %d", branchUID, ErrInvalidValue, at)
	}
	if err := l.log(branchUID, ""); err != nil {
		return err
	}
	return l.write(ctx, func() error { return l.g.refs.PutLogStart(ctx, l.repo, branchUID, at) })
}

// Stage makes uncommitted changes of a branch, whose record PutBranch returned. No key may come twice.
func (l *Loading) Stage(ctx context.Context, b Branch, entries []Entry) error {
	for _, e := range entries {
		if err := ValidateEntry(e); err != nil {
			return fmt.Errorf("entry %s: %w", printable(e.Key), err)
		}
	}
	limits := l.g.staging.Limits()
	for len(entries) > 0 {
		var chunk []StagedWrite
		chunk, entries = nextChunk(entries, limits)
		// The fence is for a load that stood still and was undone: the token has gone then, and nobody would look for it again.
		err := l.behind(ctx, &l.chunks, func() error {
			return l.g.staging.Apply(ctx, &Fence{Repository: l.repo, Branch: &b}, b.Token, chunk)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// wait waits for the writes in the background.
func (l *Loading) wait() error {
	_, _ = l.records.Wait(), l.chunks.Wait() // which report nothing: see behind
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Finish proves that the repository is whole, copies its trees where that was asked for, and makes it one that everybody sees. It
// returns ErrInvalidValue where records refer to what is not there, and ErrCorrupt where a file of a tree is missing or damaged.
// It reads every file and every record once, and commits and moves once more for each further million commits.
func (l *Loading) Finish(ctx context.Context) (Repository, error) {
	err := l.Flush(ctx)
	if err == nil {
		err = l.alive(ctx)
	}
	if err == nil {
		err = l.check(ctx)
	}
	if err == nil {
		err = l.g.protectAll(ctx, l.repo) // by the settings that were loaded
	}
	if err == nil {
		err = l.activate(ctx)
	}
	if err != nil {
		return Repository{}, fmt.Errorf("load repository %s: %w", l.repo.ID, err)
	}
	return *l.record, nil
}

func (l *Loading) activate(ctx context.Context) error {
	next := *l.record
	next.State, next.Adopting = RepositoryActive, false
	if !l.params.CreatedAt.IsZero() {
		next.CreatedAt = l.params.CreatedAt.UTC()
	}
	err := l.g.putCreating(ctx, &next)
	if errors.Is(err, ErrRepositoryInDeletion) {
		return err
	}
	l.ended = true // also where the outcome is unknown: what may be in use is not removed
	if err != nil {
		stored, readErr := l.g.refs.GetRepository(context.WithoutCancel(ctx), l.repo.ID)
		if readErr != nil || stored.Nonce != next.Nonce {
			return fmt.Errorf("outcome unknown: %w", err)
		}
		next.Stamp = stored.Stamp
	}
	l.record = &next
	return nil
}

// Abort removes what was loaded, unless Finish has ended the load. Where it is not called, upkeep does so later.
func (l *Loading) Abort(ctx context.Context) error {
	_ = l.wait() // the load has failed, whatever became of them
	if l.ended {
		return nil
	}
	l.ended = true
	return l.g.deleteRepository(ctx, l.record)
}
