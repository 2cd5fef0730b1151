// SPDX-License-Identifier: Apache-2.0

package cursor_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

const (
	repoUID   = "c8v1k2q3r4s5t6u7v8w9"
	branchUID = "d8v1k2q3r4s5t6u7v8w9"
)

var (
	cursorKey   = "cursors/shard-03"
	positionKey = "positions/03/" + repoUID + "/" + branchUID
	deferredKey = "deferred/03/0000000000000457/252f6e14041641813430fb501f28452ef23fb4ba85e9b44edfccc1ec34e1f8e3"
	walkKey     = "walks/" + repoUID + "/" + branchUID
)

// engines are stores to run a test on.
func engines(t *testing.T, test func(t *testing.T, store kv.Store)) {
	for name, url := range map[string]string{"mem": "mem:", "bolt": "bolt:" + filepath.Join(t.TempDir(), "meta.db")} {
		t.Run(name, func(t *testing.T) { test(t, open(t, url)) })
	}
}

func open(t testing.TB, url string) kv.Store {
	store, err := kv.Open(t.Context(), url, kv.Engines{"mem": mem.Open, "bolt": bolt.Open}, kv.OpenOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return store
}

func digest(b byte) (h [32]byte) {
	for i := range h {
		h[i] = b + byte(i)
	}
	return h
}

func tree(b byte) graveler.MetaRangeID { return graveler.MetaRangeID(fmt.Sprintf("%x", digest(b))) }
func commit(b byte) graveler.CommitID  { return graveler.CommitID(fmt.Sprintf("%x", digest(b))) }

func point(t int64, b byte) cursor.Point {
	return cursor.Point{Time: t, Tree: tree(b), Commit: commit(b + 1)}
}

func aCursor() cursor.Cursor {
	return cursor.Cursor{Shard: 3, Time: 1700000000123456789, RuleSetHash: digest(1), PromotedHash: digest(2), LastWalked: 1699999999000000000}
}

func aPosition() cursor.Position {
	return cursor.Position{Shard: 3, RepositoryUID: repoUID, BranchUID: branchUID, Lanes: []cursor.Lane{
		{Delay: 0, Head: point(17, 8), RulesHash: digest(4), WaitingUntil: 99},
		{Delay: 1, RulesHash: digest(5), Step: &cursor.Step{Horizon: cursor.Point{Time: 5, Tree: tree(7)}, Head: point(17, 8), RulesHash: digest(5)}},
		{
			Delay: 30, Horizon: point(7, 1), Head: point(11, 3), RulesHash: digest(5),
			Step:    &cursor.Step{Horizon: point(9, 5), Head: point(17, 8), RulesHash: digest(6), KeyDone: graveler.Key("a/\x00\xff"), Started: true},
			Blocked: &cursor.Block{Key: graveler.Key("a/b"), Since: 18, Reason: "dispatcher: no route to host"},
		},
	}}
}

func aDeferred() cursor.Deferred {
	return cursor.Deferred{
		Shard: 3, Due: 0x457, RepositoryUID: repoUID, BranchUID: branchUID, Key: graveler.Key("\x00va\xff"), LogicalKey: "a\xff", Kind: "NoncurrentDays", Identity: []byte{0, 1, 2}, Blocked: &cursor.Block{Key: graveler.Key("\x00va\xff"), Since: 0x458, Reason: "no"},
	}
}

func aWalk() cursor.Walk {
	return cursor.Walk{RepositoryUID: repoUID, BranchUID: branchUID, Began: 12, Head: point(11, 3), After: "k\xfe", RuleSetHash: digest(1), PromotedHash: digest(2), Last: 10, Blocked: &cursor.Block{Key: graveler.Key("k"), Since: 9, Reason: "no"}}
}

// everything saves one record of each kind.
func everything(t testing.TB, store kv.Store) *cursor.Store {
	s := cursor.New(store)
	require.NoError(t, s.SaveCursors(t.Context(), aCursor()))
	require.NoError(t, s.SavePositions(t.Context(), aPosition()))
	require.NoError(t, s.Defer(t.Context(), aDeferred()))
	require.NoError(t, s.SaveWalk(t.Context(), aWalk()))
	return s
}

// raw is what lies in the partition, by key.
func raw(t testing.TB, store kv.Store) map[string]string {
	it, err := store.Scan(t.Context(), []byte(cursor.Partition), kv.ScanOptions{})
	require.NoError(t, err)
	all := map[string]string{}
	for it.Next() {
		all[string(it.Key())] = string(it.Value())
	}
	require.NoError(t, it.Close())
	return all
}

func put(t testing.TB, store kv.Store, key string, value []byte) {
	require.NoError(t, store.Set(t.Context(), []byte(cursor.Partition), []byte(key), value))
}

// sealed is a message with the checksum behind it.
func sealed(t testing.TB, m proto.Message) []byte {
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	require.NoError(t, err)
	return seal(body)
}

func seal(body []byte) []byte {
	return binary.LittleEndian.AppendUint64(append(bytes.Clone(body), 15<<3|1), xxhash.Sum64(body))
}

// all collects a sequence, records and errors.
func all[T any](seq iter.Seq2[T, error]) (records []T, errs []error) {
	for r, err := range seq {
		if err != nil {
			errs = append(errs, err)
		} else {
			records = append(records, r)
		}
	}
	return records, errs
}

func none[T any](t *testing.T, seq iter.Seq2[T, error]) {
	t.Helper()
	records, errs := all(seq)
	require.Empty(t, records)
	require.Empty(t, errs)
}

func TestWhatIsSavedIsReadBack(t *testing.T) {
	engines(t, func(t *testing.T, store kv.Store) {
		ctx, s := t.Context(), everything(t, store)

		c, found, err := s.Cursor(ctx, 3)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, aCursor(), c)
		cursors, errs := all(s.Cursors(ctx))
		require.Empty(t, errs)
		require.Equal(t, []cursor.Cursor{aCursor()}, cursors)

		p, found, err := s.Position(ctx, 3, repoUID, branchUID)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, aPosition(), p)
		positions, errs := all(s.Positions(ctx, 3))
		require.Empty(t, errs)
		require.Equal(t, []cursor.Position{aPosition()}, positions)
		none(t, s.Positions(ctx, 2))

		w, found, err := s.Walk(ctx, repoUID, branchUID, 0)
		require.NoError(t, err)
		require.True(t, found)
		require.Equal(t, aWalk(), w)
		walks, errs := all(s.Walks(ctx))
		require.Empty(t, errs)
		require.Equal(t, []cursor.Walk{aWalk()}, walks)

		for _, seq := range []iter.Seq2[cursor.Deferred, error]{s.AllDeferred(ctx), s.Due(ctx, 3, 0x457)} {
			deferred, errs := all(seq)
			require.Empty(t, errs)
			require.Equal(t, []cursor.Deferred{aDeferred()}, deferred)
		}

		require.NoError(t, s.RemoveDeferred(ctx, aDeferred()))
		require.NoError(t, s.RemoveDeferred(ctx, aDeferred()), "again")
		none(t, s.AllDeferred(ctx))

		_, found, err = s.Walk(ctx, repoUID, branchUID, 0x8001)
		require.NoError(t, err)
		require.False(t, found, "walks over other shards")
		some := aWalk()
		some.Shards, some.After = 0x8001, "elsewhere"
		require.NoError(t, s.SaveWalk(ctx, some))
		for _, want := range []cursor.Walk{some, aWalk()} {
			w, found, err := s.Walk(ctx, repoUID, branchUID, want.Shards)
			require.NoError(t, err)
			require.True(t, found)
			require.Equal(t, want, w)
		}
	})
}

