// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/rs/xid"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// Partition is where the target keeps how far a migration, or a copy, has come. The records stay when it has ended: they say what came from where.
const Partition = "migration"

const (
	sourceKey          = "source"
	repositoriesPrefix = "repositories/"
	treesPrefix        = "trees/"
	lossesPrefix       = "lost/"
	copiesPrefix       = "copies/"
)

// Decode returns the message that a record of Partition is, for those who look at raw records; false for any other.
func Decode(partition string, key, value []byte) (proto.Message, bool) {
	if partition != Partition {
		return nil, false
	}
	var m proto.Message
	switch kind, _, _ := strings.Cut(string(key), "/"); kind + "/" {
	case sourceKey + "/":
		m = &migratepb.MigrationData{}
	case repositoriesPrefix:
		m = &migratepb.MigratedRepositoryData{}
	case treesPrefix:
		m = &migratepb.MigratedTreeData{}
	case lossesPrefix:
		m = &migratepb.LostFileData{}
	case copiesPrefix:
		m = &migratepb.CopiedRepositoryData{}
	default:
		return nil, false
	}
	return m, proto.Unmarshal(value, m) == nil
}

// records are the notes in the target.
type records struct{ kv kv.Store }

func (r records) get(ctx context.Context, key string, m proto.Message) (found bool, err error) {
	_, err = kv.GetMessage(ctx, r.kv, []byte(Partition), []byte(key), m)
	if errors.Is(err, kv.ErrNotFound) {
		return false, nil
	}
	return err == nil, wrapf(err, "read note %s", key)
}

func (r records) put(ctx context.Context, key string, m proto.Message) error {
	return wrapf(kv.SetMessage(ctx, r.kv, []byte(Partition), []byte(key), m), "write note %s", key)
}

func (r records) remove(ctx context.Context, key string) error {
	return wrapf(r.kv.Delete(ctx, []byte(Partition), []byte(key)), "remove note %s", key)
}

// begin returns the record of the migration from a source, and makes it where the store is empty.
func (r records) begin(ctx context.Context, source string, refs graveler.Refs, began int64) (*migratepb.MigrationData, error) {
	m, err := r.migration(ctx, source)
	if err != nil || m != nil {
		return m, err
	}
	if err := checkEmpty(ctx, refs); err != nil {
		return nil, err
	}
	m = &migratepb.MigrationData{Uid: xid.New().String(), Source: source, Began: began}
	err = kv.SetMessageIf(ctx, r.kv, []byte(Partition), []byte(sourceKey), m, kv.Absent)
	if errors.Is(err, kv.ErrPredicateFailed) {
		return nil, fmt.Errorf("%w: another migration began just now", ErrTargetTaken)
	}
	return m, wrapf(err, "note the migration")
}

// checkEmpty returns ErrTargetTaken where a store has repositories.
func checkEmpty(ctx context.Context, refs graveler.Refs) error {
	for repo, err := range refs.ScanRepositories(ctx, "") {
		if err == nil {
			err = fmt.Errorf("%w: repository %s", ErrTargetTaken, repo.ID)
		}
		return err
	}
	return nil
}

// migration returns the record of the migration, nil where there is none. One from another source is ErrTargetTaken.
func (r records) migration(ctx context.Context, source string) (*migratepb.MigrationData, error) {
	m := &migratepb.MigrationData{}
	found, err := r.get(ctx, sourceKey, m)
	switch {
	case err != nil || !found:
		return nil, err
	case source != "" && m.Source != source:
		return nil, fmt.Errorf("%w: it was migrated from database %s, and this is %s (name, server, and numbers of database and table): one that was restored or moved counts as another, since nothing tells that it has the same", ErrTargetTaken, m.Source, source)
	}
	return m, nil
}

func (r records) repository(ctx context.Context, id string) (*migratepb.MigratedRepositoryData, error) {
	m := &migratepb.MigratedRepositoryData{}
	found, err := r.get(ctx, repositoriesPrefix+id, m)
	if err != nil || !found {
		return nil, err
	}
	return m, nil
}

func (r records) putRepository(ctx context.Context, m *migratepb.MigratedRepositoryData) error {
	return r.put(ctx, repositoriesPrefix+m.Repository, m)
}

func (r records) repositories(ctx context.Context) iter.Seq2[*migratepb.MigratedRepositoryData, error] {
	items := kv.ScanMessages(ctx, r.kv, []byte(Partition), kv.ScanOptions{Prefix: []byte(repositoriesPrefix)}, func() *migratepb.MigratedRepositoryData { return &migratepb.MigratedRepositoryData{} })
	return func(yield func(*migratepb.MigratedRepositoryData, error) bool) {
		for i, err := range items {
			if !yield(i.Message, wrapf(err, "read notes")) {
				return
			}
		}
	}
}

// branchUID makes the UID of a branch: the same whenever the load is taken up again, and before those of branches that are made later.
func branchUID(began int64, repositoryUID, branch string) string {
	var id xid.ID
	binary.BigEndian.PutUint32(id[:4], uint32(time.Unix(0, began).Unix()))
	hash := nameHash(repositoryUID, branch)
	copy(id[4:], hash[:])
	return id.String()
}
