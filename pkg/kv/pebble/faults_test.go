// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"errors"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// testMemTable is small, so that little is enough for flushes and compactions.
const testMemTable = 64 << 10

var errInjected = errors.New("no space left on device (injected)")

// faults sits below a store and lets one change of the file system fail, and all that follow.
type faults struct {
	failAt int // the number of the change
	only   func(errorfs.Op) bool

	mu    sync.Mutex
	count int
}

func (f *faults) wrap(fs vfs.FS) vfs.FS { return errorfs.Wrap(fs, errorfs.InjectorFunc(f.inject)) }

func (f *faults) inject(op errorfs.Op) error {
	switch op.Kind {
	// What fails here is not asked of the disk, or only releases something.
	case errorfs.OpLock, errorfs.OpFileClose, errorfs.OpRemove, errorfs.OpFilePreallocate:
		return nil
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead || f.only != nil && !f.only(op) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count++
	if f.count > f.failAt {
		return errInjected
	}
	return nil
}

// injected returns how many changes have failed.
func (f *faults) injected() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, f.count-f.failAt)
}

// gate sits below a store, counts the syncs of its log and can hold them up.
type gate struct {
	entered chan struct{} // gets one for each sync that is held up
	mu      sync.Mutex
	syncs   int
	open    chan struct{} // nil, or closed when syncs may go on
}

func (g *gate) wrap(fs vfs.FS) vfs.FS { return errorfs.Wrap(fs, errorfs.InjectorFunc(g.inject)) }

func (g *gate) inject(op errorfs.Op) error {
	if op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData || !strings.HasSuffix(op.Path, ".log") {
		return nil
	}
	g.mu.Lock()
	g.syncs++
	open := g.open
	g.mu.Unlock()
	if open != nil {
		g.entered <- struct{}{}
		<-open
	}
	return nil
}

// shut holds up syncs from now on.
func (g *gate) shut() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.entered = make(chan struct{}, 1000)
	g.open = make(chan struct{})
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.open)
		g.open = nil
	})
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.syncs
}