func TestRecordsAreStoredAsDocumented(t *testing.T) {
	store := open(t, "mem:")
	everything(t, store)
	stored := raw(t, store)
	require.Len(t, stored, 4)
	require.Equal(t, `{"version":1,"shard_id":3,"ts_ns":1700000000123456789,"rule_set_hash":"`+string(tree(1))+`","promoted_hash":"`+string(tree(2))+`","last_walked_ns":1699999999000000000}`, stored[cursorKey])
	for _, key := range []string{positionKey, deferredKey, walkKey} {
		value := []byte(stored[key])
		require.NotEmpty(t, value, key)
		body := value[:len(value)-9]
		require.Equal(t, seal(body), value)
		m, ok := cursor.Decode(cursor.Partition, []byte(key), value)
		require.True(t, ok)
		checksum := m.ProtoReflect().Descriptor().Fields().ByName("checksum")
		require.Equal(t, xxhash.Sum64(body), m.ProtoReflect().Get(checksum).Uint(), "the checksum is a field of the message")
	}

	idle := aCursor()
	idle.LastWalked = 0
	require.NoError(t, cursor.New(store).SaveCursors(t.Context(), idle))
	require.NotContains(t, raw(t, store)[cursorKey], "last_walked_ns")
	c, _, err := cursor.New(store).Cursor(t.Context(), 3)
	require.NoError(t, err)
	require.Equal(t, idle, c)
}

