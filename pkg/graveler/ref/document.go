// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/kv"
)

// chunkOverhead is more than a SettingChunk has around its data.
const chunkOverhead = 16

// fillSetting makes m the head of a document, whole.
func fillSetting(m *refpb.SettingData, document []byte) {
	m.Removed = false
	m.Size = int64(len(document))
	m.Checksum = xxhash.Sum64(document)
	m.Chunks = 0
	m.Data = s2.EncodeBetter(nil, document)
}

// clearSetting makes m the head of a document that was removed.
func clearSetting(m *refpb.SettingData) {
	m.Removed = true
	m.Size, m.Checksum, m.Chunks, m.Data = 0, 0, 0, nil
}

// splitSetting moves the data out of m, in pieces that fit into values of at most limit bytes.
func splitSetting(m *refpb.SettingData, limit int) [][]byte {
	chunks := slices.Collect(slices.Chunk(m.Data, limit-chunkOverhead))
	m.Data, m.Chunks = nil, uint32(len(chunks))
	return chunks
}

// document reads what a head stands for. A missing chunk is ErrCorrupt, and may only mean that the
// head has been replaced.
func (s *Store) document(ctx context.Context, repo *graveler.Repository, head settingHead) ([]byte, error) {
	m := head.message
	data := m.Data
	for n := range m.Chunks {
		chunk, err := get(ctx, s, locateChunk(repo, m, n), errMissingChunk, decodeChunk)
		if errors.Is(err, errMissingChunk) {
			return nil, locateChunk(repo, m, n).corrupt(err)
		}
		if err != nil {
			return nil, err
		}
		if data = append(data, chunk...); len(data) > s2.MaxEncodedLen(MaxSettingBytes) {
			break // no document is that large; what follows says so
		}
	}
	document, err := decompress(m, data)
	if err != nil {
		return nil, locateSetting(repo, m.Name).corrupt(err)
	}
	return document, nil
}

var errMissingChunk = errors.New("chunk is missing")

// decompress trusts no length that is stored: it never allocates more than MaxSettingBytes.
func decompress(m *refpb.SettingData, data []byte) ([]byte, error) {
	size, err := s2.DecodedLen(data)
	if err != nil {
		return nil, err
	}
	if int64(size) != m.Size || size > MaxSettingBytes {
		return nil, fmt.Errorf("document of %d bytes, expected %d", size, m.Size)
	}
	document, err := s2.Decode(make([]byte, size), data)
	if err != nil {
		return nil, err
	}
	if sum := xxhash.Sum64(document); sum != m.Checksum {
		return nil, fmt.Errorf("document has checksum %016x, expected %016x", sum, m.Checksum)
	}
	return document, nil
}

// putChunks stores the chunks that m names.
func (s *Store) putChunks(ctx context.Context, repo *graveler.Repository, m *refpb.SettingData, chunks [][]byte) error {
	if len(chunks) == 0 {
		return nil
	}
	writes := make([]kv.Write, len(chunks))
	for n, chunk := range chunks {
		value, err := marshal(&refpb.SettingChunk{Data: chunk})
		if err != nil {
			return err
		}
		writes[n] = kv.Write{Key: locateChunk(repo, m, uint32(n)).key, Value: value}
	}
	return Outcome(kv.SetMany(ctx, s.kv, []byte(repo.Partition()), writes))
}

// removeDeadChunks removes what no head of the name can refer to any more, now that m is stored.
func (s *Store) removeDeadChunks(ctx context.Context, repo *graveler.Repository, m *refpb.SettingData) error {
	live := chunkSet(m)
	later := chunksOf(m.Name) + hexDigits(m.Version+1)
	return s.removeChunks(ctx, repo, chunksOf(m.Name), func(key string) bool {
		return key < later && !strings.HasPrefix(key, live)
	})
}

// removeChunks removes the chunks below a prefix that are dead.
func (s *Store) removeChunks(ctx context.Context, repo *graveler.Repository, prefix string, dead func(key string) bool) error {
	err := s.each(ctx, repo.Partition(), prefix, "", func(at location, _ []byte) (bool, error) {
		if !dead(string(at.key)) {
			return true, nil
		}
		return true, Outcome(s.kv.Delete(ctx, at.partition, at.key))
	})
	return wrap(err, "remove chunks that are not needed any more")
}

func chunksOf(name string) string { return chunksPrefix + name + "/" }

// chunkSet is what the keys of the chunks of one version by one writer begin with.
func chunkSet(m *refpb.SettingData) string {
	return chunksOf(m.Name) + hexDigits(m.Version) + "-" + m.Nonce + "/"
}

func locateChunk(repo *graveler.Repository, m *refpb.SettingData, n uint32) location {
	return locate(repo.Partition(), chunkSet(m)+fmt.Sprintf("%08x", n))
}

// decodeChunk checks no more than the form; the checksum of the document is what proves it.
func decodeChunk(at location, value []byte) ([]byte, error) {
	m := &refpb.SettingChunk{}
	if proto.Unmarshal(value, m) != nil {
		return nil, at.corrupt(undecodable(m))
	}
	return m.Data, nil
}
