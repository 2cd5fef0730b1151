// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (p *planning) repository(ctx context.Context, row repositoryRow) error {
	bad := func(e *RowError) error {
		p.note(e)
		return nil
	}
	there, begun, nameErr := p.inTarget(ctx, row.id)
	for _, err := range []error{graveler.ValidateRepositoryID(graveler.RepositoryID(row.id)), graveler.ValidateBranchID(graveler.BranchID(row.defaultBranch)), nameErr} {
		if err != nil {
			p.note(&RowError{Table: p.r.table(settingItem), Key: row.id, Reason: err})
		}
	}
	o, err := p.openOrigin(ctx, p.source, p.r, row, p.commits(ctx, row), p.began, bad)
	if err != nil {
		return err
	}
	planned := PlannedRepository{
		Repository: row.id, Branches: int64(len(o.branches) + len(o.refused)), Commits: int64(len(o.history.commits)), Trees: int64(len(o.history.metaranges)),
		There: there, Begun: begun,
	}
	if o.root != nil && !there {
		p.Bare = append(p.Bare, row.id)
	}
	if _, err := o.documents(ctx); errors.Is(err, ErrInvalidRow) {
		p.note(err)
	} else if err != nil {
		return err
	}
	shown := map[int32][]string{} // by tree what shows it
	for _, b := range o.branches {
		tree := o.history.commits[b.head].tree
		shown[tree] = append(shown[tree], "branch "+b.name)
	}
	if planned.Tags, err = p.tags(ctx, o, shown); err != nil {
		return err
	}
	delete(shown, noTree)
	if err := p.trees(ctx, o, shown); err != nil {
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
	if there {
		p.RowsThere += planned.rows()
	} else {
		p.Rows += planned.rows()
	}
	return nil
}

// inTarget reports what earlier runs have brought of a repository, and returns ErrTargetTaken where the target has one of that
// name which this migration did not bring there. One in deletion is nobody's, and one in creation may be what an earlier run had
// sent last, which came late: whoever begins a repository of the name waits for the end of either.
func (p *planning) inTarget(ctx context.Context, id string) (there, begun bool, err error) {
	stored, err := p.refs().GetRepository(ctx, graveler.RepositoryID(id))
	if errors.Is(err, graveler.ErrRepositoryNotFound) {
		return false, false, nil
	}
	if err != nil || stored.State == graveler.RepositoryInDeletion {
		return false, false, err
	}
	note, err := p.records().repository(ctx, id)
	if err != nil {
		return false, false, err
	}
	brought, creating := note != nil && note.Uid == stored.UID, stored.State == graveler.RepositoryCreating
	if !brought && (note == nil || !creating) {
		return false, false, fmt.Errorf("%w: a repository of this name", ErrTargetTaken)
	}
	return brought && !creating, brought && creating, nil
}

// tags looks at the tags, and adds the trees that they show.
func (p *planning) tags(ctx context.Context, o *origin, shown map[int32][]string) (n int64, err error) {
	for row, err := range o.tags(ctx, o.repositoryRow) {
		if bad := badRecord(err); bad != nil {
			p.note(bad)
			continue
		}
		if err != nil {
			return 0, err
		}
		n++
		at, err := o.taggedCommit(row)
		if err != nil {
			p.note(o.rowError(tagItem, row.id, err))
			continue
		}
		tree := o.history.commits[at].tree
		shown[tree] = append(shown[tree], "tag "+row.id)
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
func (p *planning) trees(ctx context.Context, o *origin, shown map[int32][]string) error {
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
		tokens = append(tokens, p.own(o, b.name, b.tokens)...)
	}
	for _, b := range o.refused {
		tokens = append(tokens, p.own(o, b.id, b.tokens)...)
	}
	return tokens
}

// own notes which branch has tokens.
func (p *planning) own(o *origin, branch string, tokens []string) []string {
	for i, token := range tokens {
		if other, taken := p.owners[token]; taken {
			p.note(&RowError{Table: p.r.table(branchItem), Key: other.repository + "/" + other.branch, Reason: fmt.Errorf("it has the staging token %s, as %s/%s has", quoted(token), o.id, branch)})
		}
		p.owners[token] = tokenOwner{o.id, branch, tokens[:i], o.value}
	}
	return tokens
}

// owned reports whether a branch has a token.
func (p *planning) owned(token string) bool { _, ok := p.owners[token]; return ok }

// leftBehind counts what nothing refers to.
func (p *planning) leftBehind(ctx context.Context) error {
	for l, err := range p.r.leftBehind(ctx, p.owned) {
		if err != nil {
			return err
		}
		p.leave(l)
	}
	return nil
}

// stagedRows has the database look for staged rows that cannot be carried over, and for branches that show more than what is
// staged under their tokens.
func (p *planning) stagedRows(ctx context.Context) error {
	valueBytes := graveler.MaxValueBytes
	if p.source.lakeFS {
		valueBytes = catalog.MaxTextBytes // below which nothing of an object can be too large
	}
	type hideable struct {
		row     suspectRow
		problem *RowError
	}
	var mayBeHidden []hideable
	for v, err := range p.r.suspects(ctx, p.owned, valueBytes) {
		if err != nil {
			return err
		}
		owner := p.owners[v.token]
		err := v.unreadable
		if err == nil {
			_, err = owner.value(v.stagedRow) // a long key may be a reserved one, a large value one that is allowed
		}
		if err == nil {
			continue
		}
		problem := &RowError{Table: p.r.table(entryItem), Repository: owner.repository, Key: "branch " + owner.branch + ", key " + string(v.key), Reason: err}
		if len(owner.before) == 0 {
			p.note(problem)
		} else {
			v.identity, v.data = nil, nil
			mayBeHidden = append(mayBeHidden, hideable{v, problem})
		}
	}
	for _, h := range mayBeHidden {
		hidden, err := p.r.hasKey(ctx, p.owners[h.row.token].before, h.row.key)
		if err != nil {
			return err
		}
		if !hidden {
			p.note(h.problem)
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
