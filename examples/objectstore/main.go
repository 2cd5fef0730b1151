// SPDX-License-Identifier: Apache-2.0

// Command objectstore is an example: a small object store that keeps bytes on disk and all else in Moraine. See README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "objectstore:", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	dir, listen string
	checkpoint  catalog.CheckpointPolicy
	cleanEvery  time.Duration
	keepDays    int
}

func parse(args []string) (c config, err error) {
	flags := flag.NewFlagSet("objectstore", flag.ContinueOnError)
	flags.StringVar(&c.dir, "data", "data", "directory of metadata and bytes")
	flags.StringVar(&c.listen, "listen", "127.0.0.1:9000", "address to listen on; there is no authentication")
	flags.IntVar(&c.checkpoint.Changes, "checkpoint-changes", 10_000, "commit a bucket after so many changes")
	flags.DurationVar(&c.checkpoint.Interval, "checkpoint-interval", time.Minute, "commit changed buckets so often")
	flags.DurationVar(&c.cleanEvery, "clean-every", 24*time.Hour, "clean up so often; 0: never")
	flags.IntVar(&c.keepDays, "keep-days", 7, "days for which a bucket's past is kept")
	c.checkpoint.Committer = "objectstore"
	err = flags.Parse(args)
	if err == nil && (c.keepDays < 1 || c.cleanEvery < 0 || flags.NArg() > 0) {
		err = errors.New("expected flags only, -keep-days of 1 or more and -clean-every of 0 or more")
	}
	return c, err
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	bytes, err := openBytes(filepath.Join(c.dir, "bytes"))
	if err != nil {
		return err
	}
	store, err := moraine.Open(ctx, moraine.Options{
		Store: "bolt:" + filepath.Join(c.dir, "meta.db"), Blocks: "file:" + filepath.Join(c.dir, "blocks"), Logger: slog.Default(),
	})
	if err != nil {
		return errors.Join(err, bytes.close())
	}
	objects, err := catalog.New(catalog.Config{Store: store, Checkpoint: c.checkpoint})
	if err == nil {
		err = serve(ctx, c, store, objects, bytes)
	}
	if errors.Is(err, errRequestsLeft) {
		return err // they still use the store: it is left as a crash would leave it, which harms nothing
	}
	return errors.Join(err, store.Close(), bytes.close())
}

// errRequestsLeft: requests were not done when the time for that was over.
var errRequestsLeft = errors.New("requests were still under way")

// serve answers requests until ctx ends, and makes checkpoints and cleans up beside. Everything that it has begun has ended when
// it returns, unless it says errRequestsLeft.
func serve(ctx context.Context, c config, store *moraine.Store, objects *catalog.Catalog, bytes *byteStore) error {
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	fmt.Println("listening on", listener.Addr())
	server := &http.Server{Handler: &handler{objects, bytes, slog.Default()}, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	var wait sync.WaitGroup
	wait.Go(func() { served <- server.Serve(listener) })

	// What runs beside ends after the last request, so that the last checkpoint has everything.
	beside, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var checkpoints error
	wait.Go(func() {
		checkpoints = objects.Run(beside, func(b catalog.Bucket, err error) { slog.Error("checkpoint", "bucket", b.String(), "error", err) })
	})
	wait.Go(func() { store.MaintainEvery(beside, 5*time.Minute) })
	if c.cleanEvery > 0 {
		cleaner := &cleaner{store: store, catalog: objects, bytes: bytes, keepDays: c.keepDays, now: time.Now, log: slog.Default()}
		wait.Go(func() { cleaner.every(beside, c.cleanEvery) })
	}

	select {
	case err = <-served: // the listener is gone
	case <-ctx.Done():
	}
	ending, end := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer end()
	if late := server.Shutdown(ending); late != nil {
		err = errors.Join(err, errRequestsLeft, late)
	}
	cancel()
	wait.Wait()
	return errors.Join(err, checkpoints)
}