func TestWhatIsMissingIsAColdStart(t *testing.T) {
	engines(t, func(t *testing.T, store kv.Store) {
		ctx, s := t.Context(), cursor.New(store)
		for shard := range lifecycle.Shards {
			c, found, err := s.Cursor(ctx, shard)
			require.NoError(t, err)
			require.False(t, found)
			require.Zero(t, c)
			p, found, err := s.Position(ctx, shard, repoUID, branchUID)
			require.NoError(t, err)
			require.False(t, found)
			require.Zero(t, p)
			none(t, s.Positions(ctx, shard))
			none(t, s.Due(ctx, shard, 1<<63-1))
		}
		w, found, err := s.Walk(ctx, repoUID, branchUID, 0)
		require.NoError(t, err)
		require.False(t, found)
		require.Zero(t, w)
		none(t, s.Cursors(ctx))
		none(t, s.Walks(ctx))
		none(t, s.AllDeferred(ctx))
	})
}

func TestAReadOnlyStoreRefusesEveryWrite(t *testing.T) {
	writable := open(t, "mem:")
	everything(t, writable)
	before := raw(t, writable)
	ctx, s := t.Context(), cursor.New(kv.ReadOnly(writable))
	_, pruneErr := s.Prune(ctx, allShards, func(string, string) bool { return false })
	for what, err := range map[string]error{
		"cursor": s.SaveCursors(ctx, aCursor()), "position": s.SavePositions(ctx, aPosition()), "deferred": s.Defer(ctx, aDeferred()), "done": s.RemoveDeferred(ctx, aDeferred()),
		"walk": s.SaveWalk(ctx, aWalk()), "prune": pruneErr,
	} {
		require.ErrorIs(t, err, kv.ErrReadOnly, what)
	}
	require.Equal(t, before, raw(t, writable))
	_, found, err := s.Cursor(ctx, 3)
	require.NoError(t, err)
	require.True(t, found)
}

func TestErrorsOfTheStoreAreNoColdStart(t *testing.T) {
	store, err := mem.Open(t.Context(), "mem:", kv.OpenOptions{})
	require.NoError(t, err)
	ctx, s := t.Context(), everything(t, store)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	_, _, err = s.Cursor(cancelled, 3)
	require.ErrorIs(t, err, context.Canceled)

	require.NoError(t, store.Close())
	_, _, cursorErr := s.Cursor(ctx, 3)
	_, _, positionErr := s.Position(ctx, 3, repoUID, branchUID)
	_, _, walkErr := s.Walk(ctx, repoUID, branchUID, 0)
	_, pruneErr := s.Prune(ctx, allShards, func(string, string) bool { return true })
	errs := []error{cursorErr, positionErr, walkErr, pruneErr, s.SaveCursors(ctx, aCursor())}
	for _, err := range errs {
		require.ErrorIs(t, err, kv.ErrClosed)
	}
	_, listed := all(s.Cursors(ctx))
	_, due := all(s.Due(ctx, 3, 1))
	for _, errs := range [][]error{listed, due} {
		require.Len(t, errs, 1)
		require.ErrorIs(t, errs[0], kv.ErrClosed)
	}
}

