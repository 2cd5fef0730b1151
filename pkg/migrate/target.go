// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// targetItems yields all that a repository of the target has, in the order of origin.items, as it is stored. What has come about
// since the migration is among it.
func (m *Migration) targetItems(ctx context.Context, repo *graveler.Repository) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		for _, part := range []func(context.Context, *graveler.Repository, func(*item) bool) error{m.targetSettings, m.targetTags, m.targetCommits, m.targetBranches} {
			more := true
			err := part(ctx, repo, func(i *item) bool {
				more = yield(i, nil)
				return more
			})
			if !more {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

func (m *Migration) targetSettings(ctx context.Context, repo *graveler.Repository, emit func(*item) bool) error {
	for name, err := range m.refs().ScanSettings(ctx, repo) {
		if err != nil {
			return err
		}
		document, _, err := m.refs().GetSetting(ctx, repo, name)
		if errors.Is(err, graveler.ErrSettingNotFound) {
			continue // it was removed just now
		}
		if err != nil {
			return err
		}
		if !emit(&item{kind: settingItem, key: name, document: document}) {
			return nil
		}
	}
	return nil
}

func (m *Migration) targetTags(ctx context.Context, repo *graveler.Repository, emit func(*item) bool) error {
	for t, err := range m.refs().ScanTags(ctx, repo, "") {
		if err != nil {
			return err
		}
		if !emit(&item{kind: tagItem, key: string(t.ID), head: t.Commit}) {
			return nil
		}
	}
	return nil
}

func (m *Migration) targetCommits(ctx context.Context, repo *graveler.Repository, emit func(*item) bool) error {
	for c, err := range m.refs().ScanCommits(ctx, repo, "") {
		if err != nil {
			return err
		}
		if !emit(&item{kind: commitItem, key: string(c.ID), commit: c, digest: c.Digest()}) {
			return nil
		}
	}
	return nil
}

func (m *Migration) targetBranches(ctx context.Context, repo *graveler.Repository, emit func(*item) bool) error {
	for b, err := range m.refs().ScanBranches(ctx, repo, "") {
		if err != nil {
			return err
		}
		more, err := m.targetBranch(ctx, repo, b, emit)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

func (m *Migration) targetBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch, emit func(*item) bool) (more bool, err error) {
	extra := len(b.Items)
	if b.Base != "" || b.State != graveler.BranchLive {
		extra++
	}
	if !emit(&item{kind: branchItem, branch: string(b.ID), head: b.Head, hidden: b.Hidden, move: b.LastMove, extra: extra, protected: b.Protected, readOnly: b.ReadOnly}) {
		return false, nil
	}
	for move, err := range m.refs().ScanMoves(ctx, repo, b.UID, 0, b.LastMove.Time-1) {
		if err != nil {
			return false, err
		}
		if !emit(&item{kind: moveItem, branch: string(b.ID), key: timeKey(move.Time), move: move}) {
			return false, nil
		}
	}
	it, err := m.staging().Scan(ctx, b.Token, nil, nil)
	if err != nil {
		return false, err
	}
	for it.Next() {
		e := it.Item()
		if !emit(&item{kind: entryItem, branch: string(b.ID), key: string(e.Key), value: e.Value.Clone()}) {
			return false, it.Close()
		}
	}
	return true, it.Close()
}

// targetRepository returns the record of a repository, nil where the target has none that can be used.
func (m *Migration) targetRepository(ctx context.Context, id string) (*graveler.Repository, error) {
	repo, err := m.refs().GetRepository(ctx, graveler.RepositoryID(id))
	if errors.Is(err, graveler.ErrRepositoryNotFound) || err == nil && repo.State != graveler.RepositoryActive {
		return nil, nil
	}
	return repo, err
}
