// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/kv"
)

// newOld makes a database for tables of the old kind.
func newOld(tb testing.TB) string { return testpg.Start(tb).NewDatabase(tb) }

// old fills a database with old data, whose range files are in the script's block storage, and names its URL in $OLD.
func (s *script) old(ts *testscript.TestScript, _ []string) {
	ctx, url := context.Background(), s.newOld()
	blocks, err := local.Open(ctx, "file:"+filepath.Join(s.work, "store", "blocks"), block.OpenOptions{})
	ts.Check(err)
	trees, err := committed.New(committed.Config{Storage: func(_ context.Context, namespace string) (block.Storage, error) {
		return block.Sub(blocks, namespace), nil
	}})
	ts.Check(err)
	p := oldsql.Params{Seed: 1, Repositories: 2, Branches: 3, Commits: 6, Tags: 2, Staged: 30, Orphans: 1, Bare: true, Trees: trees}
	s.inOld(ts, url, func(conn *pgx.Conn) error { return oldsql.Write(ctx, conn, p) })
	ts.Check(errors.Join(trees.Close(), blocks.Close()))
	ts.Setenv("OLD", url)
	s.places = append([][2]string{{url, "<old>"}, {kv.Redact(url), "<old>"}}, s.places...)
}

// oldsql changes the old data.
func (s *script) oldsql(ts *testscript.TestScript, args []string) {
	s.inOld(ts, ts.Getenv("OLD"), func(conn *pgx.Conn) error {
		_, err := conn.Exec(context.Background(), args[0])
		return err
	})
}

func (s *script) inOld(ts *testscript.TestScript, url string, do func(*pgx.Conn) error) {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	ts.Check(err)
	ts.Check(errors.Join(do(conn), conn.Close(ctx)))
}

// lake fills the database with what lakeFS keeps, as keys and values, and puts its files below lake; $OLD names it.
func (s *script) lake(ts *testscript.TestScript, _ []string) {
	ctx, url := context.Background(), s.newOld()
	d := lakegen.Random(lakegen.Params{Seed: 2, Repositories: 1, Commits: 12})
	ts.Check(d.WriteFiles(ctx, filepath.Join(ts.MkAbs("."), "lake")))
	s.inOld(ts, url, func(conn *pgx.Conn) error { return d.WriteKV(ctx, conn) })
	ts.Setenv("OLD", url)
	s.places = append([][2]string{{"lakefs+" + url, "<lake>"}, {kv.Redact("lakefs+" + url), "<lake>"}, {url, "<old>"}, {kv.Redact(url), "<old>"}}, s.places...)
}