// Nothing that could not be read back is written, nor what is beside it.
func TestWhatIsInvalidIsNotWritten(t *testing.T) {
	store := open(t, "mem:")
	ctx, s := t.Context(), cursor.New(store)
	positions := map[string]func(p *cursor.Position){
		"shard":                  func(p *cursor.Position) { p.Shard = lifecycle.Shards },
		"negative shard":         func(p *cursor.Position) { p.Shard = -1 },
		"no repository":          func(p *cursor.Position) { p.RepositoryUID = "" },
		"no branch":              func(p *cursor.Position) { p.BranchUID = "" },
		"branch with a slash":    func(p *cursor.Position) { p.BranchUID = "a/b" },
		"branch that is no text": func(p *cursor.Position) { p.BranchUID = "\xff" },
		"endless branch":         func(p *cursor.Position) { p.BranchUID = strings.Repeat("x", 2000) },
		"delays out of order":    func(p *cursor.Position) { p.Lanes[0].Delay = 2 },
		"delay twice":            func(p *cursor.Position) { p.Lanes[2].Delay = 1 },
		"negative delay":         func(p *cursor.Position) { p.Lanes[0].Delay = -1 },
		"endless delay":          func(p *cursor.Position) { p.Lanes[2].Delay = 1 << 31 },
		"negative horizon":       func(p *cursor.Position) { p.Lanes[2].Horizon.Time = -1 },
		"horizon beyond head":    func(p *cursor.Position) { p.Lanes[2].Horizon.Time = 12; p.Lanes[2].Step.Horizon.Time = 12 },
		"negative waiting":       func(p *cursor.Position) { p.Lanes[0].WaitingUntil = -1 },
		"tree of no digits":      func(p *cursor.Position) { p.Lanes[2].Head.Tree = "x" },
		"tree in capitals": func(p *cursor.Position) {
			p.Lanes[2].Head.Tree = graveler.MetaRangeID(strings.ToUpper(string(tree(0xa0))))
		},
		"commit too short":         func(p *cursor.Position) { p.Lanes[2].Horizon.Commit = "abcd" },
		"commit without tree":      func(p *cursor.Position) { p.Lanes[2].Head.Tree = "" },
		"step back":                func(p *cursor.Position) { p.Lanes[2].Step.Horizon.Time = 6 },
		"step to an earlier head":  func(p *cursor.Position) { p.Lanes[2].Step.Head.Time = 10 },
		"step's horizon too late":  func(p *cursor.Position) { p.Lanes[2].Step.Horizon.Time = 18 },
		"step's commit of no tree": func(p *cursor.Position) { p.Lanes[2].Step.Head.Tree = "" },
		"step's tree of no digits": func(p *cursor.Position) { p.Lanes[2].Step.Horizon.Tree = "x" },
		"key done before start":    func(p *cursor.Position) { p.Lanes[2].Step.Started = false },
		"blocked before 1970":      func(p *cursor.Position) { p.Lanes[2].Blocked.Since = -1 },
	}
	for name, spoil := range positions {
		p, good := aPosition(), aPosition()
		good.Shard = 4
		spoil(&p)
		require.ErrorIs(t, s.SavePositions(ctx, good, p), graveler.ErrInvalidValue, name)
		require.False(t, p.Equal(p), name)
	}
	for name, spoil := range map[string]func(d *cursor.Deferred){
		"shard":             func(d *cursor.Deferred) { d.Shard = -1 },
		"negative due":      func(d *cursor.Deferred) { d.Due = -1 },
		"no repository":     func(d *cursor.Deferred) { d.RepositoryUID = "" },
		"no branch":         func(d *cursor.Deferred) { d.BranchUID = "" },
		"no key":            func(d *cursor.Deferred) { d.Key = nil },
		"key too long":      func(d *cursor.Deferred) { d.Key = make(graveler.Key, 1281) },
		"no logical key":    func(d *cursor.Deferred) { d.LogicalKey = "" },
		"no kind":           func(d *cursor.Deferred) { d.Kind = "" },
		"kind of no text":   func(d *cursor.Deferred) { d.Kind = "\xff" },
		"no identity":       func(d *cursor.Deferred) { d.Identity = nil },
		"branch with slash": func(d *cursor.Deferred) { d.BranchUID = "/" },
	} {
		d := aDeferred()
		spoil(&d)
		require.ErrorIs(t, s.Defer(ctx, aDeferred(), d), graveler.ErrInvalidValue, name)
	}
	for name, spoil := range map[string]func(w *cursor.Walk){
		"no repository":       func(w *cursor.Walk) { w.RepositoryUID = "" },
		"no branch":           func(w *cursor.Walk) { w.BranchUID = "" },
		"negative time":       func(w *cursor.Walk) { w.Began = -1 },
		"commit without tree": func(w *cursor.Walk) { w.Head.Tree = "" },
		"commit of no digits": func(w *cursor.Walk) { w.Head.Commit = "x" },
	} {
		w := aWalk()
		spoil(&w)
		require.ErrorIs(t, s.SaveWalk(ctx, w), graveler.ErrInvalidValue, name)
	}
	for _, c := range []cursor.Cursor{{Shard: 16}, {Shard: -1}, {Time: -1}, {LastWalked: -1}} {
		require.ErrorIs(t, s.SaveCursors(ctx, aCursor(), c), graveler.ErrInvalidValue)
	}
	for _, shard := range []int{-1, 16} {
		_, _, err := s.Cursor(ctx, shard)
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
		_, _, err = s.Position(ctx, shard, repoUID, branchUID)
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
		_, errs := all(s.Positions(ctx, shard))
		require.Len(t, errs, 1)
		_, errs = all(s.Due(ctx, shard, 1))
		require.Len(t, errs, 1)
	}
	_, _, err := s.Position(ctx, 1, "a/b", "c")
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	_, _, err = s.Walk(ctx, "", "c", 0)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	require.Empty(t, raw(t, store))
}

func TestToolsSeeMessages(t *testing.T) {
	store := open(t, "mem:")
	everything(t, store)
	stored := raw(t, store)
	for key, name := range map[string]string{positionKey: "PositionData", deferredKey: "DeferredData", walkKey: "WalkData"} {
		m, ok := cursor.Decode(cursor.Partition, []byte(key), []byte(stored[key]))
		require.True(t, ok)
		require.EqualValues(t, name, m.ProtoReflect().Descriptor().Name())
		_, ok = cursor.Decode("graveler", []byte(key), []byte(stored[key]))
		require.False(t, ok)
		_, ok = cursor.Decode(cursor.Partition, []byte(key), []byte("\xff"))
		require.False(t, ok)
	}
	for _, key := range []string{cursorKey, "leases/shard-03", "workers/x", "positions"} {
		_, ok := cursor.Decode(cursor.Partition, []byte(key), []byte("{}"))
		require.False(t, ok, key)
	}
}
