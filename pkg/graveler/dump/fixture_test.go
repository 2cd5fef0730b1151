// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// fataler is what testing.TB and rapid.T share.
type fataler interface {
	require.TestingT
	Helper()
}

// store is a versioned store in memory.
type store struct {
	*graveler.Graveler
	refs *ref.Store
}

func newStore(t fataler, engine kv.Store, trees graveler.Trees, edits ...func(*graveler.Config)) store {
	t.Helper()
	refs := ref.New(engine)
	c := graveler.Config{Refs: refs, Staging: staging.New(engine), Trees: trees}
	for _, edit := range edits {
		edit(&c)
	}
	g, err := graveler.New(c)
	require.NoError(t, err)
	return store{g, refs}
}

// newLake is a new store with a repository.
func newLake(t fataler, trees graveler.Trees) store {
	t.Helper()
	s := newStore(t, mem.New(), trees)
	_, err := s.CreateRepository(context.Background(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	return s
}

func value(text string) graveler.Value {
	sum := sha256.Sum256([]byte(text))
	return graveler.Value{Identity: sum[:], Data: []byte(text)}
}

func key(s string) graveler.Key { return graveler.Key(s) }

func (s store) set(t fataler, branch graveler.BranchID, k, text string) {
	t.Helper()
	require.NoError(t, s.Set(context.Background(), "lake", branch, key(k), value(text)))
}

func (s store) commit(t fataler, branch graveler.BranchID) graveler.Commit {
	t.Helper()
	res, err := s.Commit(context.Background(), "lake", branch, graveler.CommitParams{Message: "m", AllowEmpty: true})
	require.NoError(t, err)
	return res.Commit
}

func (s store) dump(t fataler, repo graveler.RepositoryID) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, dump.Write(context.Background(), s.Graveler, repo, "test", &b))
	return b.Bytes()
}

func (s store) load(repo graveler.RepositoryID, text []byte, p dump.LoadParams) error {
	_, err := dump.Load(context.Background(), s.Graveler, repo, bytes.NewReader(text), p)
	return err
}

// body is a dump without what differs between a repository and its copy.
func body(text []byte) string {
	lines := bytes.SplitAfter(text, []byte("\n"))
	return string(bytes.Join(lines[1:len(lines)-2], nil))
}

// sealed ends lines of a dump with the trailer that belongs to them.
func sealed(t testing.TB, lines ...string) []byte {
	t.Helper()
	text := strings.Join(lines, "")
	counts := map[string]int{}
	for _, line := range lines[1:] {
		kind, _, _ := strings.Cut(strings.TrimPrefix(line, `{"`), `"`)
		counts[kind]++
	}
	sum := sha256.Sum256([]byte(text))
	trailer, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Trailer{Trailer: &dumppb.Trailer{
		Counts: &dumppb.Counts{
			Settings: int64(counts["setting"]), Pins: int64(counts["pin"]), Tags: int64(counts["tag"]), Branches: int64(counts["branch"]),
			DeletedBranches: int64(counts["deleted_branch"]), Moves: int64(counts["move"]), Entries: int64(counts["entry"]), Commits: int64(counts["commit"]),
			Expirations: int64(counts["expiration"]), LogStarts: int64(counts["log_start"]),
		},
		Sha256: hex.EncodeToString(sum[:]),
	}}})
	require.NoError(t, err)
	return []byte(text + string(trailer) + "\n")
}

// unsealed is the lines of a dump but the trailer.
func unsealed(text []byte) []string {
	lines := strings.SplitAfter(string(text), "\n")
	return lines[:len(lines)-2]
}

// partitions notes the partitions that are written to.
type partitions struct {
	mu    sync.Mutex
	names map[string]bool
}

func (p *partitions) note(ctx context.Context, op kvtest.Op, call func(context.Context) error) error {
	p.mu.Lock()
	if p.names == nil {
		p.names = map[string]bool{}
	}
	p.names[op.Partition] = true
	p.mu.Unlock()
	return call(ctx)
}

// held lists those that hold something, but for the store's own records.
func (p *partitions) held(t *testing.T, engine kv.Store) (held []string) {
	t.Helper()
	for name := range p.names {
		if name == "" || name == kv.SchemaPartition {
			continue
		}
		it, err := engine.Scan(t.Context(), []byte(name), kv.ScanOptions{})
		require.NoError(t, err)
		if it.Next() {
			held = append(held, name)
		}
		require.NoError(t, it.Close())
	}
	return held
}

// later is a clock that a test moves, for all stores that it is given to.
type later struct {
	mu     sync.Mutex
	passed time.Duration
}

func (l *later) edit(c *graveler.Config) {
	c.Now = func() time.Time {
		l.mu.Lock()
		defer l.mu.Unlock()
		return time.Now().Add(l.passed)
	}
}

func (l *later) pass(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passed += d
}
