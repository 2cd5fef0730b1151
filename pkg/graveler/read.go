// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Pages of a listing of what is staged grow from the first size to the last, in entries. A page is held in memory until it is proven.
const (
	firstPage = 1000
	lastPage  = 16_000
	// pageBytes is the memory at which a page ends even if it has fewer entries.
	pageBytes = 4 << 20
	// perItem is what an item takes besides its key and values.
	perItem = 128
)

// Get returns the value of key as ref shows it: a branch with its uncommitted changes, anything else as committed. It returns
// ErrEntryNotFound where the key is absent. An entry that was acknowledged before the call is never missed, whatever commits
// meanwhile. On a quiet branch it costs two reads of the key/value store, and a look into the tree where the entry is not staged.
// Of a commit that is named by its whole ID and was read before it costs only the look into the tree; once in a second the record
// of the repository is read too. A repository that another process has deleted may thus show commits for a second longer.
func (g *Graveler) Get(ctx context.Context, repo RepositoryID, ref string, key Key) (v *Value, err error) {
	defer g.observe("get", time.Now(), &err)
	if err := ValidateKey(key); err != nil {
		return nil, err
	}
	// Of a branch that this process has seen Get need not ask what the name is.
	known := false
	if !isCommitID(ref) {
		_, b := g.knownBranch(repo, BranchID(ref))
		known = b != nil
	}
	if known {
		v, err = g.getStaged(ctx, repo, BranchID(ref), key)
	}
	if !known || errors.Is(err, ErrBranchNotFound) {
		v, err = g.getRef(ctx, repo, ref, key)
	}
	if err == nil && v == nil {
		err = ErrEntryNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("get %s/%s:%s: %w", repo, ref, printable(key), err)
	}
	return v, nil
}

func (g *Graveler) getRef(ctx context.Context, repo RepositoryID, ref string, key Key) (v *Value, err error) {
	err = g.onRef(ctx, repo, ref, func(branch BranchID) (err error) {
		v, err = g.getStaged(ctx, repo, branch, key)
		return err
	}, func(r *Repository, c *Commit) error {
		tree, err := g.readableTree(ctx, r, c)
		if err == nil {
			v, err = g.trees.Get(ctx, r.Namespace, tree, key)
		}
		return g.unlessGone(ctx, r, err)
	})
	return v, err
}

func (g *Graveler) getStaged(ctx context.Context, repo RepositoryID, branch BranchID, key Key) (*Value, error) {
	var f found
	err := g.reading(ctx, repo, branch, func(v *view) (proven bool, err error) {
		f, err = v.get(ctx, key)
		return f.proven, err
	})
	return f.value, err
}

// reading calls read with a view of a branch, and again with a newer one until what read found is known to have been the state of
// the branch at some moment since the call began.
//
// What read finds in a record that this process knows is good if the record is still the current one afterwards. What it finds in
// a record that was read for this call is good if afterwards all its tokens are still listed, since a token is dropped only when
// no record lists it, above the same tree, or else writes made on another one might show together with what was below. read may
// say that its answer is proven: that it does not depend on a token having been empty.
func (g *Graveler) reading(ctx context.Context, id RepositoryID, branch BranchID, read func(v *view) (proven bool, err error)) error {
	return g.onBranch(ctx, id, branch, func(repo *Repository, b *Branch, fresh bool) error {
		proven := false
		v, err := g.viewOf(ctx, repo, b)
		if err == nil {
			proven, err = read(v)
		}
		if fresh && proven && err == nil {
			return nil
		}
		now, readErr := g.liveBranch(ctx, repo, branch)
		switch {
		case errors.Is(readErr, ErrBranchNotFound):
			return errStale
		case readErr != nil:
			return readErr
		case bytes.Equal(b.Stamp, now.Stamp):
			return err
		case fresh && err == nil && len(unlisted(b, now)) == 0 && now.Head == b.Head && now.Base == b.Base:
			return nil
		}
		return errStale
	})
}

// ListOptions says what List shows. The zero value shows everything.
type ListOptions struct {
	Prefix Key
	// Delimiter, if it is not empty, groups the keys that have it after the prefix: all that agree up to its first occurrence
	// there are one listing, a common prefix.
	Delimiter string
	// After leaves out every key and common prefix that is not greater.
	After Key
	// Limit ends the listing after so many; 0: at its end. A listing of a branch with a limit reads no more than that takes.
	Limit int
}

// Listing is an entry, or a common prefix where CommonPrefix is set: Key is the prefix then, and Value nil.
type Listing struct {
	Key          Key
	Value        *Value
	CommonPrefix bool
}

