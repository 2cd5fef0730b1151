// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// What keys begin with, for [Store.ScanStored]: everything but the repositories is in the partition of its repository.
const (
	RepositoriesPartition = repositoriesPartition
	CleanupsPartition     = cleanupsPartition

	CommitsPrefix     = commitsPrefix
	ExpirationsPrefix = expiryPrefix
)

// RepositoryKey is the key of a repository's record in [RepositoriesPartition].
func RepositoryKey(id graveler.RepositoryID) []byte { return locateRepository(id).key }

// CommitKey is the key of a commit's record.
func CommitKey(id graveler.CommitID) []byte { return []byte(commitsPrefix + string(id)) }

// LogPrefix is what the keys of a log's moves begin with.
func LogPrefix(branchUID string) string { return logOf(branchUID) }

// Stored is a record as it lies in the store: what it holds, or why it does not decode.
type Stored struct {
	Key []byte
	// Record is what the methods of [graveler.Refs] return for such a record (pointers for repositories, branches, commits and
	// tags), or one of the types below. It is nil where Problem is set, and where no record of this package has such a key.
	Record any
	// Problem is [graveler.ErrCorrupt] with partition and key.
	Problem error
}

// Records that [graveler.Refs] has no type for.
type (
	// LoggedMove is one move in a branch log.
	LoggedMove struct {
		UID string // of the branch
		graveler.Move
	}
	// LogStart is where a branch log may begin.
	LogStart struct {
		UID  string
		Time int64
	}
	// Setting is the head of a document.
	Setting struct{ Name string }
	// SettingChunk is a part of a document, which GetSetting puts together.
	SettingChunk struct{}
)

// ScanStored yields what a partition holds below a prefix, by key. A record that does not decode is one of them, and does not end
// the scan; an error does.
func (s *Store) ScanStored(ctx context.Context, partition, prefix string) iter.Seq2[Stored, error] {
	return func(yield func(Stored, error) bool) {
		more := true
		err := s.each(ctx, partition, prefix, "", func(at location, value []byte) (bool, error) {
			more = yield(decodeStored(at, value), nil)
			return more, nil
		})
		if err != nil && more {
			yield(Stored{}, wrap(err, "scan partition %s", partition))
		}
	}
}

// GetStored reads one record, and returns [graveler.ErrNotFound] where there is none.
func (s *Store) GetStored(ctx context.Context, partition string, key []byte) (Stored, error) {
	at := location{[]byte(partition), key}
	item, err := s.kv.Get(ctx, at.partition, at.key)
	if errors.Is(err, kv.ErrNotFound) {
		return Stored{}, graveler.ErrNotFound
	}
	if err != nil {
		return Stored{}, wrap(Outcome(err), "get key %q of partition %s", key, partition)
	}
	return decodeStored(at, item.Value), nil
}

func decodeStored(at location, value []byte) Stored {
	r := Stored{Key: at.key}
	if decode := decoderOf(string(at.partition), string(at.key)); decode != nil {
		r.Record, r.Problem = decode(at, value)
	}
	return r
}

type decoder func(at location, value []byte) (any, error)

// decoderOf returns nil where no record of this package has such a key. It knows what [Decode] knows.
func decoderOf(partition, key string) decoder {
	switch partition {
	case repositoriesPartition:
		if strings.HasPrefix(key, repositoriesPrefix) {
			return either(decodeRepository)
		}
		return nil
	case cleanupsPartition:
		return either(decodeCleanup)
	case clockPartition:
		return nil // Watermark reads the one record there
	}
	switch key[:strings.Index(key, "/")+1] {
	case branchesPrefix:
		return either(decodeBranch)
	case commitsPrefix:
		return either(decodeCommit)
	case tagsPrefix:
		return either(decodeTag)
	case logPrefix:
		return either(decodeLoggedMove)
	case logNamesPrefix:
		return either(decodeLogName)
	case logStartPrefix:
		return either(decodeLogStartOf)
	case pinsPrefix:
		return either(decodePin)
	case expiryPrefix:
		return either(decodeExpiration)
	case settingsPrefix:
		return either(decodeSettingName)
	case chunksPrefix:
		return either(decodeStoredChunk)
	default:
		return nil
	}
}

// either turns what a decoder returns into a record or an error.
func either[T any](decode func(location, []byte) (T, error)) decoder {
	return func(at location, value []byte) (any, error) {
		record, err := decode(at, value)
		if err != nil {
			return nil, err
		}
		return record, nil
	}
}

func decodeLoggedMove(at location, value []byte) (LoggedMove, error) {
	m, err := decodeMove(at, value)
	uid, _, ok := strings.Cut(strings.TrimPrefix(string(at.key), logPrefix), "/")
	if err == nil && (!ok || string(at.key) != logOf(uid)+hexDigits(uint64(m.Time))) {
		err = at.corrupt(errors.New("key is not that of a move"))
	}
	return LoggedMove{uid, m}, err
}

func decodeLogStartOf(at location, value []byte) (LogStart, error) {
	b, err := decodeLogBounds(at, value)
	return LogStart{strings.TrimPrefix(string(at.key), logStartPrefix), b.Start}, err
}

func decodeSettingName(at location, value []byte) (Setting, error) {
	head, err := decodeSetting(at, value)
	return Setting{head.message.GetName()}, err
}

func decodeStoredChunk(at location, value []byte) (SettingChunk, error) {
	_, err := decodeChunk(at, value)
	return SettingChunk{}, err
}
