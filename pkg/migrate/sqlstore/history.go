// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A row of the old program has no log time, and its generation may be missing or wrong: merges and logs would go astray by it,
// and no other store would take the commit. Both follow from the ancestors, which never change. So the first read of such a
// commit reads the graph of its repository, which is kept; a commit that is not in it has come since, and has it read again.

// place is where a commit stands behind its ancestors.
type place struct{ generation, logTime int64 }

// follow puts the place behind that of a parent.
func (p *place) follow(parent place) {
	p.generation, p.logTime = max(p.generation, parent.generation+1), max(p.logTime, parent.logTime+1)
}

// firstPlace is that of a commit without parents: its log time is when it was created, but not before the epoch, and a date that
// cannot be told in nanoseconds does not count.
func firstPlace(created *time.Time) place {
	p := place{1, 1}
	if created != nil && created.After(time.Unix(0, 1)) {
		p.logTime = created.UnixNano()
	}
	return p
}

// history is the graph of a repository's commits, and their places. It takes some 130 bytes for each.
type history struct {
	index   map[string]int32 // by ID: where it is in commits
	commits []pastCommit
	parents []int32 // of all commits
}

// pastCommit is a commit that has a row, or that one names as a parent.
type pastCommit struct {
	place             // at first that of the record, or firstPlace
	first, last int32 // its parents are parents[first:last]
	state       commitState
}

type commitState int8

const (
	noRow commitState = iota // retention has removed it, or it is damage of those that name it: it does not count
	unplaced
	onTheWay
	placed
)

// at returns the place in commits of a commit, which it adds where it is new.
func (h *history) at(id string) int32 {
	at, known := h.index[id]
	if !known {
		at = int32(len(h.commits))
		h.index[id] = at
		h.commits = append(h.commits, pastCommit{})
	}
	return at
}

// add takes in a row. Where it is taken in twice, the last one counts.
func (h *history) add(id string, parents []string, p place, state commitState) {
	at := h.at(id)
	c := pastCommit{place: p, state: state, first: int32(len(h.parents))}
	for _, parent := range parents {
		h.parents = append(h.parents, h.at(parent))
	}
	c.last = int32(len(h.parents))
	h.commits[at] = c
}

// settle works the places out, once all rows are there. Commits that are their own ancestors are graveler.ErrCorrupt.
func (h *history) settle() error {
	for start := range h.commits {
		if cyclic := h.climb(int32(start)); cyclic >= 0 {
			for id, at := range h.index {
				if at == cyclic {
					return corrupt("graveler_commits", id, fmt.Errorf("is its own ancestor"))
				}
			}
		}
	}
	h.parents = nil
	return nil
}

// climb places a commit, after its ancestors. It returns one that is its own ancestor, or -1.
func (h *history) climb(start int32) (cyclic int32) {
	// A walk by hand: histories are deeper than stacks.
	for way := []int32{start}; len(way) > 0; {
		c := &h.commits[way[len(way)-1]]
		if c.state == noRow || c.state == placed {
			way = way[:len(way)-1]
			continue
		}
		p, ready := c.place, true
		c.state = onTheWay
		for _, at := range h.parents[c.first:c.last] {
			switch parent := &h.commits[at]; parent.state {
			case noRow:
			case placed:
				p.follow(parent.place)
			case unplaced:
				way, ready = append(way, at), false
			case onTheWay:
				return at
			}
		}
		if ready {
			c.place, c.state = p, placed
		}
	}
	return -1
}

// placeOf returns the place of a commit of the old program as its row says. It returns false where the graph does not have the commit, or not so.
func (h *history) placeOf(c *graveler.Commit) (place, bool) {
	if h == nil {
		return place{}, false
	}
	at, known := h.index[string(c.ID)]
	p := firstPlace(&c.CreatedAt)
	for _, parent := range c.Parents {
		parentAt, parentKnown := h.index[string(parent)]
		if known = known && parentKnown; !known {
			break
		}
		if parent := h.commits[parentAt]; parent.state == placed {
			p.follow(parent.place)
		}
	}
	return p, known && h.commits[at].state == placed && h.commits[at].place == p
}

// complete gives commits of the old program, as their rows are, what those do not say: their places, and then their digests, which are of the whole.
func (s *Store) complete(ctx context.Context, repo *graveler.Repository, commits ...*graveler.Commit) error {
	for _, c := range commits {
		if c.Nonce != "" || !c.Carried() {
			continue
		}
		p, err := s.place(ctx, repo, c)
		if err != nil {
			return err
		}
		c.Generation, c.LogTime = p.generation, p.logTime
		c.Nonce = c.Digest()
	}
	return nil
}

// place returns the place of a commit whose row has been read.
func (s *Store) place(ctx context.Context, repo *graveler.Repository, c *graveler.Commit) (place, error) {
	known := s.history(repo)
	// The first that is read anew may have been under way before the row was there; the second has it.
	for range 3 {
		if p, ok := known.placeOf(c); ok {
			return p, nil
		}
		var err error
		if known, err = s.newHistory(ctx, repo, known); err != nil {
			return place{}, err
		}
	}
	return place{}, fmt.Errorf("%w: the row of %s was removed or changed while it was read", graveler.ErrCommitNotFound, c.ID)
}

// history is the graph that was read last, nil where none was.
func (s *Store) history(repo *graveler.Repository) *history {
	known, _ := s.histories.Load(repo.Partition())
	h, _ := known.(*history)
	return h
}

// newHistory returns a graph that was read later than another. Only one is read at a time.
func (s *Store) newHistory(ctx context.Context, repo *graveler.Repository, than *history) (*history, error) {
	select {
	case s.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.reading }()
	if h := s.history(repo); h != than {
		return h, nil
	}
	h, err := s.readHistory(ctx, repo)
	if err != nil {
		return nil, fmt.Errorf("read the history of %s: %w", repo.ID, err)
	}
	s.histories.Store(repo.Partition(), h)
	return h, nil
}

const scanHistory = here + ` SELECT c.id, c.parents, CASE WHEN ` + inRange + ` THEN c.creation_date END, m.record FROM graveler_commits AS c` + commitRecords + `
WHERE c.repository_id = $1 AND (SELECT held FROM here)`

func (s *Store) readHistory(ctx context.Context, repo *graveler.Repository) (*history, error) {
	h := &history{index: map[string]int32{}}
	_, err := rows(ctx, s, query{scanHistory, hereArguments(repo)}, func(row pgx.CollectableRow) (none struct{}, err error) {
		var id string
		var parents []string
		var created *time.Time
		var text *string
		if err := row.Scan(&id, &parents, &created, &text); err != nil {
			return none, err
		}
		if text == nil {
			h.add(id, parents, firstPlace(created), unplaced)
			return none, nil
		}
		var record commitRecord
		if err := decode("moraine_commits", id, *text, &record); err != nil {
			return none, err
		}
		h.add(id, nil, place{record.Generation, record.LogTime}, placed)
		return none, nil
	})
	if err == nil {
		err = h.settle()
	}
	return h, err
}
