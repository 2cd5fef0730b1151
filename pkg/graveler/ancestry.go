// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
)

// Contains reports whether ref reaches a commit: whether the commit that the second ref names is the one that ref names, or an ancestor of it.
// It reads, at most, the commits that ref reaches and whose generations are larger than the commit's.
func (g *Graveler) Contains(ctx context.Context, repo RepositoryID, ref, commit string) (bool, error) {
	r, head, target, err := g.resolveTwo(ctx, repo, ref, commit)
	contains := false
	if err == nil {
		contains, err = g.containing(r, target).holds(ctx, head)
	}
	if err != nil {
		return false, fmt.Errorf("look for %s in the history of %s/%s: %w", commit, repo, ref, err)
	}
	return contains, nil
}

// BranchesContaining yields the branches, hidden ones too, that reach the commit that ref names: those whose names are greater
// than after, by name. It reads, at most, the commits that any branch reaches and whose generations are larger than the commit's,
// each once, and keeps their IDs.
func (g *Graveler) BranchesContaining(ctx context.Context, repo RepositoryID, ref string, after BranchID) iter.Seq2[Branch, error] {
	return sequence(func(emit func(Branch) bool) error {
		r, target, err := g.resolve(ctx, repo, ref)
		if err != nil {
			return err
		}
		reaching := g.containing(r, target)
		return g.listBranches(ctx, r, after, emit, func(b *Branch) (bool, error) { return reaching.holdsID(ctx, b.Head) })
	})
}

// TagsContaining yields the tags that reach the commit that ref names, as ListTags does: those whose names are greater than
// after, by name. It costs what BranchesContaining does.
func (g *Graveler) TagsContaining(ctx context.Context, repo RepositoryID, ref string, after TagID) iter.Seq2[Tag, error] {
	return sequence(func(emit func(Tag) bool) error {
		r, target, err := g.resolve(ctx, repo, ref)
		if err != nil {
			return err
		}
		reaching := g.containing(r, target)
		return g.listTags(ctx, r, after, emit, func(t *Tag) (bool, error) { return reaching.holdsID(ctx, t.Commit) })
	})
}

// containing tells which commits reach one commit, and remembers it of all that it has looked at.
type containing struct {
	g      *Graveler
	repo   *Repository
	target *Commit
	known  map[CommitID]bool
}

func (g *Graveler) containing(repo *Repository, target *Commit) *containing {
	return &containing{g: g, repo: repo, target: target, known: map[CommitID]bool{target.ID: true}}
}

func (c *containing) holdsID(ctx context.Context, id CommitID) (bool, error) {
	if yes, known := c.known[id]; known {
		return yes, nil
	}
	head, err := c.g.referred(ctx, c.repo, id)
	if err != nil {
		return false, err
	}
	return c.holds(ctx, head)
}

// holds searches depth first, first parents first, and not below the generation of the commit that it looks for.
func (c *containing) holds(ctx context.Context, head *Commit) (bool, error) {
	type step struct {
		commit *Commit
		next   int // the parent to try next
	}
	path := []step{{commit: head}}
	for len(path) > 0 {
		at := &path[len(path)-1]
		yes, known := c.known[at.commit.ID]
		if yes {
			for _, s := range path {
				c.known[s.commit.ID] = true
			}
			return true, nil
		}
		if known || at.commit.Generation <= c.target.Generation || at.next == len(at.commit.Parents) {
			c.known[at.commit.ID] = false
			path = path[:len(path)-1]
			continue
		}
		p, err := c.g.referred(ctx, c.repo, at.commit.Parents[at.next])
		if err != nil {
			return false, err
		}
		at.next++
		path = append(path, step{commit: p})
	}
	return false, nil
}

// reach tells which commits are reached from those that were added. It goes down in the history no further than the generations
// that it is asked about.
type reach struct {
	g       *Graveler
	repo    *Repository
	reached map[CommitID]bool
	queue   commitQueue
}

func (g *Graveler) reach(repo *Repository) *reach {
	return &reach{g: g, repo: repo, reached: map[CommitID]bool{}}
}

func (r *reach) add(c *Commit) {
	if !r.reached[c.ID] {
		r.reached[c.ID] = true
		heap.Push(&r.queue, c)
	}
}

// has reports whether a commit is reached. Those that reach it have larger generations, and have all been visited when only smaller ones are left.
func (r *reach) has(ctx context.Context, c *Commit) (bool, error) {
	for len(r.queue) > 0 && r.queue[0].Generation > c.Generation {
		for _, id := range heap.Pop(&r.queue).(*Commit).Parents {
			p, err := r.g.referred(ctx, r.repo, id)
			if err != nil {
				return false, err
			}
			r.add(p)
		}
	}
	return r.reached[c.ID], nil
}
