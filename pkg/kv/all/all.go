// SPDX-License-Identifier: Apache-2.0

// Package all names every key/value engine, for programs whose user chooses one by URL. Importing it
// links them all, with their client libraries; a program that knows its engine names that one alone.
package all

import (
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/kv/pebble"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
)

// Engines returns the engines by the schemes of their URLs, in a map that belongs to the caller.
// Postgres answers to both schemes that its own tools know.
func Engines() kv.Engines {
	return kv.Engines{
		"bolt":       bolt.Open,
		"mem":        mem.Open,
		"pebble":     pebble.Open,
		"postgres":   postgres.Open,
		"postgresql": postgres.Open,
	}
}
