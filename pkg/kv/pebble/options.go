// SPDX-License-Identifier: Apache-2.0

package pebble

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

const (
	// format is what pebble writes. It is the newest that the pebble we link knows, and named rather
	// than taken as the newest, because raising it is for good: Open upgrades a store that is older,
	// and programs with an older pebble cannot read it any more. Raise layout with it.
	format = pebble.FormatValueSeparation

	// cacheSize is for blocks of tables and for recent writes together.
	cacheSize = 128 << 20

	// memTableSize is how much is written before it is flushed into a table, and so roughly how much
	// log is replayed after a crash.
	memTableSize = 32 << 20
)

func options(d *disk, memTable uint64) *pebble.Options {
	o := &pebble.Options{
		FS:                 d,
		FormatMajorVersion: format,
		CacheSize:          cacheSize,
		MemTableSize:       memTable,
		// Writers wait while this many flushes are behind.
		MemTableStopWritesThreshold: 4,
		// They do not wait for compactions, which are given up once the disk has failed.
		L0StopWritesThreshold:      1000,
		CompactionConcurrencyRange: func() (lower, upper int) { return 1, 3 },
		Logger:                     logger{d},
		EventListener: &pebble.EventListener{
			BackgroundError: d.fail,
			// The call that finds it returns it, or it is a BackgroundError.
			DataCorruption: func(pebble.DataCorruptionInfo) {},
		},
	}
	for i := range o.Levels {
		o.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // most conditional writes look for what is not there
	}
	return o
}

// logger drops what pebble reports about its daily work.
type logger struct{ disk *disk }

func (logger) Infof(string, ...any)  {}
func (logger) Errorf(string, ...any) {}

// Fatalf is called where pebble would end the process. The store stops writing instead.
func (l logger) Fatalf(text string, args ...any) { l.disk.fail(fmt.Errorf(text, args...)) }
