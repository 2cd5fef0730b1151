// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func (p *planning) repository(ctx context.Context, row repositoryRow) error {
	bad := func(e *RowError) error {
		p.note(e)
		return nil
	}
	for _, err := range []error{graveler.ValidateRepositoryID(graveler.RepositoryID(row.id)), graveler.ValidateBranchID(graveler.BranchID(row.defaultBranch)), p.nameIsFree(ctx, row.id)} {
		if err != nil {
			p.note(&RowError{Table: p.r.table(settingItem), Key: row.id, Reason: err})
		}
	}
	o, err := p.openOrigin(ctx, p.source, p.r, row, p.commits(ctx, row), p.began, bad)
	if err != nil {
		return err
	}
	planned := PlannedRepository{Repository: row.id, Branches: int64(len(o.branches)), Commits: int64(len(o.history.commits)), Trees: int64(len(o.history.metaranges))}
	if o.root != nil {
		p.Bare = append(p.Bare, row.id)
	}
	if _, err := o.documents(ctx); errors.Is(err, ErrInvalidRow) {
		p.note(err)
	} else if err != nil {
		return err
	}
	shown := map[int32]bool{} // trees
	for _, b := range o.branches {
		shown[o.history.commits[b.head].tree] = true
	}
	if planned.Tags, err = p.tags(ctx, o, shown); err != nil {
		return err
	}
	delete(shown, noTree)
	if err := p.trees(ctx, o, slices.Sorted(maps.Keys(shown))); err != nil {
		return err
	}
	if planned.Staged, err = p.r.countStaged(ctx, p.tokens(o)); err != nil {
		return err
	}
	if !p.everything && len(o.history.commits) <= p.keep {
		p.keep -= len(o.history.commits)
		p.origins[row.id] = o
	}
	p.Repositories = append(p.Repositories, planned)
	p.Rows += planned.rows()
	return nil
}

// nameIsFree returns ErrTargetTaken where the target has a repository of that name which this migration did not bring there. One in deletion is nobody's, and one in creation may be what an earlier run had sent last, which came late: whoever begins
// a repository of the name waits for the end of either.
func (p *planning) nameIsFree(ctx context.Context, id string) error {
	stored, err := p.refs().GetRepository(ctx, graveler.RepositoryID(id))
	if errors.Is(err, graveler.ErrRepositoryNotFound) {
		return nil
	}
	if err != nil || stored.State == graveler.RepositoryInDeletion {
		return err
	}
	note, err := p.records().repository(ctx, id)
	ours := note != nil && (note.Uid == stored.UID || stored.State == graveler.RepositoryCreating)
	if err == nil && !ours {
		err = fmt.Errorf("%w: a repository of this name", ErrTargetTaken)
	}
	return err
}

// tags looks at the tags, and adds the trees that they show.
func (p *planning) tags(ctx context.Context, o *origin, shown map[int32]bool) (n int64, err error) {
	for row, err := range o.tags(ctx, o.repositoryRow) {
		if err != nil {
			return 0, err
		}
		n++
		at, err := o.taggedCommit(row)
		if err != nil {
			p.note(o.rowError(tagItem, row.id, err))
			continue
		}
		shown[o.history.commits[at].tree] = true
	}
	return n, nil
}

// commits yields the commits of a repository, and looks at each on the way.
func (p *planning) commits(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error] {
	return func(yield func(commitRow, error) bool) {
		for row, err := range p.r.unsortedCommits(ctx, repo) {
			if err == nil {
				if err := row.check(); err != nil {
					p.note(&RowError{Table: p.r.table(commitItem), Repository: repo.id, Key: row.id, Reason: err})
				}
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// trees looks at the roots of the trees that branches and tags show, of lakeFS also at other files, and at the namespace that they are in.
func (p *planning) trees(ctx context.Context, o *origin, shown []int32) error {
	if p.source.trees != nil {
		p.ownFolder(o, strings.TrimRight(o.namespace, "/"), func(other string) error {
			return fmt.Errorf("%w: %s is that of %s, too", ErrSharedNamespace, place(o.namespace), other)
		})
		return p.files(ctx, o, shown)
	}
	roots, err := tables{o.connection}.shownTrees(ctx, o.id)
	if err != nil {
		return err
	}
	inPlace := false
	for _, tree := range roots {
		format, err := p.formatOf(ctx, o.namespace, tree)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.note(o.rowError(commitItem, "", err))
			return nil // the others are hardly different
		}
		inPlace = inPlace || format == nil && p.InPlace
	}
	if inPlace {
		place, _, _ := strings.Cut(o.namespace, "?")
		folder := path.Base(place)
		p.ownFolder(o, folder, func(other string) error {
			return fmt.Errorf("%w: repository %s has a folder %s, too (with copies of the files it is possible)", graveler.ErrNamespaceTaken, other, quoted(folder))
		})
	}
	return nil
}

// ownFolder notes whose a folder is; taken says what is wrong with two that have one.
func (p *planning) ownFolder(o *origin, folder string, taken func(other string) error) {
	if other, ok := p.folders[folder]; ok {
		p.note(&RowError{Table: p.r.table(settingItem), Key: o.id, Reason: taken(other)})
	}
	p.folders[folder] = o.id
}

// tokens returns the staging tokens of a repository, and notes whose they are. Two branches cannot have one.
func (p *planning) tokens(o *origin) (tokens []string) {
	for _, b := range o.branches {
		for _, token := range b.tokens {
			if other, taken := p.owners[token]; taken {
				p.note(&RowError{Table: p.r.table(branchItem), Key: other.repository + "/" + other.branch, Reason: fmt.Errorf("it has the staging token %s, as %s/%s has", quoted(token), o.id, b.name)})
			}
			p.owners[token] = branchName{o.id, b.name}
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// leftBehind counts what nothing refers to.
func (p *planning) leftBehind(ctx context.Context) error {
	owned := func(token string) bool { _, ok := p.owners[token]; return ok }
	for l, err := range p.r.leftBehind(ctx, owned) {
		if err != nil {
			return err
		}
		p.leave(l)
	}
	return nil
}

// stagedRows has the database look for staged rows that cannot be carried over, and for branches that show more than what is staged under their tokens.
func (p *planning) stagedRows(ctx context.Context) error {
	for v, err := range p.r.suspects(ctx) {
		if err != nil {
			return err
		}
		owner, owned := p.owners[v.token]
		if _, err := v.entry(); err != nil && owned { // a long key may be a reserved one
			p.note(&RowError{Table: p.r.table(entryItem), Repository: owner.repository, Key: "branch " + owner.branch + ", key " + string(v.key), Reason: err})
		}
	}
	for problem, err := range p.r.unreadable(ctx) {
		if err != nil {
			return err
		}
		p.note(problem)
	}
	return nil
}

// size asks how much the rows take.
func (p *planning) size(ctx context.Context) (err error) {
	p.Bytes, err = p.r.bytes(ctx)
	return err
}
