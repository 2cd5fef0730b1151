// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"time"
)

// childCommand makes the program run a migration, which its parent kills.
const childCommand = "child"

// begun is what a child says when it begins.
const begun = "begun\n"

// kills is how often a run is killed before one may end.
const kills = 6

// runChild runs a migration: of the URL of a database, its files, into the URLs of a store.
func runChild(ctx context.Context, arguments []string) error {
	t := target{kind: "bolt", store: arguments[2], blocks: arguments[3]}
	fmt.Print(begun)
	_, err := t.run(ctx, source{arguments[0], arguments[1]})
	return err
}

// checkKilled kills a run at random points, lets it go on, and compares what came of it with what lakeFS reads. Whole is a run that nobody killed.
func (s *loaded) checkKilled(ctx context.Context, whole run) (int, error) {
	t, err := s.newTarget(ctx, "bolt")
	if err != nil {
		return 0, err
	}
	killed := 0
	for i := range kills {
		was, err := s.killOne(ctx, t, rand.N(whole.took*time.Duration(i+1)/kills)) // so that some are killed early, and some late
		if err != nil {
			return 0, err
		}
		if was {
			killed++
		}
	}
	if killed == 0 {
		return 0, errors.New("no run was under way when it was to be killed")
	}
	report, err := t.run(ctx, s.source())
	if err != nil {
		return 0, fmt.Errorf("after %d kills: %w", killed, err)
	}
	fmt.Printf("%-9s %-16s killed %d times at random points; the last run found %d repositories complete, went on with %d, and converted %d of %d trees\n",
		s.name, "bolt, resumed", killed, report.AlreadyThere, report.Resumed, report.Trees, whole.Trees)
	return s.compare(ctx, t, "bolt, resumed")
}

// killOne runs a migration in a process of its own, kills it so long after it has begun, and reports whether it was still under way.
func (s *loaded) killOne(ctx context.Context, t target, after time.Duration) (killed bool, err error) {
	program, err := os.Executable()
	if err != nil {
		return false, err
	}
	child := exec.CommandContext(ctx, program, childCommand, s.url, s.blocks, t.store, t.blocks)
	child.Stderr = os.Stderr
	out, err := child.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := child.Start(); err != nil {
		return false, err
	}
	if said, err := bufio.NewReader(out).ReadString('\n'); said != begun {
		return false, errors.Join(fmt.Errorf("a run said %q", said), err, child.Wait())
	}
	timer := time.AfterFunc(after, func() { _ = child.Process.Kill() }) // one that has ended is not there to kill
	_, err = io.Copy(io.Discard, out)
	failed := child.Wait()
	timer.Stop()
	if exit := (*exec.ExitError)(nil); errors.As(failed, &exit) && !exit.Exited() {
		return true, err
	}
	return false, errors.Join(err, failed)
}
