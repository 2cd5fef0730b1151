// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// grace is how long dropped partitions are kept: nothing else is under way when a workload drops them.
const grace = time.Nanosecond

// Partitions of writes to the engine alone.
const (
	rawPartition    = "moraine-bench"
	fencedPartition = "moraine-bench-fenced"
	fencePartition  = "moraine-bench-fence"
)

// bench is what a workload runs on: an open store whose engine and block storage are counted, and the record of the run.
type bench struct {
	Config
	*place
	store  *moraine.Store
	kv     *measure.Store  // nil: the store is in tables
	tables *sqlstore.Store // nil: it is in a key/value engine
	blocks *measure.Storage

	template     result.Run // of the runs of this workload
	run          *result.Run
	runs         []*result.Run
	counted      map[string]int64 // when the run began
	memory       *measure.Memory
	version      string                          // of the server
	made         int                             // repositories so far
	repositories []graveler.RepositoryID         // those that are still there
	trees        map[string]graveler.MetaRangeID // that verifySame knows
}

func openBench(ctx context.Context, c Config, p *place, template result.Run) (b *bench, err error) {
	b = &bench{Config: c, place: p, template: template, trees: map[string]graveler.MetaRangeID{}}
	if b.template.Durability, b.version, err = p.durability(ctx); err != nil {
		return nil, err
	}
	if err := b.openRecords(ctx); err != nil {
		return nil, err
	}
	storage, err := block.Open(ctx, p.blocksURL, block.Engines{"file": local.Open, "mem": blockmem.Open}, block.OpenOptions{})
	if err != nil {
		return nil, errors.Join(err, b.closeRecords())
	}
	b.blocks = &measure.Storage{Storage: storage}
	if b.store, err = b.open(ctx, 0, nil); err == nil {
		err = b.requireEmpty(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, b.closeAll())
	}
	return b, nil
}

// open opens the store, once more with caches of another size or with another clock.
func (b *bench) open(ctx context.Context, cacheBytes int64, now func() time.Time) (*moraine.Store, error) {
	o := moraine.Options{BlockStorage: b.blocks, CacheBytes: cacheBytes, Grace: grace, Now: now}
	if b.kv != nil {
		o.KV = b.kv
	} else {
		o.Backend = b.tables
	}
	return moraine.Open(ctx, o)
}

// requireEmpty keeps the suite from working in somebody's store. What a run that was killed has left in its own partitions goes.
func (b *bench) requireEmpty(ctx context.Context) error {
	for r, err := range b.store.ListRepositories(ctx, "") {
		if err != nil {
			return err
		}
		return fmt.Errorf("%w: the store %s has repositories, such as %s; it must be empty", ErrConfig, kv.Redact(b.storeURL), r.ID)
	}
	return b.dropRaw(ctx)
}

// close leaves the store as empty as it was.
func (b *bench) close(ctx context.Context) error {
	var errs []error
	if b.given {
		errs = append(errs, b.clear(ctx))
	}
	return errors.Join(append(errs, b.closeAll())...)
}

func (b *bench) closeAll() error {
	var errs []error
	if b.store != nil {
		errs = append(errs, b.store.Close())
	}
	return errors.Join(append(errs, b.blocks.Close(), b.closeRecords())...)
}

// clear removes what the workload made, and nothing else.
func (b *bench) clear(ctx context.Context) error {
	var errs []error
	for _, id := range b.repositories {
		errs = append(errs, b.store.DeleteRepository(ctx, id))
	}
	return errors.Join(append(errs, b.tidy(ctx), b.dropRaw(ctx))...)
}

// dropRaw drops the partitions of writes to the engine alone.
func (b *bench) dropRaw(ctx context.Context) error {
	if b.kv == nil {
		return nil
	}
	var errs []error
	for _, partition := range []string{rawPartition, fencedPartition, fencePartition} {
		errs = append(errs, b.kv.DropPartition(ctx, []byte(partition)))
	}
	return errors.Join(errs...)
}

// tidy drops what no branch lists any more.
func (b *bench) tidy(ctx context.Context) error {
	_, err := b.store.Maintain(ctx)
	return err
}