// List yields what ref shows, by key: a branch with its uncommitted changes, anything else as committed. What lies below a common
// prefix is skipped, not read. A listing of a branch is made page by page (of 1,000 to 16,000 entries, or a few megabytes). What
// was there before the page was begun and is not touched until it is done is listed exactly once; what changes meanwhile is
// listed as it was, as it is, or not at all. If the branch or its repository is deleted and made again during the iteration, it
// ends with a not-found error.
func (g *Graveler) List(ctx context.Context, repo RepositoryID, ref string, o ListOptions) iter.Seq2[Listing, error] {
	return sequence(func(emit func(Listing) bool) (err error) {
		defer g.observe("list", time.Now(), &err)
		emit = o.limited(emit)
		err = g.onRef(ctx, repo, ref, func(branch BranchID) error {
			return paged(ctx, g, repo, branch, o.start(), o.pageSize(), emit, func(v *view, from Key, emit func(Listing) bool) error {
				return v.list(ctx, from, o, emit)
			}, Listing.next, Listing.size)
		}, func(r *Repository, c *Commit) error {
			tree, err := g.readableTree(ctx, r, c)
			if err != nil {
				return err
			}
			return g.listTree(ctx, r, tree, o, emit)
		})
		if err != nil {
			return fmt.Errorf("list %s/%s: %w", repo, ref, err)
		}
		return nil
	})
}

func (g *Graveler) listTree(ctx context.Context, repo *Repository, tree MetaRangeID, o ListOptions, emit func(Listing) bool) error {
	it := g.trees.Scan(ctx, repo.Namespace, tree)
	it.SeekGE(o.start())
	return g.unlessGone(ctx, repo, closing(list(it, o, emit), it))
}

// start returns where a listing begins.
func (o ListOptions) start() Key {
	if bytes.Compare(o.Prefix, o.After) > 0 {
		return o.Prefix
	}
	return o.After
}

// pageSize returns the size of the first page.
func (o ListOptions) pageSize() int {
	if o.Limit > 0 {
		return min(o.Limit, lastPage)
	}
	return firstPage
}

// limited returns an emit that wants no more after the limit.
func (o ListOptions) limited(emit func(Listing) bool) func(Listing) bool {
	if o.Limit <= 0 {
		return emit
	}
	n := 0
	return func(l Listing) bool {
		n++
		return emit(l) && n < o.Limit
	}
}

// next returns the key from which a listing goes on after l, nil where nothing can follow.
func (l Listing) next() Key {
	if l.CommonPrefix {
		return prefixEnd(l.Key)
	}
	return after(l.Key)
}

// size returns about how much memory l takes.
func (l Listing) size() int { return perItem + len(l.Key) + l.Value.size() }

// after returns the least key that is greater than key.
func after(key Key) Key { return append(bytes.Clone(key), 0) }

// list emits what o selects of what the view shows from a key on.
func (v *view) list(ctx context.Context, from Key, o ListOptions, emit func(Listing) bool) error {
	it, err := v.entries(ctx, from, o.Prefix)
	if err != nil {
		return err
	}
	return closing(list(it, o, emit), it)
}

// list emits what o selects from it, which stands at o.start() or further.
func list(it Iterator[Entry], o ListOptions, emit func(Listing) bool) error {
	for it.Next() {
		e := it.Item()
		if !bytes.HasPrefix(e.Key, o.Prefix) {
			break
		}
		l := o.listing(e)
		if bytes.Compare(l.Key, o.After) > 0 && !emit(l) {
			return nil
		}
		if l.CommonPrefix {
			past := prefixEnd(l.Key)
			if past == nil {
				break
			}
			it.SeekGE(past)
		}
	}
	return it.Err()
}

func (o ListOptions) listing(e Entry) Listing {
	if o.Delimiter != "" {
		if i := bytes.Index(e.Key[len(o.Prefix):], []byte(o.Delimiter)); i >= 0 {
			return Listing{Key: bytes.Clone(e.Key[:len(o.Prefix)+i+len(o.Delimiter)]), CommonPrefix: true}
		}
	}
	c := e.Clone()
	return Listing{Key: c.Key, Value: c.Value}
}

// paged emits what collect finds in a branch, page by page, each page from one proven view. limit is the size of the first page;
// next gives the key from which to go on after an item, size its share of a page's memory.
func paged[T any](ctx context.Context, g *Graveler, repo RepositoryID, branch BranchID, from Key, limit int, emit func(T) bool,
	collect func(v *view, from Key, emit func(T) bool) error, next func(T) Key, size func(T) int) error {
	var of *view // that of the first page
	for ; ; limit = min(2*limit, lastPage) {
		var page []T
		var full bool
		most := limit
		err := g.reading(ctx, repo, branch, func(v *view) (bool, error) {
			if of == nil {
				of = v
			} else if v.repo.UID != of.repo.UID || v.branch.UID != of.branch.UID {
				return true, fmt.Errorf("%w: it was deleted and created again during the listing", ErrBranchNotFound)
			}
			memory := 0
			page, full = nil, false
			err := collect(v, from, func(item T) bool {
				page = append(page, item)
				memory += size(item)
				full = len(page) == most || memory >= pageBytes
				return !full
			})
			most = max(most/2, 1) // where commits keep overtaking the reader, a smaller page is done sooner
			return false, err
		})
		if err != nil {
			return err
		}
		for _, item := range page {
			if !emit(item) {
				return nil
			}
		}
		if !full {
			return nil
		}
		if from = next(page[len(page)-1]); from == nil {
			return nil
		}
	}
}
