// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
	"unicode/utf8"
)

// CommitParams says how to commit.
type CommitParams struct {
	Message   string
	Committer string
	Metadata  map[string]string
	CreatedAt time.Time // zero: now
	// AllowEmpty makes a commit even where nothing changed.
	AllowEmpty bool
	// Share is how much of the machine making the tree may take beside other work, in time: 1 is all of it; with a quarter it
	// rests for three times as long as it has worked, on whichever processors. 0: Config.CommitShare.
	Share float64
	// Prefixes, if there are any, make it a commit of a part: of the changes of keys with one of them. The others stay uncommitted.
	Prefixes []Key
}

// CommitResult says what a commit came to.
type CommitResult struct {
	Commit Commit
	// AlreadyCommitted: another commit that was under way took this one's changes along; Commit is that other one.
	AlreadyCommitted bool
}

// PreCommitEvent is what a PreCommit hook sees.
type PreCommitEvent struct {
	Repository RepositoryID
	Branch     BranchID
	Op         Op // OpCommit, or what else is to move the head
	Params     CommitParams
	// Changes yields what is about to be committed, by key.
	Changes iter.Seq2[Diff, error]
}

// Limits of what a commit carries, in bytes: with its other fields it must fit into one record of the key/value store.
const (
	MaxMessageBytes  = 64 << 10
	MaxMetadataBytes = 64 << 10
	maxNameBytes     = 1 << 10
)

// Commit makes a commit of everything that is uncommitted on a branch when it begins: exactly the writes that were acknowledged
// before the branch's token is sealed, and none after. Others may go on staging meanwhile. Commits to one branch by one process
// take turns; the next in turn takes along what those that wait have found staged, and they return it with AlreadyCommitted.
// Where nothing changed it returns ErrNoChanges, unless AllowEmpty is set. If it is cut off, all changes stay uncommitted and the
// next commit takes them. It costs what changed, not the size of the tree.
func (g *Graveler) Commit(ctx context.Context, repo RepositoryID, branch BranchID, p CommitParams) (res CommitResult, err error) {
	defer g.observe("commit", time.Now(), &err)
	if err := p.Validate(); err != nil {
		return CommitResult{}, fmt.Errorf("commit %s/%s: %w", repo, branch, err)
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return CommitResult{}, err
	}
	if err := ValidateBranchID(branch); err != nil {
		return CommitResult{}, err
	}
	p.Metadata = maps.Clone(p.Metadata)
	c := committing{g: g, repo: r, params: p}
	if err := c.run(ctx, branch); err != nil {
		return CommitResult{}, fmt.Errorf("commit %s/%s: %w", repo, branch, err)
	}
	if g.hooks.PostCommit != nil && !c.already {
		g.hooks.PostCommit(ctx, repo, branch, *c.commit.Clone())
	}
	return CommitResult{Commit: *c.commit.Clone(), AlreadyCommitted: c.already}, nil
}

// Validate returns ErrInvalidValue or ErrTooLarge where a commit cannot be made with these parameters.
func (p CommitParams) Validate() error {
	if err := cmp.Or(validateMetadata(p.Metadata), checkShare(p.Share)); err != nil {
		return err
	}
	year := p.CreatedAt.Year()
	switch {
	case !utf8.ValidString(p.Message), !utf8.ValidString(p.Committer):
		return fmt.Errorf("%w: message and committer must be UTF-8", ErrInvalidValue)
	case !p.CreatedAt.IsZero() && (year < 1678 || year > 2261):
		return fmt.Errorf("%w: creation date in the year %d, which nanoseconds since 1970 do not reach", ErrInvalidValue, year)
	case len(p.Message) > MaxMessageBytes:
		return fmt.Errorf("%w: message of %d bytes, at most %d are allowed", ErrTooLarge, len(p.Message), MaxMessageBytes)
	case len(p.Committer) > maxNameBytes:
		return fmt.Errorf("%w: committer of %d bytes, at most %d are allowed", ErrTooLarge, len(p.Committer), maxNameBytes)
	}
	return nil
}

