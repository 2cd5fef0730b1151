// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Set stages value for key on a branch. When it returns nil the value is durable, and is in the next commit or stays uncommitted
// until something replaces it. Writes to one key are linearizable. It costs one write of the key/value store. An error that is
// not of bad input, not-found or read-only means that the outcome is unknown; repeating the call is safe.
func (g *Graveler) Set(ctx context.Context, repo RepositoryID, branch BranchID, key Key, value Value) error {
	return g.SetMany(ctx, repo, branch, []Entry{{Key: key, Value: &value}})
}

// SetMany stages many entries, in chunks as large as the store takes; a nil Value deletes its key, whether or not it is there.
// Where a key stands twice the last one counts. It is not atomic: on an error some of the entries may be staged. It is the way to
// stage in bulk; keys in ascending order are fastest.
func (g *Graveler) SetMany(ctx context.Context, repo RepositoryID, branch BranchID, entries []Entry) (err error) {
	defer g.observe("stage", time.Now(), &err)
	for _, e := range entries {
		if err := ValidateEntry(e); err != nil {
			return fmt.Errorf("stage %s/%s:%s: %w", repo, branch, printable(e.Key), err)
		}
	}
	limits := g.staging.Limits()
	for len(entries) > 0 {
		var chunk []StagedWrite
		chunk, entries = nextChunk(entries, limits)
		if err := g.stage(ctx, repo, branch, chunk); err != nil {
			return fmt.Errorf("stage %s/%s:%s: %w", repo, branch, printable(chunk[0].Key), err)
		}
	}
	return nil
}

// nextChunk splits off as many entries as one Apply takes. It ends before a key that the chunk has already.
func nextChunk(entries []Entry, limits StagingLimits) (chunk []StagedWrite, rest []Entry) {
	size := 0
	seen := map[string]bool{}
	for i, e := range entries {
		if len(entries) > 1 { // a lone write, the common case, needs no table
			if seen[string(e.Key)] {
				return chunk, entries[i:]
			}
			seen[string(e.Key)] = true
		}
		w := StagedWrite{Key: e.Key, Value: e.Value}
		size += w.Size()
		if len(chunk) > 0 && (len(chunk) == limits.Writes || size > limits.Bytes) {
			return chunk, entries[i:]
		}
		chunk = append(chunk, w)
	}
	return chunk, nil
}

// stage writes a chunk under the branch's token by the protocol that the engine is good at.
func (g *Graveler) stage(ctx context.Context, repo RepositoryID, branch BranchID, writes []StagedWrite) error {
	if g.staging.Limits().CheapFences {
		return g.stageFenced(ctx, repo, branch, writes)
	}
	return g.stageRechecked(ctx, repo, branch, writes)
}

// stageFenced writes while the branch record is the one that was read: a token never changes once it is sealed.
func (g *Graveler) stageFenced(ctx context.Context, id RepositoryID, branch BranchID, writes []StagedWrite) error {
	return g.onStageable(ctx, id, branch, func(repo *Repository, b *Branch) error {
		err := g.staging.Apply(ctx, &Fence{Repository: repo, Branch: b}, b.Token, writes)
		if errors.Is(err, ErrFenceFailed) {
			return errStale
		}
		return err
	})
}

// stageRechecked writes, and then makes sure by a read that started after the write that the token is still the staging token.
// Where it is not, a commit may have passed over the write: it is repeated under the new token, always. Before it is acknowledged
// a write may thus be seen, be gone again with a token that a commit had passed over, and take effect a second time.
func (g *Graveler) stageRechecked(ctx context.Context, id RepositoryID, branch BranchID, writes []StagedWrite) error {
	return g.onStageable(ctx, id, branch, func(repo *Repository, b *Branch) error {
		for {
			if err := g.staging.Apply(ctx, nil, b.Token, writes); err != nil {
				return err
			}
			now, err := g.liveBranch(ctx, repo, branch)
			if errors.Is(err, ErrBranchNotFound) {
				return errStale
			}
			if err != nil || now.Token == b.Token {
				return err
			}
			// The token may have been dropped before the write came: have it dropped once more.
			if !slices.Contains(tokens(now), b.Token) {
				if err := g.refs.PutCleanup(ctx, g.cleanupOf(repo, branch, b.Token)); err != nil {
					return err
				}
			}
			b = now
			if err := b.allow(ActionStage); err != nil {
				return fmt.Errorf("%w; it was not when the write began, which may have taken effect", err)
			}
		}
	})
}

// Delete removes key from what a branch shows. Deleting an absent key writes nothing and returns nil.
func (g *Graveler) Delete(ctx context.Context, repo RepositoryID, branch BranchID, key Key) (err error) {
	defer g.observe("delete", time.Now(), &err)
	if err := ValidateKey(key); err != nil {
		return err
	}
	var f found
	err = g.reading(ctx, repo, branch, func(v *view) (proven bool, err error) {
		if err = v.branch.allow(ActionStage); err == nil {
			f, err = v.get(ctx, key)
		}
		return f.proven, err
	})
	if err == nil && f.value != nil {
		err = g.stage(ctx, repo, branch, []StagedWrite{{Key: key}})
	}
	if err != nil {
		return fmt.Errorf("delete %s/%s:%s: %w", repo, branch, printable(key), err)
	}
	return nil
}

