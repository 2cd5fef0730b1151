// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

const (
	defaultStore  = "bolt:.moraine/meta.db"
	defaultBlocks = "file:.moraine/blocks"
)

// Backend is a store that keeps records and staged entries by itself, and not in a key/value engine.
type Backend interface {
	moraine.Backend
	Close() error
}

// OpenBackend opens the store that a URL names. Where there is none it returns kv.ErrNotAStore, or makes one if the store is not to be read-only.
type OpenBackend func(ctx context.Context, url string, o kv.OpenOptions) (Backend, error)

// Backends are those of a program of somebody else, such as a facade of two stores, by the scheme of their URLs in small letters.
type Backends map[string]OpenBackend

var errNoStore = errors.New("no store")

// access is what a command does with the store.
type access int

const (
	reading  access = iota // several processes may
	writing                // in a store that exists
	creating               // also where there is no store yet
)

// use calls fn with the open store.
func (a *app) use(ctx context.Context, how access, fn func(*moraine.Store) error) error {
	if how != creating {
		if err := a.checkStore(ctx); err != nil {
			return err
		}
	}
	o := moraine.Options{Store: a.store, Engines: all.Engines(), Blocks: a.blocks, BlockEngines: a.blockEngines(how), ReadOnly: how == reading}
	a.logTo(&o)
	if open := a.backend(); open != nil {
		backend, err := open(ctx, a.store, kv.OpenOptions{ReadOnly: o.ReadOnly})
		if err != nil {
			return err
		}
		o.Store, o.Backend = "", backend
		return errors.Join(a.opened(ctx, o, fn), backend.Close())
	}
	return a.opened(ctx, o, fn)
}

// logTo has the operations of a store logged, if that is wanted.
func (a *app) logTo(o *moraine.Options) {
	if a.verbose {
		o.Logger = slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Observer = operationLog{o.Logger}
	}
}

func (a *app) opened(ctx context.Context, o moraine.Options, fn func(*moraine.Store) error) error {
	s, err := moraine.Open(ctx, o)
	if err != nil {
		return a.unopened(err)
	}
	return errors.Join(fn(s), s.Close())
}

// useBranch is use for what is done with the branch at names: where there is something else of that name, it says so.
func (a *app) useBranch(ctx context.Context, how access, at address, fn func(*moraine.Store) error) error {
	return a.use(ctx, how, func(s *moraine.Store) error {
		err := fn(s)
		if errors.Is(err, graveler.ErrBranchNotFound) && !errors.Is(err, graveler.ErrRefNotFound) { // it is not another ref that was not found
			if _, resolved := s.ResolveRef(ctx, at.repo, at.ref); resolved == nil {
				return hinted{err, fmt.Sprintf("%s is a tag or a commit, which never changes", at.ref)}
			}
		}
		return err
	})
}

// useKV calls fn with the open key/value store, for reading.
func (a *app) useKV(ctx context.Context, fn func(kv.Store) error) error {
	if err := a.checkStore(ctx); err != nil {
		return err
	}
	if a.backend() != nil {
		return fmt.Errorf("records of store %s: %w", kv.Redact(a.store), fsck.ErrNoKV)
	}
	s, err := kv.Open(ctx, a.store, all.Engines(), kv.OpenOptions{ReadOnly: true})
	if err != nil {
		return a.unopened(err)
	}
	return errors.Join(fn(s), s.Close())
}

// checkStore keeps a command from making an empty store where somebody is in the wrong directory, or names the wrong database.
func (a *app) checkStore(ctx context.Context) error {
	missing := isMissing(a.store)
	if isDatabase(a.store) || a.backend() != nil {
		err := a.probe(ctx)
		missing = errors.Is(err, kv.ErrNotAStore)
		if err != nil && !missing {
			return err
		}
	}
	if missing {
		return hinted{fmt.Errorf("%w at %s", errNoStore, kv.Redact(a.store)), "create one with 'moraine repo create REPO'"}
	}
	return nil
}