// committing is one commit under way.
type committing struct {
	g      *Graveler
	repo   *Repository
	params CommitParams
	// sealed is the record after this commit's seal. The commit is of what it shows without its token: of the items up to its counter.
	sealed *Branch
	// unsealed is the record whose token is yet to be sealed; nil if none is.
	unsealed *Branch

	commit  *Commit // the outcome
	already bool
	empty   bool
}

// errRefolded: the base of a branch whose changes a hook has judged was replaced; it may hold changes that the hook has not seen.
var errRefolded = errors.New("base was replaced")

func (c *committing) run(ctx context.Context, branch BranchID) error {
	for {
		if err := c.try(ctx, branch); !errors.Is(err, errRefolded) {
			return err
		}
	}
}

func (c *committing) try(ctx context.Context, branch BranchID) error {
	if err := c.begin(ctx, branch); err != nil {
		return err
	}
	if c.nothingSealed() && !c.params.AllowEmpty {
		return ErrNoChanges
	}
	if err := c.runHook(ctx); err != nil {
		return err
	}
	// Of commits to a branch that wait for each other here, the next one takes along what all of them have found staged, and the
	// others then have nothing to build.
	leave, err := c.g.turns.enter(ctx, c.g.branchKey(c.repo, branch))
	if err != nil {
		return err
	}
	defer leave()
	if err := c.sealInTurn(ctx); err != nil {
		return err
	}
	_, err = c.g.moveBranch(ctx, c.repo, branch, ActionCommit, func(cur *Branch) (plan, error) { return c.build(ctx, cur) })
	if err == nil && c.empty {
		err = ErrNoChanges
	}
	return err
}

func (c *committing) nothingSealed() bool { return len(c.sealed.Items) == 0 && c.sealed.Base == "" }

func (c *committing) runHook(ctx context.Context) error {
	if c.g.hooks.PreCommit == nil {
		return nil
	}
	frozen := c.sealed.Clone()
	frozen.Token = ""
	event := PreCommitEvent{Repository: c.repo.ID, Branch: frozen.ID, Op: OpCommit, Params: c.params, Changes: sequence(func(emit func(Diff) bool) error {
		v, err := c.g.viewOf(ctx, c.repo, frozen)
		if err != nil {
			return err
		}
		if err := v.uncommitted(ctx, nil, nil, func(d Diff) bool {
			outside := len(c.params.Prefixes) > 0 && !covers(c.params.Prefixes, d.Key)
			return outside || emit(d.Clone())
		}); err != nil {
			return err
		}
		// As in every read: what was not found may have been in a token that was dropped.
		now, err := c.g.liveBranch(ctx, c.repo, frozen.ID)
		if err == nil && len(unlisted(frozen, now)) > 0 {
			err = fmt.Errorf("%w: the changes were committed or folded by another process while they were read", ErrChanged)
		}
		return err
	})}
	event.Params.Metadata = maps.Clone(c.params.Metadata)
	return c.g.preCommit(ctx, event)
}

