// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// order says what a process is to commit. It is the first line of what it reads.
type order struct {
	Store      string                `json:"store"`
	Blocks     string                `json:"blocks"`
	Repository graveler.RepositoryID `json:"repository"`
	// First is the number of the first of its workers: those of all processes are numbered through.
	First      int    `json:"first"`
	Writers    int    `json:"writers"`
	Commits    int    `json:"commits"`
	Seed       uint64 `json:"seed"`
	ValueBytes int    `json:"value_bytes"`
}

// Lines that processes exchange, beside the order.
const (
	lineReady = "ready"
	lineBegin = "begin"
	lineDone  = "done"
)

// Serve is what a process that Config.Self starts has to call: it reads its order from in, says on out that it is ready, begins
// when it is told to, and says when it is done.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("%w: this command is for the suite itself, which tells it what to commit: %w", ErrConfig, err)
	}
	var o order
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("read what to commit: %w", err)
	}
	options := moraine.Options{Store: o.Store, Engines: all.Engines(), Blocks: o.Blocks}
	if isSQL(o.Store) {
		tables, err := sqlstore.Open(ctx, o.Store, kv.OpenOptions{})
		if err != nil {
			return err
		}
		options.Store, options.Backend = "", tables
		return errors.Join(o.open(ctx, options, lines, out), tables.Close())
	}
	return o.open(ctx, options, lines, out)
}

func (o order) open(ctx context.Context, options moraine.Options, in *bufio.Reader, out io.Writer) error {
	store, err := moraine.Open(ctx, options)
	if err != nil {
		return err
	}
	return errors.Join(o.serve(ctx, store, in, out), store.Close())
}

func (o order) serve(ctx context.Context, store *moraine.Store, in *bufio.Reader, out io.Writer) error {
	if _, err := fmt.Fprintln(out, lineReady); err != nil {
		return err
	}
	if err := expectLine(in, lineBegin); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for w := range o.Writers {
		g.Go(func() error {
			es := entries{prefix: writer(o.First + w), n: o.Commits, seed: o.Seed, size: o.ValueBytes}
			for e := range es.all {
				if err := commitOwn(ctx, store, o.Repository, o.First+w, e); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, lineDone)
	return err
}

func expectLine(in *bufio.Reader, want string) error {
	line, err := in.ReadString('\n')
	if line == want+"\n" {
		return nil
	}
	return errors.Join(fmt.Errorf("read %q, expected %q", line, want), err)
}

// child is a process under way.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProcesses starts n processes with an order, waits until all are ready, lets them begin, and returns how long it took until
// all were done, in seconds.
func (b *bench) startProcesses(ctx context.Context, n int, o order) (took float64, err error) {
	if len(b.Self) == 0 {
		return 0, fmt.Errorf("%w: how to start a process of this program is not known", ErrConfig)
	}
	var children []child
	defer func() {
		for _, c := range children {
			err = errors.Join(err, c.in.Close(), c.cmd.Wait())
		}
	}()
	for i := range n {
		o.First = i * o.Writers
		c, err := startChild(ctx, b.Self, o)
		if err != nil {
			return 0, err
		}
		children = append(children, c)
	}
	for _, c := range children {
		if err := expectLine(c.out, lineReady); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	for _, c := range children {
		if _, err := fmt.Fprintln(c.in, lineBegin); err != nil {
			return 0, err
		}
	}
	for _, c := range children {
		if err := expectLine(c.out, lineDone); err != nil {
			return 0, err
		}
	}
	return time.Since(began).Seconds(), nil
}

func startChild(ctx context.Context, command []string, o order) (c child, err error) {
	c.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	c.cmd.Stderr = os.Stderr // where a child says why it failed
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return c, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return c, err
	}
	c.out = bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return c, fmt.Errorf("start a process: %w", err)
	}
	if err := json.NewEncoder(c.in).Encode(o); err != nil {
		return c, errors.Join(err, c.in.Close(), c.cmd.Wait())
	}
	return c, nil
}
