// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/benchmarks/reference"
	"github.com/moraine-store/moraine/internal/pgserver"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// Engines are those that the suite makes stores of by itself. All but sql, the tables of older deployments, are key/value engines.
func Engines() []string { return []string{"bolt", "pebble", "postgres", "sql", "mem"} }

// place is where the store of a run is, and what the references get: another file, directory or table of the same kind beside it.
type place struct {
	engine              string
	storeURL, blocksURL string
	given               bool   // by the user, who gets it back empty
	dir                 string // for the run alone
	database            string // "": none was made
	host                *host
}

// host has what the places of one call of Run share.
type host struct {
	dir       string // below which all directories are made
	server    *pgserver.Server
	databases int
}

// close stops the server that throw-away databases were made on.
func (h *host) close() error {
	if h.server == nil {
		return nil
	}
	return h.server.Close()
}

// place prepares the place of a run: an engine's own in a directory that is removed afterwards, or the store that the user names.
func (h *host) place(ctx context.Context, c Config, engine string) (p *place, err error) {
	p = &place{engine: engine, storeURL: c.Store, blocksURL: c.Blocks, given: c.Store != "", host: h}
	if p.dir, err = os.MkdirTemp(h.dir, "moraine-bench-"); err != nil {
		return nil, err
	}
	if p.blocksURL == "" {
		p.blocksURL = "file:" + filepath.Join(p.dir, "blocks")
	}
	if p.given {
		return p, nil
	}
	switch engine {
	case "postgres":
		p.storeURL, err = h.newDatabase(ctx, p)
	case "sql":
		p.storeURL, err = h.newDatabase(ctx, p)
		p.storeURL = sqlstore.Scheme + strings.TrimPrefix(p.storeURL, "postgres")
	case "mem":
		p.storeURL = "mem:"
	default:
		p.storeURL = engine + ":" + filepath.Join(p.dir, "meta")
	}
	if err != nil {
		return nil, errors.Join(err, p.remove(ctx))
	}
	return p, nil
}

// newDatabase makes a database on a server that is started for the first one. pgserver.ErrNotInstalled says that there is none to start.
func (h *host) newDatabase(ctx context.Context, p *place) (url string, err error) {
	if h.server == nil {
		if h.server, err = pgserver.Start(h.dir); err != nil {
			return "", fmt.Errorf("throw-away PostgreSQL: %w", err)
		}
	}
	h.databases++
	name := fmt.Sprintf("bench_%d", h.databases)
	if err := h.exec(ctx, "create database "+name); err != nil {
		return "", err
	}
	p.database = name
	return h.server.URL(name), nil
}

func (h *host) exec(ctx context.Context, statement string) error {
	conn, err := pgx.Connect(ctx, h.server.URL("postgres"))
	if err == nil {
		_, err = conn.Exec(ctx, statement)
		err = errors.Join(err, conn.Close(ctx))
	}
	if err != nil {
		return fmt.Errorf("throw-away PostgreSQL: %s: %w", statement, err)
	}
	return nil
}

// remove takes away what place made.
func (p *place) remove(ctx context.Context) error {
	err := os.RemoveAll(p.dir)
	if p.database != "" {
		err = errors.Join(err, p.host.exec(ctx, "drop database "+p.database+" with (force)"))
	}
	return err
}

// subdirectory makes a new directory for a reference.
func (p *place) subdirectory() (string, error) { return os.MkdirTemp(p.dir, "reference-") }

// isDatabase reports whether the store is in PostgreSQL.
func (p *place) isDatabase() bool {
	return p.engine == "postgres" || p.engine == "postgresql" || isSQL(p.storeURL)
}

// databaseURL is the URL of the database that a store is in.
func (p *place) databaseURL() string {
	if isSQL(p.storeURL) {
		return "postgres" + p.storeURL[len(sqlstore.Scheme):]
	}
	return p.storeURL
}

// durability is what a write waits for.
func (p *place) durability(ctx context.Context) (settings map[string]string, version string, err error) {
	switch {
	case p.isDatabase():
		version, settings, err = reference.Settings(ctx, p.databaseURL())
	case p.engine == "bolt":
		settings = map[string]string{"fsync": "of the file, twice per transaction"}
	case p.engine == "pebble":
		settings = map[string]string{"fsync": "of the log, shared by concurrent writes"}
	default:
		settings = map[string]string{"fsync": "none"}
	}
	if err == nil && strings.HasPrefix(p.blocksURL, "file:") {
		settings["range files"] = "fsync of each file and of directories with new names"
	}
	return settings, version, err
}

// check refuses engines that there are not, and stores that are given twice.
func (c Config) check() error {
	switch {
	case c.Store != "" && len(c.Engines) > 0:
		return errors.New("give either engines or a store")
	case c.Store == "" && len(c.Engines) == 0:
		return errors.New("give an engine or a store")
	case c.Blocks != "" && len(c.Engines) > 0:
		return errors.New("a block storage is given along with a store only")
	case c.Rounds < 1:
		return fmt.Errorf("%d rounds: expected one at least", c.Rounds)
	case c.ValueBytes < minValueBytes || c.ValueBytes > maxValueBytes:
		return fmt.Errorf("values of %d bytes: expected from %d to %d", c.ValueBytes, minValueBytes, maxValueBytes)
	}
	for i, e := range c.Engines {
		if !slices.Contains(Engines(), e) {
			return fmt.Errorf("%w %q (known: %s)", kv.ErrUnknownEngine, e, strings.Join(Engines(), ", "))
		}
		if slices.Contains(c.Engines[:i], e) {
			return fmt.Errorf("engine %s is given twice", e)
		}
	}
	return nil
}
