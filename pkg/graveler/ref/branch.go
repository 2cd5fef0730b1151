// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
)

// GetBranch implements [graveler.Branches].
func (s *Store) GetBranch(ctx context.Context, repo *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	b, err := get(ctx, s, locateBranch(repo, id), graveler.ErrBranchNotFound, decodeBranch)
	return b, wrap(err, "get branch %s/%s", repo.ID, id)
}

// PutBranch implements [graveler.Branches].
func (s *Store) PutBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch) (graveler.Stamp, error) {
	return s.PublishBranch(ctx, repo, b, graveler.Preceding{})
}

// branchData is the stored form of a branch, on top of what it replaces.
func branchData(b *graveler.Branch) (*refpb.BranchData, error) {
	m := &refpb.BranchData{}
	if err := overStamp(b.Stamp, m); err != nil {
		return nil, err
	}
	items, err := itemsData(b.Items, m.Items)
	if err != nil {
		return nil, err
	}
	m.Id = string(b.ID)
	m.Uid = b.UID
	m.State = refpb.BranchState(b.State)
	m.Head = string(b.Head)
	m.Token = string(b.Token)
	m.ItemCounter = b.ItemCounter
	m.Items = items
	m.Base = string(b.Base)
	m.Hidden = b.Hidden
	m.LastMove = lastMoveData(b.LastMove, m.LastMove)
	m.Nonce = b.Nonce
	m.Protected = uint32(b.Protected)
	m.ReadOnly = b.ReadOnly
	if err := checkBranch(m); err != nil {
		return nil, invalid("%v", err)
	}
	return m, nil
}

// RemoveBranch implements [graveler.Branches].
func (s *Store) RemoveBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch) error {
	return wrap(s.remove(ctx, locateBranch(repo, b.ID), b.Stamp), "remove branch %s/%s", repo.ID, b.ID)
}

// ScanBranches implements [graveler.Branches].
func (s *Store) ScanBranches(ctx context.Context, repo *graveler.Repository, from graveler.BranchID) iter.Seq2[*graveler.Branch, error] {
	return scan(ctx, s, "branches of "+string(repo.ID), repo.Partition(), branchesPrefix, string(from), decodeBranch)
}

func locateBranch(repo *graveler.Repository, id graveler.BranchID) location {
	return location{[]byte(repo.Partition()), BranchKey(id)}
}

func decodeBranch(at location, value []byte) (*graveler.Branch, error) {
	m := &refpb.BranchData{}
	if err := at.decode(value, m, func() string { return branchesPrefix + m.Id }); err != nil {
		return nil, err
	}
	if err := checkBranch(m); err != nil {
		return nil, at.corrupt(err)
	}
	b := &graveler.Branch{
		ID:          graveler.BranchID(m.Id),
		UID:         m.Uid,
		State:       graveler.BranchState(m.State),
		Head:        graveler.CommitID(m.Head),
		Token:       graveler.StagingToken(m.Token),
		ItemCounter: m.ItemCounter,
		Base:        graveler.MetaRangeID(m.Base),
		Hidden:      m.Hidden,
		Nonce:       m.Nonce,
		Protected:   graveler.Actions(m.Protected),
		ReadOnly:    m.ReadOnly,
		Stamp:       value,
	}
	for _, item := range m.Items {
		b.Items = append(b.Items, graveler.Item{
			Number: item.Number,
			Token:  graveler.StagingToken(item.GetToken()),
			Prefix: item.GetDeletedPrefix(),
		})
	}
	if m.LastMove != nil {
		b.LastMove = moveOf(m.LastMove)
	}
	return b, nil
}

// checkBranch says why a record cannot be one, whether it was read or is to be written.
func checkBranch(m *refpb.BranchData) error {
	if m.Id == "" || m.Uid == "" {
		return fmt.Errorf("branch %q has UID %q", m.Id, m.Uid)
	}
	switch graveler.BranchState(m.State) {
	case graveler.BranchLive, graveler.BranchDeleted:
	default:
		return fmt.Errorf("unknown state %d", m.State)
	}
	if err := checkItems(m); err != nil {
		return err
	}
	if m.LastMove != nil {
		return checkMove(m.LastMove)
	}
	return nil
}

func checkItems(m *refpb.BranchData) error {
	for i, item := range m.Items {
		if _, prefix := item.Kind.(*refpb.Item_DeletedPrefix); !prefix && item.GetToken() == "" {
			return fmt.Errorf("item %d is neither a token nor a deleted prefix", item.Number)
		}
		if item.Number > m.ItemCounter || i > 0 && item.Number >= m.Items[i-1].Number {
			return fmt.Errorf("item %d is not older than what was added after it", item.Number)
		}
	}
	return nil
}

// itemsData is the stored form of a sealed list. Items that stood in the record before stay as they
// were stored: numbers are never reused, and they may have fields that this program does not know.
func itemsData(items []graveler.Item, before []*refpb.Item) ([]*refpb.Item, error) {
	stored := make(map[uint64]*refpb.Item, len(before))
	for _, m := range before {
		stored[m.Number] = m
	}
	data := make([]*refpb.Item, len(items))
	for i, item := range items {
		if item.Token != "" && len(item.Prefix) > 0 {
			return nil, invalid("item %d is both a token and a deleted prefix", item.Number)
		}
		m := stored[item.Number]
		if m == nil {
			m = &refpb.Item{Number: item.Number}
		}
		if item.Token != "" {
			m.Kind = &refpb.Item_Token{Token: string(item.Token)}
		} else {
			m.Kind = &refpb.Item_DeletedPrefix{DeletedPrefix: item.Prefix}
		}
		data[i] = m
	}
	return data, nil
}

// lastMoveData is the stored form of a branch's last move, nil where there is none yet. before is the
// one that the record had.
func lastMoveData(move graveler.Move, before *refpb.MoveData) *refpb.MoveData {
	if move == (graveler.Move{}) {
		return nil
	}
	m := &refpb.MoveData{}
	if before.GetTime() == move.Time {
		m = before
	}
	setMove(m, move)
	return m
}
