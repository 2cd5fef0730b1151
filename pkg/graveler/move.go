// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// plan is what an operation makes of a branch record. It edits next, a copy of the current record, which has the head, the base
// and, as the oldest part of its list, the items of the record that the plan was built from. It is called once per attempt and
// returns the commit to store along with the record, if there is one.
type plan func(next *Branch) (*Commit, error)

// moveBranch is the one way in which a branch record changes. It reads the record, lets build make a plan from it, and publishes
// the plan by compare-and-set:
//
//   - What was built from head H, base B and items I is published only on a record that still has H and B, and I as the oldest part of its list. Items are added only in front
//     and removed only from the old end, and never come back; so this also proves that nothing that was built from has been dropped. Seals by others do not get in the way.
//   - On any other change of the record everything is read and built again.
//   - A token is registered for cleaning before the record stops listing it.
//   - The last move that was read is written to the log before it is replaced.
//   - An action that the record to be replaced does not allow is refused.
//
// What was built too long ago is built again: files that it found in place may have come of age since (see FileGrace).
//
// build returns no plan where there is nothing to publish. moveBranch returns the record as it left it.
// Every failed attempt means that another succeeded, so some caller always makes progress.
func (g *Graveler) moveBranch(ctx context.Context, repo *Repository, id BranchID, action Actions, build func(cur *Branch) (plan, error)) (*Branch, error) {
	for {
		began := g.now()
		cur, err := g.liveBranch(ctx, repo, id)
		if err != nil {
			return nil, err
		}
		if err := cur.allow(action); err != nil {
			return nil, err
		}
		p, err := build(cur)
		if errors.Is(err, errStale) || errors.Is(err, ErrSwept) {
			continue
		}
		if errors.Is(err, ErrCorrupt) {
			err = g.unlessMoved(ctx, repo, cur, err)
			if errors.Is(err, errStale) {
				continue
			}
		}
		if err != nil || p == nil {
			return cur, err
		}
		next, err := g.publish(ctx, repo, cur, action, p, began)
		if errors.Is(err, errStale) {
			continue
		}
		return next, err
	}
}

// unlessMoved returns err, or errStale if the record from is no longer what the branch has: a base that nothing refers to any more is removed.
func (g *Graveler) unlessMoved(ctx context.Context, repo *Repository, from *Branch, err error) error {
	now, readErr := g.liveBranch(ctx, repo, from.ID)
	switch {
	case readErr != nil:
		return readErr
	case !follows(from, now):
		return errStale
	}
	return err
}

// publish applies p, which was built from the record from since the time began, to the current record. It returns errStale where p no longer fits.
func (g *Graveler) publish(ctx context.Context, repo *Repository, from *Branch, action Actions, p plan, began time.Time) (*Branch, error) {
	k := g.branchKey(repo, from.ID)
	leave, err := g.queue.enter(ctx, k)
	if err != nil {
		return nil, err
	}
	defer leave()

	// Another caller of this process may have published while this one waited; what it left is the best guess at the current record.
	cur, ok := g.branches.GetIfPresent(k)
	if !ok || !follows(from, cur) {
		cur = from
	}
	for {
		if cur.allow(action) != nil {
			return nil, errStale // a record that is read anew says whether it is so
		}
		next := cur.Clone()
		c, err := p(next)
		if err != nil {
			return nil, err
		}
		next.Nonce = newNonce()
		err = g.replace(ctx, repo, cur, next, c, began)
		if err == nil {
			if c != nil {
				g.commits.Set(commitKey{repo.Partition(), c.ID}, c)
				g.kept.Set(commitKey{repo.Partition(), c.ID}, g.now())
			}
			if next.Stamp == nil { // it landed and was overwritten since
				g.branches.Invalidate(k)
			} else {
				g.branches.Set(k, next)
			}
			return next, nil
		}
		if !errors.Is(err, ErrChanged) {
			g.branches.Invalidate(k)
			return nil, err
		}
		if cur, err = g.liveBranch(ctx, repo, from.ID); err != nil {
			return nil, err
		}
		if !follows(from, cur) {
			return nil, errStale
		}
	}
}