// probe opens the store in a database and closes it again.
func (a *app) probe(ctx context.Context) error {
	if open := a.backend(); open != nil {
		s, err := open(ctx, a.store, kv.OpenOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		return s.Close()
	}
	s, err := postgres.Open(ctx, a.store, kv.OpenOptions{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("open store %s: %w", kv.Redact(a.store), err)
	}
	return s.Close()
}

// unopened makes more of the error of a store that could not be opened.
func (a *app) unopened(err error) error {
	switch {
	case errors.Is(err, kv.ErrLocked):
		// Without the path, which the URL has.
		return hinted{fmt.Errorf("open store %s: %w", kv.Redact(a.store), kv.ErrLocked), "wait until that has ended"}
	case errors.Is(err, kv.ErrInvalidURL) && isPlainPath(a.store):
		return hinted{err, "for a file write bolt:" + a.store}
	case errors.Is(err, block.ErrUnknownEngine) && isPlainPath(a.blocks):
		return hinted{err, "for a directory write file:" + a.blocks}
	default:
		return err
	}
}

// isPlainPath tells a path from what may be a URL, or hold a password.
func isPlainPath(text string) bool { return text != "" && !strings.ContainsAny(text, ":=@? ") }

// blockEngines are those of moraine.Open, except that the store's own block storage is not made anew where a wrong one is named,
// or a disk is not mounted.
func (a *app) blockEngines(how access) block.Engines {
	existing := func(ctx context.Context, url string, o block.OpenOptions) (block.Storage, error) {
		if how != creating && url == a.blocks && isMissing(url) {
			return nil, hinted{fmt.Errorf("nothing at %s", kv.Redact(url)), "name the one that belongs to the store with --blocks"}
		}
		return local.Open(ctx, url, o)
	}
	return block.Engines{"file": existing, "mem": blockmem.Open}
}

// isMissing reports whether a URL names a file or directory that does not exist.
func isMissing(url string) bool {
	path, ok := localPath(url)
	if !ok {
		return false
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// localPath returns the file or directory that the URL of a store names, if it names one.
func localPath(url string) (string, bool) {
	scheme, path, _ := strings.Cut(url, ":")
	switch strings.ToLower(scheme) {
	case "bolt", "pebble", "file":
		return strings.TrimPrefix(path, "//"), true
	default:
		return "", false
	}
}

// lastingURL makes the relative path of a file URL absolute: stored as it is, it would be another place in another working directory.
func lastingURL(url string) (string, error) {
	scheme, path, _ := strings.Cut(url, ":")
	if !strings.EqualFold(scheme, "file") || path == "" || strings.HasPrefix(path, "/") {
		return url, nil
	}
	path, err := filepath.Abs(path)
	return scheme + ":" + path, err
}

// schemeOf returns what a URL begins with.
func schemeOf(url string) string {
	scheme, _, _ := strings.Cut(url, ":")
	return strings.ToLower(scheme)
}

// isDatabase reports whether a URL names a database on a server.
func isDatabase(url string) bool {
	scheme, _, _ := strings.Cut(url, ":")
	return strings.EqualFold(scheme, "postgres") || strings.EqualFold(scheme, "postgresql")
}

// backend returns what opens the store if it keeps records by itself, nil if it is a key/value store.
func (a *app) backend() OpenBackend {
	if scheme := schemeOf(a.store); scheme != sqlstore.Scheme {
		return a.backends[scheme]
	}
	return func(ctx context.Context, url string, o kv.OpenOptions) (Backend, error) {
		return sqlstore.Open(ctx, url, o)
	}
}

// operationLog logs the operations of the store.
type operationLog struct{ log *slog.Logger }

func (o operationLog) Operation(name string, took time.Duration, err error) {
	if err != nil {
		o.log.Debug(name, "took", took, "error", err)
		return
	}
	o.log.Debug(name, "took", took)
}
