// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// Pebble is a Pebble database with the sizes of cache and memory table that the store uses.
type Pebble struct{ db *pebble.DB }

// OpenPebble makes a new database in a directory.
func OpenPebble(dir string) (*Pebble, error) {
	o := &pebble.Options{
		FormatMajorVersion: pebble.FormatNewest, CacheSize: 128 << 20, MemTableSize: 32 << 20, MemTableStopWritesThreshold: 4, L0StopWritesThreshold: 1000,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 3 }, Logger: silent{},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(dir, o)
	if err != nil {
		return nil, fmt.Errorf("open pebble in %s: %w", dir, err)
	}
	return &Pebble{db}, nil
}

// Set writes and waits until the log is synced.
func (p *Pebble) Set(_ context.Context, key, value []byte) error {
	return p.db.Set(key, value, pebble.Sync)
}

// Close closes the database.
func (p *Pebble) Close() error { return p.db.Close() }

// silent keeps what Pebble says of its daily work from the terminal.
type silent struct{}

func (silent) Infof(string, ...any)  {}
func (silent) Errorf(string, ...any) {}

func (silent) Fatalf(text string, args ...any) { panic(fmt.Sprintf("pebble: "+text, args...)) }
