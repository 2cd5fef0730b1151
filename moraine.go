// SPDX-License-Identifier: Apache-2.0

// Package moraine opens a store: it wires a key/value engine, block storage and the versioned store together.
//
// Records and staged entries live in the engine, committed entries in immutable files in the block storage. [Open] names both by URL, or takes
// them by value. What the store then does is the embedded [graveler.Graveler]; an embedded [fsck.Checker] checks it.
//
// A store starts no goroutine of its own. Upkeep is explicit: call Maintain now and then, or run [Store.MaintainEvery] where that suits.
package moraine

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
	kvmem "github.com/moraine-store/moraine/pkg/kv/mem"
)

// Options says what to open. Store (or KV, or Backend) and Blocks (or BlockStorage) are required.
type Options struct {
	// Store is the URL of the engine: bolt:PATH, bolt:///absolute/path, or mem: for tests.
	Store string
	// KV is an engine that is open already, in the place of Store. Close leaves it open.
	KV kv.Store
	// Backend keeps records and staged entries by itself, such as a sqlstore.Store, in the place of Store. Close leaves it open,
	// and it must be read-only itself where ReadOnly is set. Check is then fsck.ErrNoKV.
	Backend Backend
	// Engines are what the scheme of Store may name; nil: bolt and mem.
	Engines kv.Engines

	// Blocks is the URL of the block storage: file:PATH, file:///absolute/path, or mem: for tests.
	Blocks string
	// BlockStorage is a storage that is open already, in the place of Blocks. Close leaves it open.
	BlockStorage block.Storage
	// BlockEngines are what the scheme of Blocks, and of a repository's own namespace, may name; nil: file and mem.
	BlockEngines block.Engines

	// CacheBytes bounds the memory for blocks of range files; 0: committed.DefaultCacheBytes.
	CacheBytes int64
	// ReadOnly opens what exists and refuses every write. Several readers may share an embedded store.
	ReadOnly bool

	// Hooks are called around changes. A nil Guard is catalog.KeepLocked; one of another kind calls that as well, or locks bind
	// the operations of pkg/catalog alone.
	Hooks    graveler.Hooks
	Observer graveler.Observer // nil: nobody looks
	Logger   *slog.Logger      // nil: nothing is logged
	Now      func() time.Time  // the clock; nil: time.Now
	// CommitShare is how much of the machine a commit may take beside other work; see graveler.CommitParams.Share. 0: all of it.
	CommitShare float64
	// Grace is how long Maintain keeps what nothing lists any more; see graveler.Config. 0: 10 minutes.
	Grace time.Duration
}

// Backend is what a store needs besides its files.
type Backend interface {
	graveler.Refs
	graveler.Staging
}

// Store is an open store. It is safe for concurrent use.
type Store struct {
	*graveler.Graveler
	*fsck.Checker
	parts parts
	log   *slog.Logger
}

// parts is what Close closes.
type parts struct {
	kv     kv.Store // nil: the caller's
	trees  *committed.Store
	blocks *namespaces
}

// Open opens a store, and makes a new one where there is none, unless it is to be read-only. What is wrong with a
// store that cannot be opened is said by kv.ErrLocked, kv.ErrNotAStore, kv.ErrSchemaNewer, kv.ErrUnknownEngine and block.ErrUnknownEngine.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{log: o.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.open(ctx, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, o Options) error {
	switch {
	case o.Backend == nil && (o.Store == "") == (o.KV == nil), o.Backend != nil && (o.Store != "" || o.KV != nil):
		return errors.New("moraine: give either the URL of a store or an open engine")
	case (o.Blocks == "") == (o.BlockStorage == nil):
		return errors.New("moraine: give either the URL of a block storage or an open one")
	}
	if o.BlockEngines == nil {
		o.BlockEngines = block.Engines{"file": local.Open, "mem": blockmem.Open}
	}
	config, store, err := s.openRecords(ctx, o)
	if err != nil {
		return err
	}
	if s.parts.blocks, err = openNamespaces(ctx, o); err != nil {
		return err
	}
	s.parts.trees, err = committed.New(committed.Config{Storage: s.parts.blocks.storage, CacheBytes: o.CacheBytes})
	if err != nil {
		return err
	}
	s.Checker = fsck.New(store, s.parts.trees)
	config.Trees, config.Hooks, config.Observer = s.parts.trees, o.Hooks, o.Observer
	if config.Hooks.Guard == nil {
		config.Hooks.Guard = catalog.KeepLocked(o.Now)
	}
	config.Now, config.Grace, config.CommitShare = o.Now, o.Grace, o.CommitShare
	s.Graveler, err = graveler.New(config)
	return err
}

