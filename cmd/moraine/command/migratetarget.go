// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// migrationTarget is the store that a migration leads into, while it is open.
type migrationTarget struct {
	*app
	kv    kv.Store
	store *moraine.Store
	there bool // it exists, with its block storage; otherwise an empty one stands for what does not
}

// useMigration calls fn with a migration that only reads the store, which may not exist yet.
func (a *app) useMigration(ctx context.Context, m *migrate.Migration, fn func() error) error {
	t, err := a.openTarget(ctx, m)
	if err != nil {
		return err
	}
	return errors.Join(fn(), t.close())
}

// migrateInto calls fn with a migration into the store, which is made when that is sure to begin.
func (a *app) migrateInto(ctx context.Context, m *migrate.Migration, fn func() error) error {
	t, err := a.openTarget(ctx, m)
	if err != nil {
		return err
	}
	forWriting := func(ctx context.Context) (kv.Store, *graveler.Graveler, error) {
		err := t.close()
		if err == nil {
			err = t.open(ctx, creating)
		}
		if err != nil {
			return nil, nil, err
		}
		return t.kv, t.store.Graveler, nil
	}
	if t.there { // nobody else should write there while the plan is made
		m.KV, m.Graveler, err = forWriting(ctx)
	} else {
		m.OpenTarget = forWriting
	}
	if err == nil {
		err = fn()
	}
	return errors.Join(err, t.close())
}

// openTarget opens the store for reading, and lets the migration see it.
func (a *app) openTarget(ctx context.Context, m *migrate.Migration) (*migrationTarget, error) {
	if a.backend() != nil {
		return nil, fmt.Errorf("migrate into store %s: %w", kv.Redact(a.store), fsck.ErrNoKV)
	}
	t := &migrationTarget{app: a}
	if err := t.open(ctx, reading); err != nil {
		return nil, err
	}
	m.KV, m.Graveler, m.BlockEngines = t.kv, t.store.Graveler, a.blockEngines(reading)
	return t, nil
}

// open opens the store. Who only reads gets an empty one in the place of a store that does not exist.
func (t *migrationTarget) open(ctx context.Context, how access) error {
	const none = "mem:"
	store, blocks := t.app.store, t.blocks
	if how == reading {
		if isMissing(store) {
			store = none
		}
		if isMissing(blocks) {
			blocks = none
		}
	}
	s, err := kv.Open(ctx, store, all.Engines(), kv.OpenOptions{ReadOnly: how == reading && store != none})
	if errors.Is(err, kv.ErrNotAStore) && how == reading && isDatabase(store) {
		store = none
		s, err = kv.Open(ctx, store, all.Engines(), kv.OpenOptions{})
	}
	if err != nil {
		return t.unopened(err)
	}
	o := moraine.Options{KV: s, Blocks: blocks, BlockEngines: t.blockEngines(how), ReadOnly: how == reading && blocks != none}
	opened, err := moraine.Open(ctx, o)
	if err != nil {
		return errors.Join(t.unopened(err), s.Close())
	}
	t.kv, t.store, t.there = s, opened, store == t.app.store && blocks == t.blocks
	return nil
}

// close closes what is open; again, it does nothing.
func (t *migrationTarget) close() error {
	if t.store == nil {
		return nil
	}
	err := errors.Join(t.store.Close(), t.kv.Close())
	t.store, t.kv = nil, nil
	return err
}
