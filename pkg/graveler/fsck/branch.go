// SPDX-License-Identifier: Apache-2.0

package fsck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func (r *repository) branch(ctx context.Context, b *graveler.Branch) error {
	r.counts.Branches++
	read := func(ctx context.Context) (*graveler.Branch, error) { return r.refs.GetBranch(ctx, r.record, b.ID) }
	if err := r.confirm(ctx, again(b, read, r.lookAtBranch)); err != nil {
		return err
	}
	for _, token := range tokensOf(b) {
		if err := r.staged(ctx, b.ID, token); err != nil {
			return err
		}
	}
	if b.State != graveler.BranchLive {
		return nil
	}
	if b.Base != "" {
		err := r.tree(ctx, b.Base, r.branchRefers(b.ID, "base", func(now *graveler.Branch) bool { return now.Base == b.Base }))
		if err != nil {
			return err
		}
	}
	// Other heads' trees are checked with the commits.
	if !r.isExpired(b.Head) {
		return nil
	}
	head, err := r.refs.GetCommit(ctx, r.record, b.Head)
	if errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrCorrupt) {
		return nil // reported where it was looked for
	}
	if err != nil {
		return err
	}
	return r.tree(ctx, head.Tree, r.branchRefers(b.ID, "head", func(now *graveler.Branch) bool { return now.Head == b.Head }))
}

func (r *repository) lookAtBranch(ctx context.Context, b *graveler.Branch) (found []Finding, err error) {
	add := func(f Finding) {
		f.Branch = b.ID
		found = append(found, f)
	}
	last := b.LastMove
	switch {
	case b.State == graveler.BranchDeleted && (last.Op != graveler.OpDelete || last.New != "" || last.Old != b.Head):
		add(damage(BadBranch, "the branch is marked deleted, but its last move is not the deletion"))
	case b.State == graveler.BranchDeleted:
		add(Finding{Kind: Unfinished, Severity: Note, What: "the deletion of the branch has not finished"})
	case last.New != b.Head:
		add(damage(BadBranch, "the head is commit %s, but the last move was to commit %s", b.Head, orNone(last.New)))
	}
	if _, ok, err := r.lookUp(ctx, b.Head); err != nil {
		return nil, err
	} else if !ok {
		f := damage(MissingCommit, "commit %s, the head of the branch, does not exist", b.Head)
		f.Commit = b.Head
		add(f)
	}
	if named, err := r.isLogNamed(ctx, graveler.LogName{Branch: b.ID, UID: b.UID}); err != nil {
		return nil, err
	} else if !named {
		add(damage(BadLog, "nothing says that the log of %s is the branch's: it will be lost with the branch", b.UID))
	}
	for _, problem := range r.tokenProblems(b) {
		add(damage(BadBranch, "%s", problem))
	}
	return found, nil
}

func (r *repository) tokenProblems(b *graveler.Branch) (problems []string) {
	owner := digestOf(r.record.Partition() + "/" + string(b.ID))
	tokens := tokensOf(b)
	if b.Token == "" && b.State == graveler.BranchLive {
		problems = append(problems, "the branch has no staging token")
	}
	for i, t := range tokens {
		if !strings.HasPrefix(string(t), fmt.Sprintf("%s-%s:", r.record.ID, b.ID)) {
			problems = append(problems, fmt.Sprintf("staging token %q is not one of this branch", t))
		}
		if slices.Contains(tokens[:i], t) {
			problems = append(problems, fmt.Sprintf("staging token %q is listed twice", t))
		}
		first, ok := r.tokens[digestOf(t)]
		if ok && first != owner {
			problems = append(problems, fmt.Sprintf("staging token %q is listed by another branch too", t))
		}
		if !ok {
			r.tokens[digestOf(t)] = owner
		}
	}
	return problems
}

// staged has all entries under a token decoded.
func (r *repository) staged(ctx context.Context, branch graveler.BranchID, token graveler.StagingToken) error {
	for s, err := range r.staging.ScanStored(ctx, token) {
		if err != nil {
			return err
		}
		r.counts.StagedEntries++
		if s.Problem == nil {
			continue
		}
		err := r.confirm(ctx, func(ctx context.Context) ([]Finding, error) {
			b, err := r.refs.GetBranch(ctx, r.record, branch)
			if errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrCorrupt) || err == nil && !slices.Contains(tokensOf(b), token) {
				return nil, nil
			}
			if err == nil {
				_, err = r.staging.Get(ctx, token, s.Key)
			}
			if !errors.Is(err, graveler.ErrCorrupt) {
				return nil, err
			}
			f := damage(BadRecord, "%v", err)
			f.Branch, f.Partition, f.Key = branch, string(token), string(s.Key)
			return []Finding{f}, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *repository) defaultBranch(ctx context.Context) error {
	return r.confirm(ctx, func(ctx context.Context) ([]Finding, error) {
		b, err := r.refs.GetBranch(ctx, r.record, r.record.DefaultBranch)
		switch {
		case errors.Is(err, graveler.ErrCorrupt), err == nil && b.State == graveler.BranchLive:
			return nil, nil
		case err == nil, errors.Is(err, graveler.ErrBranchNotFound):
			f := damage(MissingBranch, "%q, the default branch of the repository, does not exist", r.record.DefaultBranch)
			f.Branch = r.record.DefaultBranch
			return []Finding{f}, nil
		}
		return nil, err
	})
}

func tokensOf(b *graveler.Branch) (tokens []graveler.StagingToken) {
	if b.Token != "" {
		tokens = append(tokens, b.Token)
	}
	for _, item := range b.Items {
		if item.Token != "" {
			tokens = append(tokens, item.Token)
		}
	}
	return tokens
}

func orNone(id graveler.CommitID) string {
	if id == "" {
		return "none"
	}
	return string(id)
}
