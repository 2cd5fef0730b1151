// SPDX-License-Identifier: Apache-2.0

package fsck

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
)

// commitFacts is what is remembered of a commit. A generation of 0 means that its record does not decode.
type commitFacts struct {
	generation, logTime int64
	// carried commits came whole, and count as reached: nothing goes of them but a tree after its Expiration.
	carried bool
	// reached: a branch, a tag, a log or a carried commit leads there. Other commits were left by operations that were cut off,
	// or are on their way out: retention may have taken a parent or a tree of theirs already, in whatever order.
	reached bool
}

// index remembers the expirations and commits there are, and which commits are reached.
func (r *repository) index(ctx context.Context) error {
	w := reaching{repository: r, parents: map[digest][]digest{}, branches: map[digest]struct{}{}, starts: map[digest]int64{}}
	for s, err := range r.refs.ScanStored(ctx, r.record.Partition(), "") {
		if err == nil {
			err = w.enter(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	if err := w.endLog(ctx); err != nil {
		return err
	}
	for _, id := range w.heads {
		if err := w.begin(ctx, id); err != nil {
			return err
		}
	}
	w.follow()
	for id, facts := range w.commits {
		if facts.carried {
			w.next = append(w.next, id)
			w.follow()
		}
	}
	if w.lost {
		for id, facts := range w.commits {
			facts.reached = true
			w.commits[id] = facts
		}
	}
	return nil
}

// reaching finds out which commits are reached.
type reaching struct {
	*repository
	parents  map[digest][]digest
	branches map[digest]struct{} // by UID
	heads    []graveler.CommitID // of branches, which a scan meets before the commits
	starts   map[digest]int64    // of logs; what came before leads nowhere any more
	last     ref.LoggedMove      // that was met
	next     []digest            // reached, and not followed yet
	// lost: a record that may lead on is missing or does not decode. Nothing can be said to be out of reach then.
	lost bool
}

func (w *reaching) enter(ctx context.Context, s ref.Stored) error {
	w.lost = w.lost || s.Problem != nil
	if id, ok := strings.CutPrefix(string(s.Key), ref.CommitsPrefix); ok {
		w.commits[digestOf(id)] = commitFacts{}
	}
	switch record := s.Record.(type) {
	case *graveler.Branch:
		w.branch(record)
	case *graveler.Commit:
		w.commits[digestOf(record.ID)] = commitFacts{generation: record.Generation, logTime: record.LogTime, carried: record.Carried()}
		for _, p := range record.Parents {
			w.parents[digestOf(record.ID)] = append(w.parents[digestOf(record.ID)], digestOf(p))
		}
	case graveler.Expiration:
		if !record.Pending { // its tree is there
			w.expired[digestOf(record.Commit)] = struct{}{}
		}
	case ref.LogStart:
		w.starts[digestOf(record.UID)] = record.Time
	case ref.LoggedMove:
		return w.move(ctx, record)
	case *graveler.Tag:
		return w.begin(ctx, record.Commit)
	}
	return nil
}

func (w *reaching) branch(b *graveler.Branch) {
	w.branches[digestOf(b.UID)] = struct{}{}
	w.heads = append(w.heads, b.Head, b.LastMove.Old)
}

func (w *reaching) move(ctx context.Context, m ref.LoggedMove) error {
	if m.UID != w.last.UID {
		if err := w.endLog(ctx); err != nil {
			return err
		}
	}
	w.last = m
	if m.Time < w.starts[digestOf(m.UID)] {
		return nil
	}
	return errors.Join(w.begin(ctx, m.Old), w.begin(ctx, m.New))
}

// endLog looks for the branch of a log that does not end with a deletion, if it has not been met: it may be newer than what was.
// If there is none, the record is lost that named the head.
func (w *reaching) endLog(ctx context.Context) error {
	if _, met := w.branches[digestOf(w.last.UID)]; met || w.last.UID == "" || w.last.Op == graveler.OpDelete {
		return nil
	}
	b, err := w.branchOf(ctx, w.last.UID)
	switch {
	case err == nil:
		w.branch(b)
	case errors.Is(err, graveler.ErrNotFound), errors.Is(err, graveler.ErrCorrupt):
		w.lost = true
	default:
		return err
	}
	return nil
}

// branchOf finds a branch by what its log is called.
func (w *reaching) branchOf(ctx context.Context, uid string) (*graveler.Branch, error) {
	for name, err := range w.refs.ScanLogNames(ctx, w.record, "") {
		if err != nil {
			return nil, err
		}
		if name.UID == uid {
			b, err := w.refs.GetBranch(ctx, w.record, name.Branch)
			if err == nil && b.UID != uid {
				err = graveler.ErrBranchNotFound
			}
			return b, err
		}
	}
	return nil, graveler.ErrBranchNotFound
}

// begin reaches a commit that a branch, a tag or a move names. It may be newer than what is remembered.
func (w *reaching) begin(ctx context.Context, id graveler.CommitID) error {
	if id == "" {
		return nil
	}
	if _, ok := w.commits[digestOf(id)]; ok {
		w.next = append(w.next, digestOf(id))
		return nil
	}
	c, err := w.refs.GetCommit(ctx, w.record, id)
	if errors.Is(err, graveler.ErrNotFound) || errors.Is(err, graveler.ErrCorrupt) {
		w.lost = true
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range c.Parents {
		w.next = append(w.next, digestOf(p))
	}
	return nil
}

func (w *reaching) follow() {
	for len(w.next) > 0 {
		id := w.next[len(w.next)-1]
		w.next = w.next[:len(w.next)-1]
		facts, ok := w.commits[id]
		w.lost = w.lost || !ok
		if ok && !facts.reached {
			facts.reached = true
			w.commits[id] = facts
			w.next = append(w.next, w.parents[id]...)
		}
	}
}

// isReached counts commits that are newer than what is remembered among those that are.
func (r *repository) isReached(id graveler.CommitID) bool {
	facts, ok := r.commits[digestOf(id)]
	return facts.reached || !ok
}

// maxSuspects bounds the memory that suspects take.
const maxSuspects = 5_000

// suspects are findings that are damage if the commit that they are about is still reached: retention may have been at work while it was looked at.
type suspects struct {
	mu   sync.Mutex
	list []suspect
}

type suspect struct {
	of      graveler.CommitID
	finding Finding
}

// suspect keeps findings until it is known whether they are damage. Workers call it too.
func (r *repository) suspect(ctx context.Context, of graveler.CommitID, found []Finding) error {
	r.suspects.mu.Lock()
	defer r.suspects.mu.Unlock()
	for _, f := range found {
		r.suspects.list = append(r.suspects.list, suspect{of, f})
	}
	if len(r.suspects.list) < maxSuspects {
		return nil
	}
	return r.settle(ctx)
}

// settle reports those suspects that are damage: what is reached now was reached when it was looked at.
func (r *repository) settle(ctx context.Context) error {
	if len(r.suspects.list) == 0 {
		return nil
	}
	now := newRepository(r.check, r.record)
	if err := now.index(ctx); err != nil {
		return err
	}
	var found []Finding
	for _, s := range r.suspects.list {
		if now.commits[digestOf(s.of)].reached {
			found = append(found, s.finding)
		}
	}
	r.suspects.list = nil
	return r.damaged(ctx, found)
}