func (g *Graveler) preCommit(ctx context.Context, event PreCommitEvent) error {
	if err := g.hooks.PreCommit(ctx, event); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

func (c *committing) build(ctx context.Context, cur *Branch) (plan, error) {
	c.empty = false
	if cur.UID != c.sealed.UID {
		return nil, fmt.Errorf("%w: it was deleted and created again", ErrBranchNotFound)
	}
	if taken, err := c.takenAlong(ctx, cur); taken || err != nil {
		return nil, err
	}
	if c.g.hooks.PreCommit != nil && cur.Base != c.sealed.Base && cur.Base != "" {
		return nil, errRefolded
	}
	// What was sealed after this commit's seal stays in front of the list.
	cur = upTo(cur, c.sealed.ItemCounter)
	if len(cur.Items) == 0 && cur.Base == "" && !c.params.AllowEmpty {
		return nil, ErrNoChanges // they were reset away
	}
	head, shown, err := c.g.fold(ctx, c.repo, cur, cmp.Or(c.params.Share, c.g.share))
	if err != nil {
		return nil, err
	}
	tree, err := c.choose(ctx, head.Tree, shown)
	if err != nil {
		return nil, err
	}
	base := shown // what is not committed now stays
	if tree == shown {
		base = ""
	}
	if tree == head.Tree && !c.params.AllowEmpty {
		c.empty = true
		return func(next *Branch) (*Commit, error) {
			next.Base = base
			takeItems(next, cur)
			return nil, nil
		}, nil
	}
	c.commit = nil
	return func(next *Branch) (*Commit, error) {
		now, err := c.g.moveTime(ctx, next.LastMove.Time)
		if err != nil {
			return nil, err
		}
		if c.commit == nil {
			c.commit = child(c.params, tree, head)
			c.commit.complete(now)
		}
		next.Base = base
		takeItems(next, cur)
		// All items up to the counter of the seal are in the tree, or were taken off the list before: compacted into the base, committed, or reset.
		m := Move{Time: now, Op: OpCommit, New: c.commit.ID, Actor: c.params.Committer}
		if len(c.params.Prefixes) == 0 {
			m.CommittedThrough = c.sealed.ItemCounter
		}
		moveHead(next, m)
		return c.commit, nil
	}, nil
}

// choose returns the tree to commit: what the branch shows, or the head's tree with the chosen part of what differs from it.
func (c *committing) choose(ctx context.Context, head, shown MetaRangeID) (MetaRangeID, error) {
	if len(c.params.Prefixes) == 0 {
		return shown, nil
	}
	changes := newPart(c.g.trees.Diff(ctx, c.repo.Namespace, head, shown), c.params.Prefixes...)
	tree, err := c.g.trees.Apply(ctx, c.repo.Namespace, head, changes)
	return tree, c.g.unlessGone(ctx, c.repo, closing(err, changes))
}

// takenAlong finds out whether a commit since this one's seal included what it sealed.
func (c *committing) takenAlong(ctx context.Context, cur *Branch) (bool, error) {
	if c.nothingSealed() || c.params.AllowEmpty || c.stillListed(cur) {
		return false, nil
	}
	since := c.g.moves(ctx, c.repo, cur, c.sealed.LastMove.Time+1)
	if last := cur.LastMove; last.Previous <= c.sealed.LastMove.Time && c.sealed.LastMove.Time < last.Time { // it is the only one
		since = func(yield func(Move, error) bool) { yield(last, nil) }
	}
	for m, err := range since {
		if err != nil {
			return false, err
		}
		if m.Op == OpCommit && m.CommittedThrough >= c.sealed.ItemCounter {
			c.commit, err = c.g.referred(ctx, c.repo, m.New)
			c.already = err == nil
			return c.already, err
		}
	}
	// What committed them may have been so long ago that retention has removed the move.
	return false, c.g.checkLogStart(ctx, c.repo, LogName{Branch: cur.ID, UID: cur.UID}, c.sealed.LastMove.Time)
}

// stillListed reports whether the newest of what this commit sealed is still uncommitted where it was.
func (c *committing) stillListed(cur *Branch) bool {
	if len(c.sealed.Items) == 0 {
		return cur.Base == c.sealed.Base
	}
	newest := c.sealed.Items[0].Number
	return slices.ContainsFunc(cur.Items, func(i Item) bool { return i.Number == newest })
}

// moveHead makes m the last move of a branch; it sets what follows from the record.
func moveHead(next *Branch, m Move) {
	m.Previous, m.Old = next.LastMove.Time, next.Head
	next.Head, next.LastMove = m.New, m
}

// Compact folds what is uncommitted on a branch into its base, so that reads look in one place and the next commit has less to
// do. What the branch shows does not change.
func (g *Graveler) Compact(ctx context.Context, repo RepositoryID, branch BranchID) (err error) {
	defer g.observe("compact", time.Now(), &err)
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	_, err = g.seal(ctx, r, branch, false)
	if err == nil {
		_, err = g.compact(ctx, r, branch, 1)
	}
	if err != nil {
		return fmt.Errorf("compact %s/%s: %w", repo, branch, err)
	}
	return nil
}
