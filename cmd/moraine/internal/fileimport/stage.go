// SPDX-License-Identifier: Apache-2.0

package fileimport

import (
	"context"
	"errors"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

const (
	batchEntries = 1000
	// aheadFiles is how many files may wait behind one that takes long to hash.
	aheadFiles = 1000
)

// run is an import under way.
type run struct {
	*Import
	report Report

	batch      []graveler.Entry
	batchBytes int64
}

// job is a file on its way. What hashing it came to may be read once done is closed.
type job struct {
	found
	object catalog.Object
	err    error
	done   chan struct{}
}

// stageAll walks, hashes and stages at the same time. Jobs pass through ordered in the order of keys; whoever takes one out waits
// until it is done. Staging is left to the goroutine of the caller.
func (r *run) stageAll(ctx context.Context, w *walker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	ordered, work := make(chan *job, aheadFiles), make(chan *job)
	group.Go(func() error {
		defer close(ordered)
		defer close(work)
		return w.walk(ctx, func(f found) error { return hand(ctx, &job{found: f, done: make(chan struct{})}, ordered, work) })
	})
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			buffer := newBuffer()
			for j := range work {
				if j.problem == nil && j.special == "" {
					j.object, j.err = describe(ctx, j.path, j.info, buffer, r.Progress)
				}
				close(j.done)
			}
			return nil
		})
	}
	staged := r.takeAll(ctx, ordered)
	if staged != nil {
		cancel()
	}
	walked := group.Wait()
	if staged == nil || walked != nil && !errors.Is(walked, context.Canceled) { // else the walk ended because staging did
		return walked
	}
	return staged
}

// takeAll stages what comes.
func (r *run) takeAll(ctx context.Context, ordered <-chan *job) error {
	for j := range ordered {
		select {
		case <-j.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := r.take(ctx, j); err != nil {
			return err
		}
	}
	return r.flush(ctx)
}

// hand puts a job into each of the channels.
func hand(ctx context.Context, j *job, channels ...chan<- *job) error {
	for _, c := range channels {
		select {
		case c <- j:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// take adds a job that is done to the batch, and stages the batch when it is full.
func (r *run) take(ctx context.Context, j *job) error {
	if err := ctx.Err(); err != nil {
		return err // and no failure of the file, if hashing it was cut off
	}
	if j.special != "" {
		if j.special != Own {
			r.report.Skipped++
		}
		r.Skipped(j.path, j.special)
		return nil
	}
	value, err := graveler.Value{}, errors.Join(j.problem, j.err)
	if err == nil {
		value, err = catalog.Encode(j.object)
	}
	key := graveler.Key(r.Prefix + j.rel)
	if err == nil {
		err = graveler.ValidateKey(key)
	}
	if err != nil {
		r.report.Failed++
		r.Failed(j.path, err)
		return nil
	}
	r.batch = append(r.batch, graveler.Entry{Key: key, Value: &value})
	r.batchBytes += j.object.Size
	if len(r.batch) == batchEntries {
		return r.flush(ctx)
	}
	return nil
}

func (r *run) flush(ctx context.Context) error {
	if len(r.batch) == 0 {
		return ctx.Err()
	}
	if err := r.Stage(ctx, r.batch); err != nil {
		return err
	}
	r.report.Files += len(r.batch)
	r.report.Bytes += r.batchBytes
	r.batch, r.batchBytes = nil, 0
	return nil
}
