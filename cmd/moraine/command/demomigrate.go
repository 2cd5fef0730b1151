// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/internal/oldsql"
	"github.com/moraine-store/moraine/internal/pgserver"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
)

// demoRows is how many rows the tour of a migration makes.
const demoRows = 150_000

// migration tours a migration.
func (t *tour) migration(ctx context.Context) (err error) {
	if err := t.say("A throw-away PostgreSQL gets the tables of a deployment that has kept its metadata there for years."); err != nil {
		return err
	}
	if err := t.app.printer.flush(); err != nil {
		return err
	}
	server, err := pgserver.Start("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	url := server.URL("postgres")
	if err := t.fill(ctx, url); err != nil {
		return err
	}
	if err := t.do(ctx, "A plan says what would be carried over, what would be refused and what would be left behind. Nothing is written.", []string{"migrate", "plan", "--from", url}); err != nil {
		return err
	}
	if err := t.runAndKill(ctx, url); err != nil {
		return err
	}
	repository := "lake-000"
	return t.do(ctx, "What is complete can be used, and nothing else is seen. The next run goes on where the last one was. Then both sides are compared, row by row.",
		[]string{"migrate", "status"},
		[]string{"migrate", "run", "--from", url},
		[]string{"migrate", "verify", "--from", url},
		[]string{"migrate", "cutover", "--from", url},
		[]string{"repo", "list"},
		[]string{"branch", "list", repository},
		[]string{"log", repository + "/main", "--limit", "3"},
		[]string{"fsck", repository})
}

// fill makes the tables, with range files in the store's block storage.
func (t *tour) fill(ctx context.Context, url string) (err error) {
	blocks, err := block.Open(ctx, t.app.blocks, t.app.blockEngines(creating), block.OpenOptions{})
	if err != nil {
		return t.app.unopened(err)
	}
	defer func() { err = errors.Join(err, blocks.Close()) }()
	trees, err := committed.New(committed.Config{Storage: func(_ context.Context, namespace string) (block.Storage, error) {
		return block.Sub(blocks, namespace), nil
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, trees.Close()) }()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	p := oldsql.Scaled(demoRows, 1)
	p.Trees = trees
	return oldsql.Write(ctx, conn, p)
}

// runAndKill has another process migrate, and kills it when it says that it is half way.
func (t *tour) runAndKill(ctx context.Context, url string) error {
	about := "A run is killed half way, as by a power cut."
	args := []string{"migrate", "run", "--from", url}
	if err := t.say(about); err != nil {
		return err
	}
	if err := errors.Join(t.app.printer.line("$ moraine migrate run --from "+shellQuote(url)), t.app.printer.flush()); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	run := exec.CommandContext(ctx, self, append([]string{"--store", t.app.store, "--blocks", t.app.blocks}, args...)...)
	run.Args[0] = filepath.Base(self)
	said, err := run.StderrPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return err
	}
	const half = 5 // of the lines for each tenth
	lines := bufio.NewScanner(said)
	for n := 1; lines.Scan(); n++ {
		t.app.note("%s", lines.Text())
		if n == half {
			if err := run.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
			break
		}
	}
	_, _ = io.Copy(io.Discard, said) // until it has ended
	if err := run.Wait(); err != nil && run.ProcessState.ExitCode() >= 0 {
		return fmt.Errorf("the run ended by itself: %w", err)
	}
	return t.app.printer.line("")
}
