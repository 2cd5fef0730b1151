// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"path"
	"sync/atomic"

	"github.com/moraine-store/moraine/pkg/block"
)

// Storage counts what is put into a block storage and read from it, and the syncs that a local one makes of that: one of each file that is put, and one of each file and directory that a call of Sync leads to.
type Storage struct {
	block.Storage
	puts, putBytes, gets, getBytes, syncCalls, syncs atomic.Int64
}

// Counts returns what was counted so far, by name.
func (s *Storage) Counts() map[string]int64 {
	return map[string]int64{
		"block.files_put": s.puts.Load(), "block.bytes_put": s.putBytes.Load(), "block.reads": s.gets.Load(), "block.bytes_read": s.getBytes.Load(),
		"block.sync_calls": s.syncCalls.Load(), "block.syncs": s.syncs.Load(),
	}
}

// Syncs returns how many syncs were made of files and directories.
func (s *Storage) Syncs() int64 { return s.syncs.Load() }

// BytesPut returns the size of all files that were put.
func (s *Storage) BytesPut() int64 { return s.putBytes.Load() }

// Put implements [block.Storage].
func (s *Storage) Put(ctx context.Context, name string, data []byte) error {
	s.puts.Add(1)
	s.putBytes.Add(int64(len(data)))
	s.syncs.Add(1)
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
	places := map[string]bool{}
	for _, name := range names {
		for place := name; !places[place]; place = path.Dir(place) {
			places[place] = true
		}
	}
	s.syncCalls.Add(1)
	s.syncs.Add(int64(len(places)))
	return s.Storage.Sync(ctx, names)
}
