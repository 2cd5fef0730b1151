// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A ref expression names a commit:
//
//	NAME      a full commit ID, else a branch, else a tag, else an unambiguous beginning (4 digits or more) of a commit ID
//	NAME@     the head of a branch, without uncommitted changes
//	NAME$     a branch with its uncommitted changes; where only a commit will do, its head
//	REF~N     N times the first parent (REF~ is REF~1)
//	REF^N     the N-th parent (REF^ is REF^1, REF^0 is REF)
type refExpression struct {
	name  string
	mark  byte // '@', '$' or 0
	steps []refStep
}

type refStep struct {
	op byte // '~' or '^'
	n  int
}

const (
	minCommitPrefix = 4
	commitDigits    = 64
	hexDigits       = "0123456789abcdef"
)

func parseRef(expr string) (refExpression, error) {
	invalid := func(why string) (refExpression, error) {
		return refExpression{}, fmt.Errorf("%w %q: %s", ErrInvalidRef, expr, why)
	}
	r := refExpression{name: expr}
	steps := ""
	if i := strings.IndexAny(expr, "~^"); i >= 0 {
		r.name, steps = expr[:i], expr[i:]
	}
	if n := len(r.name); n > 0 && (r.name[n-1] == '@' || r.name[n-1] == '$') {
		r.mark, r.name = r.name[n-1], r.name[:n-1]
	}
	if !isCommitID(r.name) {
		if rule := brokenRefRule(r.name); rule != "" {
			return invalid("the name before any of @ $ ~ ^ " + rule)
		}
	}
	if r.mark == '$' && steps != "" {
		return invalid("uncommitted changes have no parents: nothing may follow '$'")
	}
	for steps != "" {
		digits := strings.TrimLeft(steps[1:], "0123456789")
		number := steps[1 : len(steps)-len(digits)]
		step := refStep{op: steps[0], n: 1}
		if number != "" {
			n, err := strconv.Atoi(number)
			if err != nil {
				return invalid("the number " + number + " is too large")
			}
			step.n = n
		}
		if steps = digits; steps != "" && steps[0] != '~' && steps[0] != '^' {
			return invalid("after ~ and ^ only digits, ~ and ^ may follow")
		}
		r.steps = append(r.steps, step)
	}
	return r, nil
}

// ResolveRef returns the commit that a ref expression names. A branch, whatever its mark, names its head.
// It returns ErrRefNotFound, ErrInvalidRef or ErrAmbiguousRef where the expression names no commit.
func (g *Graveler) ResolveRef(ctx context.Context, repo RepositoryID, ref string) (*Commit, error) {
	_, c, err := g.resolve(ctx, repo, ref)
	if err != nil {
		return nil, err
	}
	return c.Clone(), nil
}

// resolve is ResolveRef for those who also need the repository, and who do not modify the commit.
func (g *Graveler) resolve(ctx context.Context, repo RepositoryID, ref string) (*Repository, *Commit, error) {
	r, err := parseRef(ref)
	if err != nil {
		return nil, nil, err
	}
	return g.resolveCommit(ctx, repo, ref, r)
}

// resolveIn is resolve in a repository whose record was read before.
func (g *Graveler) resolveIn(ctx context.Context, repo *Repository, ref string) (*Commit, error) {
	now, c, err := g.resolve(ctx, repo.ID, ref)
	if err == nil && now.UID != repo.UID {
		err = fmt.Errorf("repository %s: %w: it was deleted and created again", repo.ID, ErrRepositoryNotFound)
	}
	return c, err
}

