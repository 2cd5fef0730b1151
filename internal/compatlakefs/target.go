// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/migrate"
)

// target is a store to migrate into, closed between calls.
type target struct {
	kind          string
	store, blocks string // URLs
}

// newTarget makes an empty target of a kind: bolt, postgres.
func (s *loaded) newTarget(ctx context.Context, kind string) (target, error) {
	dir, err := os.MkdirTemp(s.scratch, kind+"-")
	if err != nil {
		return target{}, err
	}
	t := target{kind, "bolt:" + filepath.Join(dir, "meta.db"), "file:" + filepath.Join(dir, "blocks")}
	if kind == "postgres" {
		t.store, err = newDatabase(ctx, s.server, "target_"+s.name)
	}
	return t, err
}

// use opens the target.
func (t target) use(ctx context.Context, do func(store *moraine.Store, engine kv.Store) error) error {
	engine, err := kv.Open(ctx, t.store, all.Engines(), kv.OpenOptions{})
	if err != nil {
		return err
	}
	store, err := moraine.Open(ctx, moraine.Options{KV: engine, Blocks: t.blocks})
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	return errors.Join(do(store, engine), store.Close(), engine.Close())
}

func (t target) migration(s source, store *moraine.Store, engine kv.Store) *migrate.Migration {
	return &migrate.Migration{
		Source: "lakefs+" + s.url, SourceBlocks: "file:" + s.blocks, BlockEngines: engines(),
		KV: engine, Graveler: store.Graveler,
	}
}

// source is where to migrate from.
type source struct{ url, blocks string }

func (s *loaded) source() source { return source{s.url, s.blocks} }

func engines() block.Engines { return block.Engines{"file": local.Open} }

// run runs a migration, or goes on with it.
func (t target) run(ctx context.Context, s source) (report migrate.Report, err error) {
	return report, t.use(ctx, func(store *moraine.Store, engine kv.Store) error {
		report, err = t.migration(s, store, engine).Run(ctx)
		return err
	})
}

func leftBehind(p migrate.Plan) string {
	if len(p.Left) == 0 {
		return "nothing"
	}
	var all []string
	for _, l := range p.Left {
		all = append(all, fmt.Sprintf("%d rows of %s %s", l.Rows, l.Table, l.Owner))
	}
	return strings.Join(all, ", ")
}

func (t target) verify(ctx context.Context, s *loaded) (verified migrate.Verified, err error) {
	err = t.use(ctx, func(store *moraine.Store, engine kv.Store) (err error) {
		verified, err = t.migration(s.source(), store, engine).Verify(ctx)
		return err
	})
	return verified, err
}