// follows reports whether what was built from the record from may be published on the record cur.
func follows(from, cur *Branch) bool {
	newer := len(cur.Items) - len(from.Items)
	if cur.State != BranchLive || cur.UID != from.UID || cur.Head != from.Head || cur.Base != from.Base || newer < 0 {
		return false
	}
	return slices.EqualFunc(cur.Items[newer:], from.Items, func(a, b Item) bool { return a.Number == b.Number })
}

// replace writes next, which was begun to be built at the time began, in the place of cur, and what must be there before it. On
// success next.Stamp is set. It returns errStale where too much time has passed.
func (g *Graveler) replace(ctx context.Context, repo *Repository, cur, next *Branch, c *Commit, began time.Time) error {
	before := Preceding{Commit: c}
	if cur.LastMove.Time != 0 && next.LastMove.Time != cur.LastMove.Time {
		before.Move = &cur.LastMove
	}
	for _, token := range unlisted(cur, next) {
		before.Cleanups = append(before.Cleanups, g.cleanupOf(repo, cur.ID, token))
	}
	publish := func() (Stamp, error) {
		if g.elapsed(began) > FileGrace/2 {
			return nil, errStale
		}
		return g.refs.PublishBranch(ctx, repo, next, before)
	}
	stamp, err := publish()
	switch {
	case errors.Is(err, errStale):
		return err
	case isRefusal(err):
		return fmt.Errorf("move branch %s/%s: %w", repo.ID, cur.ID, err)
	case err != nil && !errors.Is(err, ErrChanged):
		stamp, err = g.settle(ctx, repo, cur, next, publish, err)
	}
	next.Stamp = stamp
	return err
}

// isRefusal reports whether a write was refused for what it is: it has not taken place, and would not the next time.
func isRefusal(err error) bool {
	return errors.Is(err, ErrInvalidValue) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrClosed)
}

// unlisted returns the tokens that cur lists and next does not.
func unlisted(cur, next *Branch) []StagingToken {
	kept := tokens(next)
	return slices.DeleteFunc(tokens(cur), func(t StagingToken) bool { return slices.Contains(kept, t) })
}

// tokens returns the tokens that a record lists, newest first.
func tokens(b *Branch) []StagingToken {
	var list []StagingToken
	if b.Token != "" {
		list = append(list, b.Token)
	}
	for _, item := range b.Items {
		if item.Token != "" {
			list = append(list, item.Token)
		}
	}
	return list
}

// settle finds out whether a write of next over cur, which ended in cause, took place, and publishes it again where it did not
// and next is not too old. While the record is still cur, the write may yet land, and repeating the very same bytes decides it;
// once the record is neither, it can land no more.
func (g *Graveler) settle(ctx context.Context, repo *Repository, cur, next *Branch, publish func() (Stamp, error), cause error) (Stamp, error) {
	unknown := func(why error) error {
		if why != nil {
			return fmt.Errorf("write branch %s/%s: outcome unknown: %w (then: %w)", repo.ID, cur.ID, cause, why)
		}
		return fmt.Errorf("write branch %s/%s: outcome unknown: %w", repo.ID, cur.ID, cause)
	}
	for range 3 {
		now, err := g.readBranch(ctx, repo, cur.ID)
		switch {
		case errors.Is(err, ErrBranchNotFound):
			return g.settleFromLog(ctx, repo, cur, next, &Branch{}, unknown)
		case err != nil:
			return nil, unknown(err)
		case now.Nonce == next.Nonce:
			return now.Stamp, nil
		case !bytes.Equal(now.Stamp, cur.Stamp):
			return g.settleFromLog(ctx, repo, cur, next, now, unknown)
		}
		stamp, err := publish()
		if errors.Is(err, errStale) {
			break
		}
		if err == nil {
			return stamp, nil
		}
		if !errors.Is(err, ErrChanged) {
			cause = err
		}
	}
	return nil, unknown(nil)
}