func (g *Graveler) resolveCommit(ctx context.Context, id RepositoryID, expr string, r refExpression) (*Repository, *Commit, error) {
	repo, err := g.repository(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	c, err := g.resolveName(ctx, repo, r)
	for i := 0; err == nil && i < len(r.steps); i++ {
		c, err = g.walkStep(ctx, repo, c, r.steps[i])
	}
	if errors.Is(err, ErrNotFound) && !errors.Is(err, ErrRefNotFound) {
		err = fmt.Errorf("%w (%w)", ErrRefNotFound, err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("ref %s/%s: %w", id, expr, err)
	}
	return repo, c, nil
}

func (g *Graveler) resolveName(ctx context.Context, repo *Repository, r refExpression) (*Commit, error) {
	if isCommitID(r.name) && r.mark == 0 {
		return g.commit(ctx, repo, CommitID(r.name))
	}
	b, err := g.liveBranch(ctx, repo, BranchID(r.name))
	if err == nil {
		return g.referred(ctx, repo, b.Head)
	}
	if !errors.Is(err, ErrBranchNotFound) || r.mark != 0 {
		return nil, err
	}
	t, err := g.refs.GetTag(ctx, repo, TagID(r.name))
	if err == nil {
		return g.referred(ctx, repo, t.Commit)
	}
	if !errors.Is(err, ErrTagNotFound) {
		return nil, err
	}
	return g.commitByPrefix(ctx, repo, r.name)
}

// referred reads a commit that a record refers to: it must be there, unless the repository was deleted since the record was read.
func (g *Graveler) referred(ctx context.Context, repo *Repository, id CommitID) (*Commit, error) {
	c, err := g.commit(ctx, repo, id)
	if !errors.Is(err, ErrCommitNotFound) {
		return c, err
	}
	return nil, g.unlessGone(ctx, repo, fmt.Errorf("%w: commit %s is referred to but does not exist", ErrCorrupt, id))
}

// unlessGone returns err, or, if the repository has been deleted since its record was read, that instead: data that is missing then is not damage.
func (g *Graveler) unlessGone(ctx context.Context, repo *Repository, err error) error {
	if errors.Is(err, ErrCorrupt) {
		if gone := g.stillThere(ctx, repo); errors.Is(gone, ErrNotFound) || errors.Is(gone, ErrRepositoryInDeletion) {
			return gone
		}
	}
	return err
}

func (g *Graveler) commitByPrefix(ctx context.Context, repo *Repository, prefix string) (*Commit, error) {
	if len(prefix) < minCommitPrefix || strings.Trim(prefix, hexDigits) != "" {
		return nil, ErrRefNotFound
	}
	var match *Commit
	for c, err := range g.refs.ScanCommits(ctx, repo, CommitID(prefix)) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(string(c.ID), prefix) {
			break
		}
		if match != nil {
			return nil, fmt.Errorf("%w: %s and %s", ErrAmbiguousRef, match.ID, c.ID)
		}
		match = c
	}
	if match == nil {
		return nil, ErrRefNotFound
	}
	return match, nil
}

func (g *Graveler) walkStep(ctx context.Context, repo *Repository, c *Commit, s refStep) (*Commit, error) {
	if s.op == '^' {
		if s.n == 0 {
			return c, nil
		}
		return g.parent(ctx, repo, c, s.n)
	}
	for range s.n {
		var err error
		if c, err = g.parent(ctx, repo, c, 1); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (g *Graveler) parent(ctx context.Context, repo *Repository, c *Commit, n int) (*Commit, error) {
	if n > len(c.Parents) {
		return nil, fmt.Errorf("%w: commit %s has %d parents", ErrRefNotFound, c.ID, len(c.Parents))
	}
	return g.referred(ctx, repo, c.Parents[n-1])
}

// onRef calls staged where ref is a branch to be read with its uncommitted changes, and committed with what it names otherwise.
func (g *Graveler) onRef(ctx context.Context, id RepositoryID, ref string, staged func(BranchID) error, committed func(*Repository, *Commit) error) error {
	if repo, c := g.knownCommit(id, ref); c != nil {
		return committed(repo, c)
	}
	r, err := parseRef(ref)
	if err != nil {
		return err
	}
	if r.mark != '@' && len(r.steps) == 0 && !isCommitID(r.name) {
		isBranch, err := g.isBranch(ctx, id, BranchID(r.name))
		if err != nil {
			return err
		}
		if isBranch || r.mark == '$' {
			return staged(BranchID(r.name))
		}
	}
	repo, c, err := g.resolveCommit(ctx, id, ref, r)
	if err != nil {
		return err
	}
	return committed(repo, c)
}

func (g *Graveler) isBranch(ctx context.Context, id RepositoryID, name BranchID) (bool, error) {
	repo, err := g.repository(ctx, id)
	if err != nil {
		return false, err
	}
	_, err = g.liveBranch(ctx, repo, name)
	if errors.Is(err, ErrBranchNotFound) {
		return false, nil
	}
	return err == nil, err
}