// SetIfAbsent stages value if the branch does not show key, else it returns ErrPreconditionFailed. Of several at the same time one succeeds.
func (g *Graveler) SetIfAbsent(ctx context.Context, repo RepositoryID, branch BranchID, key Key, value Value) error {
	return g.Update(ctx, repo, branch, key, func(cur *Value) (*Value, error) {
		if cur != nil {
			return nil, fmt.Errorf("%w: the entry exists", ErrPreconditionFailed)
		}
		return &value, nil
	})
}

// SetIf stages value if the branch shows key with the given identity, else it returns ErrPreconditionFailed.
func (g *Graveler) SetIf(ctx context.Context, repo RepositoryID, branch BranchID, key Key, value Value, identity []byte) error {
	return g.Update(ctx, repo, branch, key, func(cur *Value) (*Value, error) {
		switch {
		case cur == nil:
			return nil, fmt.Errorf("%w: the entry does not exist", ErrPreconditionFailed)
		case !bytes.Equal(cur.Identity, identity):
			return nil, fmt.Errorf("%w: the entry has another identity", ErrPreconditionFailed)
		}
		return &value, nil
	})
}

// Update replaces what a branch shows for key (nil: absent) by what change returns (nil: absent) in one atomic step. change is called
// again where the entry or the branch has changed meanwhile; it must not modify what it is given. Its error ends Update, nothing is written then.
func (g *Graveler) Update(ctx context.Context, repo RepositoryID, branch BranchID, key Key, change func(cur *Value) (*Value, error)) (err error) {
	defer g.observe("update", time.Now(), &err)
	if err := ValidateKey(key); err != nil {
		return err
	}
	err = g.onStageable(ctx, repo, branch, func(r *Repository, b *Branch) error {
		v, err := g.viewOf(ctx, r, b)
		if err != nil {
			return g.ifCurrent(ctx, r, b, err)
		}
		return g.updateIn(ctx, v, key, change)
	})
	if err != nil {
		return fmt.Errorf("update %s/%s:%s: %w", repo, branch, printable(key), err)
	}
	return nil
}

// updateIn looks and writes under one record: the fence proves that nothing below the token changed, the condition on the staged
// entry that nothing in it did.
func (g *Graveler) updateIn(ctx context.Context, v *view, key Key, change func(cur *Value) (*Value, error)) error {
	for {
		f, err := v.get(ctx, key)
		if err != nil {
			return g.ifCurrent(ctx, v.repo, v.branch, err)
		}
		next, err := change(f.value)
		if err == nil && next != nil {
			err = ValidateValue(next)
		}
		if err != nil || next == nil && f.value == nil {
			return g.ifCurrent(ctx, v.repo, v.branch, err)
		}
		write := StagedWrite{Key: key, Value: next, Conditional: true, If: f.staged.Stamp}
		err = g.staging.Apply(ctx, &Fence{Repository: v.repo, Branch: v.branch}, v.branch.Token, []StagedWrite{write})
		switch {
		case errors.Is(err, ErrFenceFailed):
			return errStale
		case !errors.Is(err, ErrChanged):
			return err
		}
	}
}

// ifCurrent returns the outcome of a look at a branch if its record is still the current one, else errStale: the look must be repeated.
func (g *Graveler) ifCurrent(ctx context.Context, repo *Repository, b *Branch, outcome error) error {
	now, err := g.readBranch(ctx, repo, b.ID)
	switch {
	case errors.Is(err, ErrBranchNotFound):
		return errStale
	case err != nil:
		return err
	case bytes.Equal(now.Stamp, b.Stamp):
		return outcome
	}
	return errStale
}

// DeletePrefix removes every key that starts with prefix from what a branch shows, at the same cost whether there are ten or ten
// million: the branch record is changed once and no entry is written. What is acknowledged before the call is gone when it
// returns. The empty prefix removes everything.
func (g *Graveler) DeletePrefix(ctx context.Context, repo RepositoryID, branch BranchID, prefix Key) (err error) {
	defer g.observe("delete-prefix", time.Now(), &err)
	if len(prefix) > MaxReservedKeyBytes {
		return fmt.Errorf("delete prefix: %w: prefix of %d bytes", ErrTooLarge, len(prefix))
	}
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	prefix = bytes.Clone(prefix)
	_, err = g.moveBranch(ctx, r, branch, ActionStage, func(cur *Branch) (plan, error) {
		if _, err := g.guard(ctx, r, branch, Revision{DeletesPrefix: true}); err != nil {
			return nil, err
		}
		add, err := g.addItems(ctx, r, cur, prefix)
		if err != nil || g.hooks.Guard == nil {
			return add, err
		}
		return func(next *Branch) (*Commit, error) {
			if next.Nonce != cur.Nonce {
				return nil, errStale // the guard may judge otherwise by now
			}
			return add(next)
		}, nil
	})
	if err != nil {
		return fmt.Errorf("delete prefix %s/%s:%s: %w", repo, branch, printable(prefix), err)
	}
	return nil
}

// printable shows a key in a message, on one line whatever it holds.
func printable(key Key) string {
	quoted := strconv.Quote(string(key))
	return quoted[1 : len(quoted)-1]
}
