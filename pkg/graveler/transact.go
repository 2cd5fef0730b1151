// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallelKeys bounds how many keys of one transaction are read at the same time.
const parallelKeys = 64

// Transact is Update for several keys: change reads a branch and says what to write, and all of that is written in one atomic
// step, at an instant at which every key that change got is still as it was. So of transactions each of which gets what another
// one writes, one takes place at a time, on what the one before has left. (This is the optimistic method of Kung and Robinson,
// ACM TODS 6(2), 1981, with the branch record and the staged entries for versions.)
//
// change is called again, with a new Transaction, wherever a key that it got or the branch has changed meanwhile: it must have no
// other effects. In an attempt that is to be repeated, keys may have been got in states that they were in at different times; an
// error that change returns on that account does not count. Its error otherwise ends Transact, and nothing is written then. Where
// it returns an error or writes nothing, what it got was so at one instant during the call.
//
// The keys that are written and those that are got count together against what the store takes at once (StagingLimits: on most
// engines 1,000 keys and a few megabytes); more is ErrTooLarge. A key or value that cannot be kept is ErrInvalidName,
// ErrInvalidValue or ErrTooLarge. Nothing is written then. Another error, unless it is of a reading, means that the outcome is
// unknown: all was written or nothing.
//
// It costs what Get and List read and one fenced write, in which the keys that were got and not written leave no trace. Where
// nothing is written it costs another look at those keys that are not staged and at the branch record, and, if two or more of
// them are staged, a write that leaves these as they are.
func (g *Graveler) Transact(ctx context.Context, repo RepositoryID, branch BranchID, change func(ctx context.Context, tx *Transaction) error) (err error) {
	defer g.observe("transact", time.Now(), &err)
	err = g.onStageable(ctx, repo, branch, func(r *Repository, b *Branch) error {
		v, err := g.viewOf(ctx, r, b)
		if err != nil {
			return g.ifCurrent(ctx, r, b, err)
		}
		for {
			tx := &Transaction{view: v}
			if err := tx.run(ctx, change); !errors.Is(err, errOvertaken) {
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("transaction on %s/%s: %w", repo, branch, err)
	}
	return nil
}

// errOvertaken: a key that a transaction has read was staged meanwhile.
var errOvertaken = errors.New("overtaken by another write")

// Transaction is what a change that Transact makes sees of a branch and does to it. It is used by one goroutine at a time, and
// only until the function that it was given to returns.
type Transaction struct {
	view    *view
	touched []*touch // by key
	failed  error    // the first read that went wrong
}

// touch is what a transaction has to do with a key.
type touch struct {
	key   Key
	read  bool
	found found // where it was read
	// value is what the key is to be, which is what was found unless it was changed.
	value   *Value
	changed bool
}

// Get returns what the branch shows for each of the keys, in their order, or what the transaction has made of it; nil where a key
// is absent. The keys are read in parallel, each once in a transaction. The values are the caller's. An error, be it of an
// invalid key, ends the transaction, whatever change makes of it.
func (tx *Transaction) Get(ctx context.Context, keys ...Key) ([]*Value, error) {
	touches := make([]*touch, len(keys))
	var unread []*touch
	for i, key := range keys {
		t, known := tx.touch(key)
		if !known {
			tx.fail(ValidateKey(key))
			t.read = true
			unread = append(unread, t)
		}
		touches[i] = t
	}
	if tx.failed == nil {
		tx.fail(inParallel(ctx, unread, tx.read))
	}
	if tx.failed != nil {
		return nil, tx.failed
	}
	values := make([]*Value, len(touches))
	for i, t := range touches {
		values[i] = t.value.Clone()
	}
	return values, nil
}

func (tx *Transaction) read(ctx context.Context, t *touch) (err error) {
	t.found, err = tx.view.get(ctx, t.key)
	t.value = t.found.value
	return err
}

// fail keeps the first error: what was read is not all, so the transaction must not take place whatever is made of it.
func (tx *Transaction) fail(err error) { tx.failed = cmp.Or(tx.failed, err) }

// touch returns what there is about a key, and whether there was something before.
func (tx *Transaction) touch(key Key) (t *touch, known bool) {
	i, known := slices.BinarySearchFunc(tx.touched, key, func(t *touch, key Key) int { return bytes.Compare(t.key, key) })
	if !known {
		tx.touched = slices.Insert(tx.touched, i, &touch{key: bytes.Clone(key)})
	}
	return tx.touched[i], known
}

// inParallel calls do for each of some keys.
func inParallel(ctx context.Context, touches []*touch, do func(ctx context.Context, t *touch) error) error {
	if len(touches) == 1 { // the common case needs no goroutine
		return do(ctx, touches[0])
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelKeys)
	for _, t := range touches {
		group.Go(func() error { return do(ctx, t) })
	}
	return group.Wait()
}

// Repository returns the record of the repository that the branch is of.
func (tx *Transaction) Repository() Repository { return *tx.view.repo }

// Record names the writing of the branch record that the transaction works on: it is another one after every change of the
// record, and a transaction takes place only while its record is the current one. So what was found out after a record was first
// seen, and is changed only by those who change the record too (such as by ProtectBranches), still holds for a later transaction
// on the same record.
func (tx *Transaction) Record() string { return tx.view.branch.Nonce }

// List yields what the branch shows, by key, without what the transaction has changed. It is a hint: unlike what Get returns,
// what it yields may have changed when the transaction takes place, or while it is yielded. Whoever relies on an entry, or on its
// absence, gets its key. An error ends the transaction.
func (tx *Transaction) List(ctx context.Context, o ListOptions) iter.Seq2[Listing, error] {
	return sequence(func(emit func(Listing) bool) error {
		err := tx.view.list(ctx, o.start(), o, o.limited(emit))
		tx.fail(err)
		return err
	})
}

// Set stages value for key when the transaction takes place. If the key was not got, it is written whatever it is by then. The
// value must not be modified before Transact returns.
func (tx *Transaction) Set(key Key, value Value) {
	t, _ := tx.touch(key)
	t.value, t.changed = &value, true
}

// Delete removes key when the transaction takes place. If the key was got and is absent, that is no change.
func (tx *Transaction) Delete(key Key) {
	t, _ := tx.touch(key)
	t.value, t.changed = nil, !t.read || t.found.value != nil
}

// run makes one attempt. It returns errOvertaken or errStale where another one must be made, on the same record or on a newer one.
func (tx *Transaction) run(ctx context.Context, change func(ctx context.Context, tx *Transaction) error) error {
	err := cmp.Or(change(ctx, tx), tx.failed)
	writes := make([]StagedWrite, len(tx.touched))
	changed := false
	for i, t := range tx.touched {
		writes[i] = t.write()
		changed = changed || t.changed
		if err == nil && t.changed {
			if err = ValidateEntry(Entry{Key: t.key, Value: t.value}); err != nil {
				err = fmt.Errorf("%s: %w", printable(t.key), err)
			}
		}
	}
	if err != nil || !changed {
		return tx.unchanged(ctx, err)
	}
	return tx.apply(ctx, writes)
}

// write stages what the key is to be. Where it was read this depends on what was staged then: the fence proves that nothing below
// the token has changed, and this that nothing in it has. A key that was only read is checked and not staged again as it was
// shown: if the head is being moved, its new tree is to show there.
func (t *touch) write() StagedWrite {
	return StagedWrite{Key: t.key, Value: t.value, Conditional: t.read, If: t.found.staged.Stamp, Check: t.read && !t.changed}
}

func (tx *Transaction) apply(ctx context.Context, writes []StagedWrite) error {
	size := 0
	for _, w := range writes {
		size += w.Size()
	}
	v := tx.view
	if l := v.g.staging.Limits(); len(writes) > l.Writes || len(writes) > 1 && size > l.Bytes {
		return fmt.Errorf("%w: %d keys changed or read, of %d bytes; at most %d keys and %d bytes are allowed", ErrTooLarge, len(writes), size, l.Writes, l.Bytes)
	}
	err := v.g.staging.Apply(ctx, &Fence{Repository: v.repo, Branch: v.branch}, v.branch.Token, writes)
	switch {
	case errors.Is(err, ErrFenceFailed):
		return errStale
	case errors.Is(err, ErrChanged):
		return errOvertaken
	}
	return err
}

// unchanged returns the outcome of an attempt that changes nothing, if all that it has read was so at one instant.
//
// Of what is staged, that takes one conditional write: to look twice would not do, since an entry may have changed and changed
// back between the looks, each time at another moment than the others. What is not staged under a token later was not earlier
// either, since nothing leaves a token while the branch lists it.
func (tx *Transaction) unchanged(ctx context.Context, outcome error) error {
	v := tx.view
	var staged []StagedWrite
	var others []*touch
	for _, t := range tx.touched {
		switch {
		case !t.read || tx.failed != nil:
		case t.found.staged.Stamp == nil:
			others = append(others, t)
		default:
			staged = append(staged, StagedWrite{Key: t.key, Conditional: true, If: t.found.staged.Stamp, Check: true})
		}
	}
	if len(staged) > 1 {
		if err := tx.apply(ctx, staged); err != nil {
			return err
		}
	}
	if len(staged)+len(others) > 1 {
		err := inParallel(ctx, others, func(ctx context.Context, t *touch) error {
			now, err := v.g.staging.Get(ctx, v.branch.Token, t.key)
			if err == nil && now.Stamp != nil {
				err = errOvertaken
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return v.g.ifCurrent(ctx, v.repo, v.branch, outcome)
}
