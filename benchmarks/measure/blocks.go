// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"sync/atomic"

	"github.com/moraine-store/moraine/pkg/block"
)

// Storage counts what is put into a block storage and read from it, and the syncs that a local one, which counts them itself, makes of that.
type Storage struct {
	block.Storage
	puts, putBytes, gets, getBytes, syncCalls atomic.Int64
}

// Counts returns what was counted so far, by name.
func (s *Storage) Counts() map[string]int64 {
	return map[string]int64{
		"block.files_put": s.puts.Load(), "block.bytes_put": s.putBytes.Load(), "block.reads": s.gets.Load(), "block.bytes_read": s.getBytes.Load(),
		"block.sync_calls": s.syncCalls.Load(), "block.syncs": s.Syncs(),
	}
}

// Syncs returns how many syncs were made of files and directories, 0 of a storage that makes none.
func (s *Storage) Syncs() int64 {
	if counting, ok := s.Storage.(interface{ Syncs() int64 }); ok {
		return counting.Syncs()
	}
	return 0
}

// Calls returns how many calls there were that put, read or synced files.
func (s *Storage) Calls() int64 { return s.puts.Load() + s.gets.Load() + s.syncCalls.Load() }

// BytesPut returns the size of all files that were put.
func (s *Storage) BytesPut() int64 { return s.putBytes.Load() }

// Put implements [block.Storage].
func (s *Storage) Put(ctx context.Context, name string, data []byte) error {
	s.puts.Add(1)
	s.putBytes.Add(int64(len(data)))
	return s.Storage.Put(ctx, name, data)
}

// Get implements [block.Storage].
func (s *Storage) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := s.Storage.Get(ctx, name)
	return s.read(data), err
}

// GetRange implements [block.Storage].
func (s *Storage) GetRange(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	data, err := s.Storage.GetRange(ctx, name, offset, length)
	return s.read(data), err
}

func (s *Storage) read(data []byte) []byte {
	s.gets.Add(1)
	s.getBytes.Add(int64(len(data)))
	return data
}

// Sync implements [block.Storage].
func (s *Storage) Sync(ctx context.Context, names []string) error {
	s.syncCalls.Add(1)
	return s.Storage.Sync(ctx, names)
}
