// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// handmade is a deployment with one repository, made file by file.
type handmade struct {
	t *testing.T
	*lakegen.Repository
	commits int
}

func newHandmade(t *testing.T) *handmade {
	t.Helper()
	r := &lakegen.Repository{Files: map[string][]byte{}}
	r.ID, r.Namespace, r.DefaultBranch, r.UID, r.CreatedAt = "handmade", "s3://bucket/handmade", "main", "uid", time.Unix(1_600_000_000, 0).UTC()
	return &handmade{t: t, Repository: r}
}

func (h *handmade) deployment() *lakegen.Deployment {
	return &lakegen.Deployment{Repositories: []*lakegen.Repository{h.Repository}}
}

// anEntry is the record of an entry with a relative address.
func anEntry(t testing.TB, key, text string) lakefs.Record {
	t.Helper()
	data, err := proto.Marshal(&lakefspb.EntryData{Address: "data/" + text, Size: 1, Etag: text, AddressType: lakefspb.AddressType_ADDRESS_RELATIVE})
	require.NoError(t, err)
	identity := sha256.Sum256([]byte(text))
	return lakefs.Record{Key: []byte(key), Identity: identity[:], Data: data}
}

func stagedEntry(t testing.TB, key, text string) lakefs.Staged {
	t.Helper()
	return lakefs.Staged{Record: anEntry(t, key, text)}
}

// rangeOf writes a range that has an entry for each key.
func (h *handmade) rangeOf(keys ...string) lakefs.Range {
	h.t.Helper()
	var records []lakefs.Record
	for _, k := range keys {
		records = append(records, anEntry(h.t, k, fmt.Sprintf("%.20x", k)))
	}
	return h.rangeFile(records...)
}

func (h *handmade) rangeFile(records ...lakefs.Record) lakefs.Range {
	h.t.Helper()
	id, data, err := lakegen.RangeFile(records)
	require.NoError(h.t, err)
	h.Files[id] = data
	return lakefs.Range{ID: id, First: records[0].Key, Last: records[len(records)-1].Key, Count: int64(len(records))}
}

// metarange writes one that says what it is told of ranges.
func (h *handmade) metarange(ranges ...lakefs.Range) string {
	h.t.Helper()
	var records []lakefs.Record
	for _, r := range ranges {
		data, err := proto.Marshal(&lakefspb.RangeData{First: r.First, Last: r.Last, Count: r.Count, EstimatedSize: 10})
		require.NoError(h.t, err)
		records = append(records, lakefs.Record{Key: r.Last, Identity: []byte(r.ID), Data: data})
	}
	id, data, err := lakegen.MetarangeFile(records)
	require.NoError(h.t, err)
	h.Files[id] = data
	return id
}

// commit adds a commit, on whatever the last one was if no parents are named.
func (h *handmade) commit(metarange string, parents ...string) *lakegen.Commit {
	h.t.Helper()
	h.commits++
	if len(parents) == 0 && len(h.Commits) > 0 {
		parents = []string{h.Commits[len(h.Commits)-1].ID}
	}
	id := sha256.Sum256(fmt.Append(nil, "commit ", h.commits))
	c := &lakegen.Commit{Commit: lakefs.Commit{
		ID: fmt.Sprintf("%x", id), Message: fmt.Sprint("commit ", h.commits), CreatedAt: time.Unix(1_600_000_000+int64(h.commits), 0).UTC(), Metarange: metarange, Parents: parents, Version: 1,
	}}
	h.Commits = append(h.Commits, c)
	return c
}

func (h *handmade) branch(name string, head *lakegen.Commit, staged ...lakefs.Staged) *lakegen.Branch {
	b := &lakegen.Branch{Branch: lakefs.Branch{ID: name, Commit: head.ID, Token: "token-of-" + name}, Staged: map[string][]lakefs.Staged{"token-of-" + name: staged}}
	h.Branches = append(h.Branches, b)
	slices.SortFunc(h.Branches, func(a, b *lakegen.Branch) int { return bytes.Compare([]byte(a.ID), []byte(b.ID)) })
	return b
}

// keysAt are the keys that a ref of the target shows.
func keysAt(t fataler, l *lake, repo graveler.RepositoryID, ref string) []string {
	t.Helper()
	keys := []string{}
	for _, e := range collect(t, l.migration(t).Graveler.List(context.Background(), repo, ref, graveler.ListOptions{})) {
		keys = append(keys, string(e.Key))
	}
	return keys
}
