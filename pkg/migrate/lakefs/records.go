// SPDX-License-Identifier: Apache-2.0

package lakefs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// RepositoriesPartition is the partition of the records of all repositories.
const RepositoriesPartition = "graveler"

// The keys of a repository's own partition, in the partition of all for the first. Those with a slash at the end are followed by a name.
const (
	repositoriesPrefix = "repos/"
	branchesPrefix     = "branches/"
	tagsPrefix         = "tags/"
	commitsPrefix      = "commits/"
	metadataKey        = "repo-metadata"
	settingsPrefix     = "settings/"
	protectionKey      = settingsPrefix + "protected_branches"
)

// Repository is the record of a repository.
type Repository struct {
	ID, Namespace, DefaultBranch string
	UID                          string    // tells it from others of the same name
	CreatedAt                    time.Time // zero where there is none
	InDeletion, ReadOnly         bool
	StorageID                    string // "" where lakeFS has one object store
}

// Partition names the partition of the repository's other records.
func (r Repository) Partition() string { return r.ID + "-" + r.UID }

// Branch is the record of a branch. What is staged under Token comes before what is under the first of Sealed, and so on; the commit comes last.
type Branch struct {
	ID, Commit, Token string
	Sealed            []string // tokens, newest first
	Hidden            bool
}

// Tag is the record of a tag.
type Tag struct{ ID, Commit string }

// Commit is the record of a commit.
type Commit struct {
	ID, Committer, Message string
	Metarange              string            // "": the empty tree
	CreatedAt              time.Time         // zero where there is none
	Metadata               map[string]string // nil where it is empty
	Parents                []string          // the main one first, in version 0 last
	Version, Generation    int
}

// Staged is an entry, or that there is to be none, as it is staged under a token.
type Staged struct {
	Record
	Tombstone bool // without Identity and Data
}

// ProtectionRule says what is forbidden on the branches whose names match a pattern.
type ProtectionRule struct {
	Pattern              string // as lakeFS has it
	StagingWrite, Commit bool
}

// Repositories yields the repositories by ID, those in deletion too.
func (kv *KV) Repositories(ctx context.Context) iter.Seq2[Repository, error] {
	return scan(ctx, kv, RepositoriesPartition, repositoriesPrefix, func(key string, value []byte) (Repository, error) {
		m := &lakefspb.RepositoryData{}
		err := decode(value, m, key, m.GetId)
		if err == nil && m.State != lakefspb.RepositoryState_REPOSITORY_ACTIVE && m.State != lakefspb.RepositoryState_REPOSITORY_IN_DELETION {
			err = fmt.Errorf("state %d", m.State)
		}
		return Repository{
			ID: m.Id, Namespace: m.Namespace, DefaultBranch: m.DefaultBranch, UID: m.InstanceUid, CreatedAt: timeOf(m.CreatedAt),
			InDeletion: m.State == lakefspb.RepositoryState_REPOSITORY_IN_DELETION, ReadOnly: m.ReadOnly, StorageID: m.StorageId,
		}, err
	})
}

// Branches yields the branches of a repository by name.
func (kv *KV) Branches(ctx context.Context, r Repository) iter.Seq2[Branch, error] {
	return scan(ctx, kv, r.Partition(), branchesPrefix, func(key string, value []byte) (Branch, error) {
		m := &lakefspb.BranchData{}
		err := decode(value, m, key, m.GetId)
		return Branch{ID: m.Id, Commit: m.CommitId, Token: m.StagingToken, Sealed: m.SealedTokens, Hidden: m.Hidden}, err
	})
}

// Tags yields the tags of a repository by name.
func (kv *KV) Tags(ctx context.Context, r Repository) iter.Seq2[Tag, error] {
	return scan(ctx, kv, r.Partition(), tagsPrefix, func(key string, value []byte) (Tag, error) {
		m := &lakefspb.TagData{}
		err := decode(value, m, key, m.GetId)
		return Tag{ID: m.Id, Commit: m.CommitId}, err
	})
}

// Commits yields the commits of a repository by ID, as they come from the database.
func (kv *KV) Commits(ctx context.Context, r Repository) iter.Seq2[Commit, error] {
	return scan(ctx, kv, r.Partition(), commitsPrefix, func(key string, value []byte) (Commit, error) {
		m := &lakefspb.CommitData{}
		err := decode(value, m, key, m.GetId)
		return Commit{
			ID: m.Id, Committer: m.Committer, Message: m.Message, Metarange: m.MetarangeId, CreatedAt: timeOf(m.CreatedAt), Metadata: m.Metadata, Parents: m.Parents,
			Version: int(m.Version), Generation: int(m.Generation),
		}, err
	})
}