// settleFromLog decides about a write that has been overwritten since, if it took place. A move is in the branch's log then,
// whatever has become of the branch; another change of the record shows only while its token is listed.
func (g *Graveler) settleFromLog(ctx context.Context, repo *Repository, cur, next, now *Branch, unknown func(error) error) (Stamp, error) {
	// Where the write took place, the caller's copy has no current stamp: who writes with it is told that the record changed.
	if next.LastMove == cur.LastMove {
		if next.Token != cur.Token && slices.Contains(tokens(now), next.Token) {
			return nil, nil
		}
		return nil, unknown(nil)
	}
	if now.LastMove == next.LastMove {
		return nil, nil
	}
	for m, err := range g.refs.ScanMoves(ctx, repo, cur.UID, next.LastMove.Time, next.LastMove.Time) {
		if err != nil {
			return nil, unknown(err)
		}
		if m == next.LastMove {
			return nil, nil
		}
	}
	// The caller may have been stopped for so long that retention has removed it.
	if start, err := g.refs.LogStart(ctx, repo, cur.UID); err != nil || start > next.LastMove.Time {
		return nil, unknown(err)
	}
	return nil, ErrChanged
}

// seal moves the staging token to the front of the sealed list, so that its contents are frozen. Unless always is set it does so
// only where the token holds something.
func (g *Graveler) seal(ctx context.Context, repo *Repository, id BranchID, always bool) (*Branch, error) {
	return g.moveBranch(ctx, repo, id, 0, func(cur *Branch) (plan, error) {
		if !always {
			if empty, err := g.isEmpty(ctx, cur.Token); empty || err != nil {
				return nil, err
			}
		}
		return g.addItems(ctx, repo, cur)
	})
}

// addItems plans to seal cur's token and put prefixes in front of it. A list that is full is compacted first.
func (g *Graveler) addItems(ctx context.Context, repo *Repository, cur *Branch, prefixes ...Key) (plan, error) {
	if len(cur.Items) >= maxItems {
		if _, err := g.compact(ctx, repo, cur.ID, 1); err != nil {
			return nil, err
		}
		return nil, errStale
	}
	return func(next *Branch) (*Commit, error) {
		if len(next.Items) >= maxItems {
			return nil, errStale // others have added to the list meanwhile
		}
		push(next, Item{Token: next.Token})
		next.Token = newToken(repo.ID, next.ID)
		for _, p := range prefixes {
			push(next, Item{Prefix: p})
		}
		return nil, nil
	}, nil
}

func push(b *Branch, item Item) {
	b.ItemCounter++
	item.Number = b.ItemCounter
	b.Items = slices.Insert(b.Items, 0, item)
}

// takeItems removes from next the items that the record from had.
func takeItems(next, from *Branch) {
	next.Items = next.Items[:len(next.Items)-len(from.Items)]
}

func (g *Graveler) isEmpty(ctx context.Context, token StagingToken) (empty bool, err error) {
	it, err := g.staging.Scan(ctx, token, nil, nil)
	if err != nil {
		return false, err
	}
	empty = !it.Next()
	return empty, it.Close()
}

// compact folds the items of a branch into its base if it has at least atLeast of them. It returns the record as it left it.
func (g *Graveler) compact(ctx context.Context, repo *Repository, id BranchID, atLeast int) (*Branch, error) {
	return g.moveBranch(ctx, repo, id, 0, func(cur *Branch) (plan, error) {
		if len(cur.Items) < atLeast {
			return nil, nil
		}
		head, tree, err := g.fold(ctx, repo, cur, g.share)
		if err != nil {
			return nil, err
		}
		if tree == head.Tree {
			tree = ""
		}
		return func(next *Branch) (*Commit, error) {
			next.Base = tree
			takeItems(next, cur)
			return nil, nil
		}, nil
	})
}

// fold builds the tree of everything that cur shows below its token, with a share of the machine, and returns it with the head commit.
func (g *Graveler) fold(ctx context.Context, repo *Repository, cur *Branch, share float64) (head *Commit, tree MetaRangeID, err error) {
	v, err := g.viewOf(ctx, repo, cur)
	if err != nil {
		return nil, "", err
	}
	changes, err := v.sealedChanges(ctx)
	if err != nil {
		return nil, "", err
	}
	tree, err = g.trees.Apply(ctx, repo.Namespace, v.tree, pace(ctx, changes, share))
	if err = g.unlessGone(ctx, repo, closing(err, changes)); err != nil {
		return nil, "", fmt.Errorf("fold the uncommitted changes of %s/%s: %w", repo.ID, cur.ID, err)
	}
	return v.head, tree, nil
}
