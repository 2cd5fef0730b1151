// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
)

// begin finds out what there is to commit. Where a hook is to judge it, it is sealed at once. Else that waits for the commit's
// turn: until then the record is read, and sealed is what it becomes when its token is sealed, by whomever. That gives the
// token's item the next number of the counter, since nothing is added to a list but behind a seal.
func (c *committing) begin(ctx context.Context, branch BranchID) (err error) {
	c.unsealed = nil
	if c.g.hooks.PreCommit != nil {
		c.sealed, err = c.g.seal(ctx, c.repo, branch, false)
		return err
	}
	cur, err := c.g.liveBranch(ctx, c.repo, branch)
	if err != nil {
		return err
	}
	empty, err := c.g.isEmpty(ctx, cur.Token)
	if err != nil {
		return err
	}
	c.sealed = cur
	if !empty {
		c.unsealed = cur
		c.sealed = cur.Clone()
		push(c.sealed, Item{Token: cur.Token})
		c.sealed.Token = ""
	}
	return nil
}

// sealInTurn seals the token that begin found something in, unless another has done so since.
func (c *committing) sealInTurn(ctx context.Context) (err error) {
	found := c.unsealed
	if found == nil {
		return nil
	}
	cur := found
	known, ok := c.g.branches.GetIfPresent(c.g.branchKey(c.repo, found.ID))
	for look := ok && known.Nonce != found.Nonce; ; look = true {
		if look {
			if cur, err = c.g.liveBranch(ctx, c.repo, found.ID); err != nil {
				return err
			}
		}
		if cur.UID != found.UID || cur.Token != found.Token {
			return nil
		}
		sealed, err := c.sealOver(ctx, cur)
		if errors.Is(err, errStale) {
			continue
		}
		if err == nil {
			c.sealed = sealed // with what was staged while this commit waited
		}
		return err
	}
}

// sealOver seals the token of the record cur, if it still is the branch's.
func (c *committing) sealOver(ctx context.Context, cur *Branch) (*Branch, error) {
	p, err := c.g.addItems(ctx, c.repo, cur)
	if err != nil {
		return nil, err
	}
	return c.g.publish(ctx, c.repo, cur, 0, func(next *Branch) (*Commit, error) {
		if next.Token != cur.Token {
			return nil, errStale
		}
		return p(next)
	}, c.g.now())
}