// Staged yields what is staged under tokens, as it comes from the database: each key once, ascending, of several rows of a key
// the one whose token is named first.
func (kv *KV) Staged(ctx context.Context, tokens ...string) iter.Seq2[Staged, error] {
	partitions := make([][]byte, len(tokens))
	for i, token := range tokens {
		partitions[i] = []byte(token)
	}
	sql := "SELECT partition_key, key, value FROM kv WHERE partition_key = ANY($1) ORDER BY key"
	if len(tokens) > 1 {
		sql = "SELECT DISTINCT ON (key) partition_key, key, value FROM kv WHERE partition_key = ANY($1) ORDER BY key, array_position($1, partition_key)"
	}
	return query(ctx, kv.conn, func(rows pgx.Rows) (Staged, error) {
		var partition, key, value []byte
		if err := rows.Scan(&partition, &key, &value); err != nil {
			return Staged{}, err
		}
		s, err := parseStaged(key, value)
		if err != nil {
			err = invalid(string(partition), string(key), err)
		}
		return s, err
	}, sql, partitions)
}

func parseStaged(key, value []byte) (Staged, error) {
	m := &lakefspb.StagedData{}
	if err := decode(value, m, string(key), func() string { return string(m.Key) }); err != nil {
		return Staged{}, err
	}
	s := Staged{Record{m.Key, m.Identity, m.Data}, len(m.Identity) == 0}
	if s.Tombstone && len(m.Data) > 0 {
		return Staged{}, errors.New("it has data and no identity")
	}
	return s, nil
}

// Metadata returns the metadata of a repository, nil where it has none.
func (kv *KV) Metadata(ctx context.Context, r Repository) (map[string]string, error) {
	m := &lakefspb.RepositoryMetadata{}
	err := kv.decodeOne(ctx, r, metadataKey, m)
	return m.Metadata, err
}

// Protection returns the branch protection rules of a repository by pattern.
func (kv *KV) Protection(ctx context.Context, r Repository) ([]ProtectionRule, error) {
	m := &lakefspb.ProtectedBranches{}
	if err := kv.decodeOne(ctx, r, protectionKey, m); err != nil {
		return nil, err
	}
	var rules []ProtectionRule
	for pattern, blocked := range m.ByPattern {
		rule := ProtectionRule{Pattern: pattern}
		for _, action := range blocked.GetActions() {
			switch action {
			case lakefspb.BlockedAction_BLOCKED_STAGING_WRITE:
				rule.StagingWrite = true
			case lakefspb.BlockedAction_BLOCKED_COMMIT:
				rule.Commit = true
			default:
				return nil, invalid(r.Partition(), protectionKey, fmt.Errorf("pattern %q forbids action %d, which this program does not know", pattern, action))
			}
		}
		rules = append(rules, rule)
	}
	slices.SortFunc(rules, func(a, b ProtectionRule) int { return cmp.Compare(a.Pattern, b.Pattern) })
	return rules, nil
}

// decodeOne reads the record of a key, where there is one.
func (kv *KV) decodeOne(ctx context.Context, r Repository, key string, m proto.Message) error {
	value, err := kv.get(ctx, r.Partition(), key)
	if err != nil {
		return err
	}
	if err := unmarshal(value, m); err != nil {
		return fmt.Errorf("read table kv: %w", invalid(r.Partition(), key, err))
	}
	return nil
}

// decode reads the message of a row, which must have the name that its key has.
func decode(value []byte, m proto.Message, key string, name func() string) error {
	if err := unmarshal(value, m); err != nil {
		return err
	}
	if name() != key {
		return fmt.Errorf("it is the record of %q", name())
	}
	return nil
}

// unmarshal reads a message that has no fields but those that this program knows.
func unmarshal(data []byte, m proto.Message) error {
	if err := proto.Unmarshal(data, m); err != nil {
		return err
	}
	return known(m.ProtoReflect())
}

// known returns an error where a message, or one in it, has a field that this program does not know: it could be what matters.
func known(m protoreflect.Message) error {
	err := knownHere(m)
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case err != nil:
		case field.IsMap():
			if field.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					err = known(v.Message())
					return err == nil
				})
			}
		case field.Message() != nil:
			err = known(v.Message())
		}
		return err == nil
	})
	return err
}

// knownHere is known without the messages in it.
func knownHere(m protoreflect.Message) error {
	if len(m.GetUnknown()) > 0 {
		return fmt.Errorf("message %s has fields that this program does not know", m.Descriptor().Name())
	}
	return nil
}

// timeOf returns the zero time of nothing.
func timeOf(t *lakefspb.Instant) time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Unix(t.Seconds, int64(t.Nanoseconds)).UTC()
}
