// SPDX-License-Identifier: Apache-2.0

// Package blocktest is the contract of package block in executable form, and helps to test what
// stands on top of it.
//
// # How to write an engine
//
// Implement [block.Storage], with an opener beside it, and call [Run] from a test of the engine:
//
//	func TestConformance(t *testing.T) {
//		blocktest.Run(t, func(t *testing.T) blocktest.Harness {
//			dir := t.TempDir()
//			return blocktest.Harness{Open: func(ctx context.Context, o block.OpenOptions) (block.Storage, error) {
//				return Open(ctx, "file:"+dir, o)
//			}}
//		})
//	}
//
// The harness stands for one place that files are kept in, empty at first; each test asks for
// another. Begin each method with [block.CheckName] (or [block.CheckPrefix]), then look whether the
// storage is closed and the context done. [block.CheckRange] decides about ranges, before anything
// is allocated, and [block.ReadOnly] makes the read-only form. Then think about what this suite
// cannot see from outside and your own tests must: that a name shows nothing or the whole file after
// a failed or interrupted Put, that Sync reaches the device with all that leads to a file, what a
// full disk or a refused permission does, and that nothing is left open.
//
// # Counting
//
// [Counting] wraps a storage and counts calls, files and bytes, so that tests can state what an
// operation costs.
package blocktest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
)

// Harness gives access to one place that files are kept in.
type Harness struct {
	// Open opens the place. Handles that are open at the same time show the same files.
	Open func(ctx context.Context, o block.OpenOptions) (block.Storage, error)

	// Forgetful is set for an engine that keeps files no longer than until Close.
	Forgetful bool

	// Taken is how many of [block.MaxNameBytes] are not for the caller: those of the directory of a
	// [block.Sub]. Other storages leave it zero.
	Taken int
}

// Run runs the suite; newHarness gives an empty place each time.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"what was put is got", putAndGet},
		{"a name is put once", putOnce},
		{"a file of another size is replaced", putReplacesAnotherSize},
		{"many put one name", putConcurrently},
		{"passed and returned slices are not shared", aliasing},
		{"ranges", ranges},
		{"missing files", missingFiles},
		{"a directory is not a file", directories},
		{"list", list},
		{"list stops when told", listStops},
		{"delete", deleteFile},
		{"refresh", refresh},
		{"sync what another handle put", syncOfAnother},
		{"invalid names", invalidNames},
		{"invalid prefixes", invalidPrefixes},
		{"cancelled context", cancelled},
		{"after close", closed},
		{"files outlive the handle", reopen},
		{"read-only", readOnly},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newHarness(t)) })
	}
}

// open opens a handle that is closed at the end of the test.
func open(t *testing.T, h Harness, o block.OpenOptions) block.Storage {
	t.Helper()
	s, err := h.Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func put(t *testing.T, s block.Storage, name, data string) {
	t.Helper()
	require.NoError(t, s.Put(t.Context(), name, []byte(data)))
}

func requireFile(t *testing.T, s block.Storage, name, data string) {
	t.Helper()
	got, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, data, string(got))
	info, err := s.Stat(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, name, info.Name)
	require.EqualValues(t, len(data), info.Size)
}

func names(t *testing.T, s block.Storage, prefix string) []string {
	t.Helper()
	names := []string{}
	for info, err := range s.List(t.Context(), prefix) {
		require.NoError(t, err)
		names = append(names, info.Name)
	}
	return names
}

// call is one method with its arguments filled in.
type call struct {
	method string
	run    func(ctx context.Context, s block.Storage) error
}

// reads and writes call every method but Close on one name.
func reads(name string) []call {
	return []call{
		{"Get", func(ctx context.Context, s block.Storage) error { _, err := s.Get(ctx, name); return err }},
		{"GetRange", func(ctx context.Context, s block.Storage) error { _, err := s.GetRange(ctx, name, 0, 0); return err }},
		{"Stat", func(ctx context.Context, s block.Storage) error { _, err := s.Stat(ctx, name); return err }},
	}
}

func writes(name string) []call {
	return []call{
		{"Put", func(ctx context.Context, s block.Storage) error { return s.Put(ctx, name, []byte("new")) }},
		{"Delete", func(ctx context.Context, s block.Storage) error { return s.Delete(ctx, name) }},
		{"Refresh", func(ctx context.Context, s block.Storage) error { return s.Refresh(ctx, name) }},
		{"Sync", func(ctx context.Context, s block.Storage) error { return s.Sync(ctx, []string{name}) }},
	}
}

func listing(prefix string) call {
	return call{"List", func(ctx context.Context, s block.Storage) error {
		for _, err := range s.List(ctx, prefix) {
			if err != nil {
				return err
			}
		}
		return nil
	}}
}