// openRecords returns where records and staged entries are, and the engine that they are in, if it is one.
func (s *Store) openRecords(ctx context.Context, o Options) (graveler.Config, kv.Store, error) {
	if o.Backend != nil {
		return graveler.Config{Refs: o.Backend, Staging: o.Backend}, nil, nil
	}
	store, err := s.openKV(ctx, o)
	if err != nil {
		return graveler.Config{}, nil, err
	}
	return graveler.Config{Refs: ref.New(store), Staging: staging.New(store)}, store, nil
}

func (s *Store) openKV(ctx context.Context, o Options) (kv.Store, error) {
	if o.KV != nil {
		if o.ReadOnly {
			return kv.ReadOnly(o.KV), nil
		}
		return o.KV, nil
	}
	engines := o.Engines
	if engines == nil {
		engines = kv.Engines{"bolt": bolt.Open, "mem": kvmem.Open}
	}
	store, err := kv.Open(ctx, o.Store, engines, kv.OpenOptions{ReadOnly: o.ReadOnly})
	s.parts.kv = store
	return store, err
}

// Close releases everything that Open opened. No call may be under way.
func (s *Store) Close() error {
	var errs []error
	if s.parts.trees != nil {
		errs = append(errs, s.parts.trees.Close())
	}
	if s.parts.blocks != nil {
		errs = append(errs, s.parts.blocks.close())
	}
	if s.parts.kv != nil {
		errs = append(errs, s.parts.kv.Close())
	}
	return errors.Join(errs...)
}

// MaintainEvery runs Maintain at once and then at every interval, until ctx is done. What goes wrong is logged and tried again at the next turn.
// Who runs it in a goroutine ends the context and waits for the goroutine before Close.
func (s *Store) MaintainEvery(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if _, err := s.Maintain(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("maintain", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// namespaces finds the storage of a repository's files: a folder of the store's own block storage, or a storage that its namespace names by URL.
type namespaces struct {
	own      block.Storage
	closeOwn bool
	engines  block.Engines
	options  block.OpenOptions

	mu     sync.Mutex
	opened map[string]block.Storage // by URL
}

func openNamespaces(ctx context.Context, o Options) (*namespaces, error) {
	n := &namespaces{engines: o.BlockEngines, options: block.OpenOptions{ReadOnly: o.ReadOnly}, opened: map[string]block.Storage{}}
	if o.BlockStorage != nil {
		n.own = o.BlockStorage
		if o.ReadOnly {
			n.own = block.ReadOnly(n.own)
		}
		return n, nil
	}
	own, err := block.Open(ctx, o.Blocks, o.BlockEngines, n.options)
	n.own, n.closeOwn = own, err == nil
	return n, err
}

// storage gives the folder of a namespace. Storages that namespaces name by URL are opened once for all namespaces below the same URL.
func (n *namespaces) storage(ctx context.Context, namespace string) (block.Storage, error) {
	if !strings.Contains(namespace, ":") {
		return block.Sub(n.own, namespace), block.CheckName(namespace)
	}
	place, query, hasQuery := strings.Cut(namespace, "?")
	url, folder := path.Split(place)
	if hasQuery {
		url += "?" + query
	}
	parent, err := n.open(ctx, url)
	if err != nil {
		return nil, err
	}
	return block.Sub(parent, folder), block.CheckName(folder)
}

func (n *namespaces) open(ctx context.Context, url string) (block.Storage, error) {
	n.mu.Lock()
	s, ok := n.opened[url]
	n.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := block.Open(ctx, url, n.engines, n.options)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if first, ok := n.opened[url]; ok { // another was quicker
		return first, s.Close()
	}
	n.opened[url] = s
	return s, nil
}

func (n *namespaces) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for s := range maps.Values(n.opened) {
		errs = append(errs, s.Close())
	}
	if n.closeOwn {
		errs = append(errs, n.own.Close())
	}
	return errors.Join(errs...)
}
