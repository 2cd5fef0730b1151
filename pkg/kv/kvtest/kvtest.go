// SPDX-License-Identifier: Apache-2.0

// Package kvtest is the contract of package kv in executable form, for engines and for whoever
// writes one.
//
// # How to write an engine
//
// An engine is a package with a type that implements kv.Store and a kv.Opener that makes one from a
// URL. In the order in which it goes well:
//
//  1. Decide how (partition, key) maps to the engine's own keys so that partitions never run into
//     each other and each is one contiguous range.
//  2. Write Limits. Begin every other method with the Check method of kv.Limits that fits, then the
//     context, then whether the store is closed or read-only; end it with kv.Wrap.
//  3. Write Get. Value is a copy, never nil; Predicate is kv.Equals of the same bytes.
//  4. Write one function that reads a page, and give it to kv.NewIterator: that is Scan. It must not
//     keep anything of the engine's between two pages.
//  5. Write Apply, with predicates and fence, in one transaction of the engine. If that is no dearer
//     than a plain write, the other writes are Apply of one element.
//  6. Whatever else fails, fail with the engine's error, wrapped: the caller takes the outcome for
//     unknown. Repeat a write only if it is certain that it was not executed.
//  7. Add kv.ManySetter, kv.PartitionDropper and kv.Publisher if the engine has something better than one call
//     after the other.
//
// Then run the suite in a test of the engine's package:
//
//	func TestConformance(t *testing.T) {
//		kvtest.Run(t, kvtest.Harness{
//			Open:    bolt.Open,
//			NewURL:  func(t *testing.T) string { return "bolt:" + filepath.Join(t.TempDir(), "meta.db") },
//			Durable: true,
//		})
//	}
//
// What only the engine can know, such as who may open its files or what it does on a full disk, is
// for tests of its own.
//
// # Concurrent histories
//
// Run lets several callers loose on few keys, with contexts that end meanwhile, and looks for an
// order of their calls that explains all answers. A call that ended with an error of unknown outcome
// may have its effect at any later time or never. The history of a failure is printed, and the seed
// of its plan (which replays the calls, though not how they met).
//
// # Tests of what stands on a store
//
// [Counting] wraps a store and counts calls, for tests that hold an operation to its price.
//
// [Faulty] wraps a store and lets a [Script] decide about each call. The scripts made here fail
// calls before or after the fact ([FailBefore], [FailAfter]), or by chance that a seed repeats
// ([Random]), crash ([CrashBefore], [CrashAfter]), hold calls until the test lets go ([Gate]) and make
// failed writes happen later after all ([Limbo]); [Chain] combines them, and [Nth], [NthWrite] or any
// function of an [Op] picks their victims. This visits every crash of an operation:
//
//	for n := 1; ; n++ {
//		store := mem.New()
//		err := operate(kvtest.Faulty(store, kvtest.CrashAfter(kvtest.NthWrite(n))))
//		requireSound(t, store)
//		if err == nil {
//			break // it makes fewer than n writes
//		}
//	}
package kvtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Harness is how the suite gets at an engine.
type Harness struct {
	// Open is the engine's opener.
	Open kv.Opener

	// NewURL returns the URL of a store that does not exist yet or is empty, a different one each
	// time, and arranges with t for it to be removed.
	NewURL func(t *testing.T) string

	// Durable says that a URL opened again finds what was written before.
	Durable bool
}

// Run checks an engine against the contract. Each case opens a store of its own.
func Run(t *testing.T, h Harness) {
	t.Run("basics", func(t *testing.T) { basics(t, h) })
	t.Run("inputs", func(t *testing.T) { inputs(t, h) })
	t.Run("predicates", func(t *testing.T) { predicates(t, h) })
	t.Run("scans", func(t *testing.T) { scans(t, h) })
	t.Run("applies", func(t *testing.T) { applies(t, h) })
	t.Run("publishes", func(t *testing.T) { publishes(t, h) })
	t.Run("races", func(t *testing.T) { races(t, h) })
	t.Run("histories", func(t *testing.T) { histories(t, h) })
	t.Run("bulk", func(t *testing.T) { bulk(t, h) })
	t.Run("lifecycle", func(t *testing.T) { lifecycle(t, h) })
}

func (h Harness) check(t *testing.T, name string, run func(*testing.T, Harness)) {
	t.Run(name, func(t *testing.T) { run(t, h) })
}

// open opens a new store that is closed when the test ends.
func (h Harness) open(t *testing.T) kv.Store {
	t.Helper()
	return h.openURL(t, h.NewURL(t), kv.OpenOptions{})
}

func (h Harness) openURL(t *testing.T, url string, o kv.OpenOptions) kv.Store {
	t.Helper()
	s, err := h.Open(t.Context(), url, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

var part = []byte("part")

// The helpers take rapid's idea of a test, which is both its own and that of package testing.

func requireValue(t rapid.TB, s kv.Store, partition, key []byte, want string) {
	t.Helper()
	item, err := s.Get(context.Background(), partition, key)
	require.NoError(t, err)
	require.Equal(t, want, string(item.Value))
}

func requireMissing(t rapid.TB, s kv.Store, partition, key []byte) {
	t.Helper()
	_, err := s.Get(context.Background(), partition, key)
	require.ErrorIs(t, err, kv.ErrNotFound)
}

// scanAll returns the keys of a scan, and the values under them.
func scanAll(t rapid.TB, s kv.Store, partition []byte, o kv.ScanOptions) (keys []string, values map[string]string) {
	t.Helper()
	it, err := s.Scan(context.Background(), partition, o)
	require.NoError(t, err)
	values = make(map[string]string)
	for it.Next() {
		key := string(it.Key())
		keys = append(keys, key)
		values[key] = string(it.Value())
	}
	require.NoError(t, it.Close())
	return keys, values
}

// fill stores n keys, numbered so that their order is that of their numbers.
func fill(t rapid.TB, s kv.Store, partition []byte, n int) []string {
	t.Helper()
	keys := make([]string, n)
	writes := make([]kv.Write, n)
	for i := range n {
		keys[i] = fmt.Sprintf("key-%06d", i)
		writes[i] = kv.Write{Key: []byte(keys[i]), Value: fmt.Appendf(nil, "value-%d", i)}
	}
	require.NoError(t, kv.SetMany(context.Background(), s, partition, writes))
	return keys
}
