// SPDX-License-Identifier: Apache-2.0

// Command compatlakefs migrates deployments that lakeFS itself has written, and compares what becomes of them with what lakeFS
// reads from them. Scripts/compat-lakefs runs it.
//
//	compatlakefs DIR
//
// DIR has the folders old and new, each with a database dump, range files, and expected.json. Every set is migrated to bbolt and
// to PostgreSQL; a run is killed at random points and resumed; and one byte is changed here and there, which the comparison of
// both sides must find. A line is printed for each kind of thing that was compared, and the exit code is 1 if anything differs.
// It needs PostgreSQL, tar and xz, and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/moraine-store/moraine/internal/pgserver"
	"github.com/moraine-store/moraine/pkg/migrate"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := act(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "compatlakefs:", err)
		os.Exit(1)
	}
}

func act(ctx context.Context, arguments []string) error {
	if len(arguments) == 5 && arguments[0] == childCommand {
		return runChild(ctx, arguments[1:])
	}
	if len(arguments) != 1 {
		return errors.New("usage: compatlakefs DIR")
	}
	return checkAll(ctx, arguments[0])
}

// sets are the data sets by name: where each is, and its files.
func sets(dir string) []dataset {
	old, recent := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	return []dataset{
		{"old", filepath.Join(old, "dump.sql.gz"), []string{filepath.Join(old, "blocks.tar.xz")}, filepath.Join(old, "expected.json"), filepath.Join(old, "heads.txt.xz")},
		{
			"oddities", filepath.Join(old, "dump-oddities.sql.gz"), []string{filepath.Join(old, "blocks.tar.xz"), filepath.Join(old, "blocks-oddities-extra.tar.xz")},
			filepath.Join(old, "expected-oddities.json"), filepath.Join(old, "heads-oddities.txt.xz"),
		},
		{"new", filepath.Join(recent, "kv-dump.sql.gz"), []string{filepath.Join(recent, "blocks.tar.xz")}, filepath.Join(recent, "expected.json"), filepath.Join(recent, "heads.txt.xz")},
	}
}

func checkAll(ctx context.Context, dir string) (err error) {
	scratch, err := os.MkdirTemp("", "compat-lakefs-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	server, err := pgserver.Start("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	differences := 0
	for _, set := range sets(dir) {
		s, err := set.load(ctx, server, filepath.Join(scratch, set.name))
		if err != nil {
			return fmt.Errorf("load %s: %w", set.name, err)
		}
		n, err := s.check(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", set.name, err)
		}
		differences += n
	}
	if differences > 0 {
		return fmt.Errorf("%d differences", differences)
	}
	fmt.Println("all is equal")
	return nil
}

// check makes every check of a data set, and returns how many differences there were.
func (s *loaded) check(ctx context.Context) (differences int, err error) {
	postgres, err := s.newTarget(ctx, "postgres")
	if err != nil {
		return 0, err
	}
	bolt, err := s.newTarget(ctx, "bolt")
	if err != nil {
		return 0, err
	}
	var whole run
	for _, part := range []func() (int, error){
		func() (int, error) { return s.checkSource(ctx) },
		func() (n int, err error) { n, _, err = s.checkTarget(ctx, postgres); return n, err },
		func() (n int, err error) { n, whole, err = s.checkTarget(ctx, bolt); return n, err },
		func() (int, error) { return s.checkAltered(ctx, bolt) },
		func() (int, error) { return s.checkKilled(ctx, whole) },
	} {
		n, err := part()
		differences += n
		if err != nil {
			return differences, err
		}
	}
	return differences, nil
}

// run is what a migration was.
type run struct {
	migrate.Report
	took time.Duration
}

// checkTarget migrates into an empty target, and compares.
func (s *loaded) checkTarget(ctx context.Context, t target) (differences int, whole run, err error) {
	start := time.Now()
	whole.Report, err = t.run(ctx, s.source())
	whole.took = time.Since(start)
	if err != nil {
		return 0, whole, fmt.Errorf("target %s: %w", t.kind, err)
	}
	fmt.Printf("%-9s %-16s %d repositories, %d rows, %d trees; left behind: %s\n", s.name, t.kind, whole.Copied, whole.Rows, whole.Trees, leftBehind(whole.Plan))
	differences, err = s.compare(ctx, t, t.kind)
	return differences, whole, err
}
