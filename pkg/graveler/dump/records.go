// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
)

// The messages of a dump and the records of package graveler, each way.

func pinData(p graveler.Pin) *dumppb.Pin {
	m := &dumppb.Pin{Owner: p.Owner, Logs: p.Logs}
	for _, tree := range p.Trees {
		m.Trees = append(m.Trees, string(tree))
	}
	return m
}

func pinOf(m *dumppb.Pin) graveler.Pin {
	p := graveler.Pin{Owner: m.Owner, Logs: m.Logs}
	for _, tree := range m.Trees {
		p.Trees = append(p.Trees, graveler.MetaRangeID(tree))
	}
	return p
}

func branchData(b graveler.Branch) *dumppb.Branch {
	m := &dumppb.Branch{Id: string(b.ID), Uid: b.UID, Head: string(b.Head), ItemCounter: b.ItemCounter, Hidden: b.Hidden}
	if b.LastMove.Time != 0 {
		m.LastMove = moveData(b.LastMove)
	}
	return m
}

func branchOf(m *dumppb.Branch) graveler.Branch {
	b := graveler.Branch{ID: graveler.BranchID(m.Id), UID: m.Uid, Head: graveler.CommitID(m.Head), ItemCounter: m.ItemCounter, Hidden: m.Hidden}
	if m.LastMove != nil {
		b.LastMove = moveOf(m.LastMove)
	}
	return b
}

func moveData(m graveler.Move) *dumppb.Move {
	return &dumppb.Move{
		Time: m.Time, Previous: m.Previous, Op: dumppb.Op(m.Op), Old: string(m.Old), New: string(m.New), CommittedThrough: m.CommittedThrough, Actor: m.Actor,
	}
}

func moveOf(m *dumppb.Move) graveler.Move {
	return graveler.Move{
		Time: m.Time, Previous: m.Previous, Op: graveler.Op(m.Op), Old: graveler.CommitID(m.Old), New: graveler.CommitID(m.New), CommittedThrough: m.CommittedThrough, Actor: m.Actor,
	}
}

func entryData(e graveler.Entry) *dumppb.Entry {
	m := &dumppb.Entry{Key: e.Key}
	if e.Value != nil {
		m.Identity, m.Data = e.Value.Identity, e.Value.Data
	}
	return m
}

func entryOf(m *dumppb.Entry) graveler.Entry {
	e := graveler.Entry{Key: m.Key}
	if len(m.Identity) > 0 || len(m.Data) > 0 {
		e.Value = &graveler.Value{Identity: m.Identity, Data: m.Data}
	}
	return e
}

func commitData(c *graveler.Commit) *dumppb.Commit {
	m := &dumppb.Commit{
		Id: string(c.ID), Version: int64(c.Version), Committer: c.Committer, Message: c.Message, Tree: string(c.Tree), CreatedAt: nanoseconds(c.CreatedAt),
		Metadata: c.Metadata, Generation: c.Generation, LogTime: c.LogTime, Nonce: c.Nonce,
	}
	for _, p := range c.Parents {
		m.Parents = append(m.Parents, string(p))
	}
	return m
}

func commitOf(m *dumppb.Commit) *graveler.Commit {
	c := &graveler.Commit{
		ID: graveler.CommitID(m.Id), Version: int(m.Version), Committer: m.Committer, Message: m.Message, Tree: graveler.MetaRangeID(m.Tree), CreatedAt: instant(m.CreatedAt),
		Metadata: m.Metadata, Generation: m.Generation, LogTime: m.LogTime, Nonce: m.Nonce,
	}
	for _, p := range m.Parents {
		c.Parents = append(c.Parents, graveler.CommitID(p))
	}
	return c
}

// nanoseconds writes the zero time, which is no instant, as nil.
func nanoseconds(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	ns := t.UnixNano()
	return &ns
}

func instant(ns *int64) time.Time {
	if ns == nil {
		return time.Time{}
	}
	return time.Unix(0, *ns).UTC()
}
