// SPDX-License-Identifier: Apache-2.0

package cursor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor/cursorpb"
)

// read reads the record of a key in every way that there is, and returns it; all ways say the same.
func read(t testing.TB, store kv.Store, key string) (any, error) {
	ctx, s := context.Background(), cursor.New(store)
	var one any
	var errs []error
	get := func(r any, found bool, err error) {
		require.Equal(t, err == nil, found)
		one, errs = r, append(errs, err)
	}
	switch kind, _, _ := strings.Cut(key, "/"); kind {
	case "cursors":
		c, found, err := s.Cursor(ctx, 3)
		get(c, found, err)
		_, scanned := all(s.Cursors(ctx))
		errs = append(errs, scanned...)
	case "positions":
		p, found, err := s.Position(ctx, 3, repoUID, branchUID)
		get(p, found, err)
		_, scanned := all(s.Positions(ctx, 3))
		errs = append(errs, scanned...)
	case "walks":
		w, found, err := s.Walk(ctx, repoUID, branchUID, 0)
		get(w, found, err)
		_, scanned := all(s.Walks(ctx))
		errs = append(errs, scanned...)
	case "deferred":
		due, errs1 := all(s.Due(ctx, 3, 1<<63-1))
		listed, errs2 := all(s.AllDeferred(ctx))
		require.Equal(t, due, listed)
		if len(due) == 1 {
			one = due[0]
		}
		errs = append(errs1, errs2...)
	}
	if len(errs) == 0 || errs[0] == nil {
		require.LessOrEqual(t, len(errs), 1)
		return one, nil
	}
	require.Len(t, errs, 2)
	for _, err := range errs {
		require.ErrorIs(t, err, cursor.ErrMalformed)
		require.ErrorIs(t, err, graveler.ErrCorrupt)
		require.ErrorContains(t, err, key)
	}
	return nil, errs[0]
}

func TestMalformedRecordsAreErrorsThatNameThem(t *testing.T) {
	h1, h2 := string(tree(1)), string(tree(2))
	object := func(fields ...string) []byte { return []byte("{" + strings.Join(fields, ",") + "}") }
	v, sh, ts := `"version":1`, `"shard_id":3`, `"ts_ns":5`
	rs, pr, lw := `"rule_set_hash":"`+h1+`"`, `"promoted_hash":"`+h2+`"`, `"last_walked_ns":4`
	type position = cursorpb.PositionData
	type lane = cursorpb.LaneData
	spoilt := func(spoil func(p *position)) []byte {
		store := open(t, "mem:")
		everything(t, store)
		m, ok := cursor.Decode(cursor.Partition, []byte(positionKey), []byte(raw(t, store)[positionKey]))
		require.True(t, ok)
		p := m.(*position)
		p.Checksum = 0
		spoil(p)
		return sealed(t, p)
	}
	good := spoilt(func(*position) {})
	unknown := func(m proto.Message) {
		m.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	}
	deferred := func() *cursorpb.DeferredData {
		d := aDeferred()
		return &cursorpb.DeferredData{Version: 1, Shard: 3, Due: d.Due, RepositoryUid: repoUID, BranchUid: branchUID, Key: d.Key, LogicalKey: []byte(d.LogicalKey), Kind: d.Kind, Identity: d.Identity}
	}
	with := func(spoil func(d *cursorpb.DeferredData)) []byte { d := deferred(); spoil(d); return sealed(t, d) }
	h := digest(1)
	walk := func(spoil func(w *cursorpb.WalkData)) []byte {
		w := &cursorpb.WalkData{Version: 1, RepositoryUid: repoUID, BranchUid: branchUID, RuleSetHash: h[:], PromotedHash: h[:]}
		spoil(w)
		return sealed(t, w)
	}
	for name, c := range map[string]struct {
		key   string
		value []byte
		says  string // "": it is in order
	}{
		"cursor, in order":                 {cursorKey, object(v, sh, ts, rs, pr, lw), ""},
		"cursor, in another order, spaced": {cursorKey, object(lw, pr, " "+rs, "\n"+ts, sh, v), ""},
		"cursor, never walked":             {cursorKey, object(v, sh, ts, rs, pr), ""},
		"cursor, empty":                    {cursorKey, []byte{}, "no JSON object"},
		"cursor, null":                     {cursorKey, []byte("null"), "no JSON object"},
		"cursor, a list":                   {cursorKey, []byte("[]"), "no JSON object"},
		"cursor, a number":                 {cursorKey, []byte("7"), "no JSON object"},
		"cursor, no text":                  {cursorKey, []byte("\xff\x00"), "no JSON object"},
		"cursor, without fields":           {cursorKey, []byte("{}"), "no field"},
		"cursor, no version":               {cursorKey, object(sh, ts, rs, pr), `no field "version"`},
		"cursor, no shard":                 {cursorKey, object(v, ts, rs, pr), `no field "shard_id"`},
		"cursor, no time":                  {cursorKey, object(v, sh, rs, pr), `no field "ts_ns"`},
		"cursor, no rule set hash":         {cursorKey, object(v, sh, ts, pr), `no field "rule_set_hash"`},
		"cursor, no promoted hash":         {cursorKey, object(v, sh, ts, rs), `no field "promoted_hash"`},
		"cursor, unknown field":            {cursorKey, object(v, sh, ts, rs, pr, `"x":1`), `unknown field "x"`},
		"cursor, field in capitals":        {cursorKey, object(v, sh, `"TS_NS":5`, rs, pr), `unknown field "TS_NS"`},
		"cursor, field twice":              {cursorKey, object(v, sh, ts, ts, rs, pr), `field "ts_ns" twice`},
		"cursor, time null":                {cursorKey, object(v, sh, `"ts_ns":null`, rs, pr), "null"},
		"cursor, time text":                {cursorKey, object(v, sh, `"ts_ns":"5"`, rs, pr), `"ts_ns"`},
		"cursor, time fraction":            {cursorKey, object(v, sh, `"ts_ns":5.5`, rs, pr), `"ts_ns"`},
		"cursor, time too large":           {cursorKey, object(v, sh, `"ts_ns":9223372036854775808`, rs, pr), `"ts_ns"`},
		"cursor, negative time":            {cursorKey, object(v, sh, `"ts_ns":-5`, rs, pr), "negative"},
		"cursor, negative walk":            {cursorKey, object(v, sh, ts, rs, pr, `"last_walked_ns":-1`), "negative"},
		"cursor, other version":            {cursorKey, object(`"version":2`, sh, ts, rs, pr), "version 2, expected 1"},
		"cursor, version 0":                {cursorKey, object(`"version":0`, sh, ts, rs, pr), "version 0, expected 1"},
		"cursor, other shard":              {cursorKey, object(v, `"shard_id":4`, ts, rs, pr), "shard 4"},
		"cursor, impossible shard":         {cursorKey, object(v, `"shard_id":16`, ts, rs, pr), "not in [0,16)"},
		"cursor, negative shard":           {cursorKey, object(v, `"shard_id":-3`, ts, rs, pr), "not in [0,16)"},
		"cursor, hash too short":           {cursorKey, object(v, sh, ts, `"rule_set_hash":"`+h1[2:]+`"`, pr), "31 bytes"},
		"cursor, hash too long":            {cursorKey, object(v, sh, ts, rs, `"promoted_hash":"`+h1+`00"`), "33 bytes"},
		"cursor, hash empty":               {cursorKey, object(v, sh, ts, `"rule_set_hash":""`, pr), "0 bytes"},
		"cursor, hash of odd length":       {cursorKey, object(v, sh, ts, `"rule_set_hash":"`+h1[1:]+`"`, pr), "not hexadecimal"},
		"cursor, hash of no digits":        {cursorKey, object(v, sh, ts, `"rule_set_hash":"`+strings.Repeat("x", 64)+`"`, pr), "not hexadecimal"},
		"cursor, trailing object":          {cursorKey, append(object(v, sh, ts, rs, pr), "{}"...), "something after"},
		"cursor, trailing zero byte":       {cursorKey, append(object(v, sh, ts, rs, pr), 0), "something after"},
		"cursor, trailing brace":           {cursorKey, append(object(v, sh, ts, rs, pr), '}'), "something after"},

		"position, in order":                 {positionKey, good, ""},
		"position, empty":                    {positionKey, []byte{}, "checksum"},
		"position, only a checksum":          {positionKey, seal(nil), "version 0"},
		"position, without checksum":         {positionKey, good[:len(good)-9], "checksum"},
		"position, checksum twice":           {positionKey, append(bytes.Clone(good), good[len(good)-9:]...), "checksum"},
		"position, checksum within":          {positionKey, seal(good), "does not know"},
		"position, trailing data":            {positionKey, append(bytes.Clone(good), 0), "checksum"},
		"position, no message":               {positionKey, seal([]byte("\xff")), "no PositionData"},
		"position, other version":            {positionKey, spoilt(func(p *position) { p.Version = 2 }), "version 2, expected 1"},
		"position, other shard":              {positionKey, spoilt(func(p *position) { p.Shard = 4 }), "positions/04/"},
		"position, impossible shard":         {positionKey, spoilt(func(p *position) { p.Shard = 1<<32 - 13 }), "not in [0,16)"},
		"position, other repository":         {positionKey, spoilt(func(p *position) { p.RepositoryUid = "other" }), "other"},
		"position, other branch":             {positionKey, spoilt(func(p *position) { p.BranchUid = "other" }), "other"},
		"position, no source":                {positionKey, spoilt(func(p *position) { p.RepositoryUid, p.BranchUid = "", "" }), "UID is missing"},
		"position, source with slashes":      {positionKey, spoilt(func(p *position) { p.RepositoryUid = repoUID + "/" + branchUID; p.BranchUid = "" }), "UID"},
		"position, no lanes":                 {positionKey, spoilt(func(p *position) { p.Lanes = nil }), "no lanes"},
		"position, lanes out of order":       {positionKey, spoilt(func(p *position) { p.Lanes[0], p.Lanes[1] = p.Lanes[1], p.Lanes[0] }), "follows"},
		"position, lane twice":               {positionKey, spoilt(func(p *position) { p.Lanes[1] = proto.CloneOf(p.Lanes[0]) }), "follows"},
		"position, endless delay":            {positionKey, spoilt(func(p *position) { p.Lanes[2].Delay = 1 << 31 }), "delay"},
		"position, an empty lane":            {positionKey, spoilt(func(p *position) { p.Lanes[0] = &lane{} }), "hash of rules"},
		"position, rules hash too short":     {positionKey, spoilt(func(p *position) { p.Lanes[0].RulesHash = h[1:] }), "31 bytes"},
		"position, rules hash too long":      {positionKey, spoilt(func(p *position) { p.Lanes[0].RulesHash = append(h[:], 0) }), "33 bytes"},
		"position, tree too short":           {positionKey, spoilt(func(p *position) { p.Lanes[2].Horizon.Tree = h[1:] }), "horizon tree has 31 bytes"},
		"position, commit too long":          {positionKey, spoilt(func(p *position) { p.Lanes[2].Head.Commit = append(h[:], 0) }), "head commit has 33 bytes"},
		"position, commit without tree":      {positionKey, spoilt(func(p *position) { p.Lanes[2].Head.Tree = nil }), "no tree"},
		"position, negative head":            {positionKey, spoilt(func(p *position) { p.Lanes[2].Horizon.Time, p.Lanes[2].Head.Time = -2, -1 }), "negative"},
		"position, horizon beyond head":      {positionKey, spoilt(func(p *position) { p.Lanes[0].Horizon = &cursorpb.PointData{Time: 18} }), "later than head"},
		"position, negative waiting":         {positionKey, spoilt(func(p *position) { p.Lanes[0].WaitingUntil = -1 }), "negative"},
		"position, negative judged":          {positionKey, spoilt(func(p *position) { p.Lanes[0].Judged = -1 }), "negative"},
		"position, step's negative judged":   {positionKey, spoilt(func(p *position) { p.Lanes[2].Step.Judged = -1 }), "negative"},
		"position, step back":                {positionKey, spoilt(func(p *position) { p.Lanes[2].Step.Horizon.Time = 6 }), "before 7"},
		"position, step to an earlier head":  {positionKey, spoilt(func(p *position) { p.Lanes[2].Step.Head.Time = 10 }), "before 11"},
		"position, step without rules hash":  {positionKey, spoilt(func(p *position) { p.Lanes[2].Step.RulesHash = nil }), "0 bytes"},
		"position, key done before start":    {positionKey, spoilt(func(p *position) { p.Lanes[2].Step.Started = false }), "not started"},
		"position, blocked before 1970":      {positionKey, spoilt(func(p *position) { p.Lanes[2].Blocked.Since = -1 }), "negative"},
		"position, unknown field":            {positionKey, spoilt(func(p *position) { unknown(p) }), "does not know"},
		"position, unknown field in a lane":  {positionKey, spoilt(func(p *position) { unknown(p.Lanes[1]) }), "does not know"},
		"position, unknown field in a step":  {positionKey, spoilt(func(p *position) { unknown(p.Lanes[1].Step) }), "does not know"},
		"position, unknown field in a point": {positionKey, spoilt(func(p *position) { unknown(p.Lanes[2].Step.Head) }), "does not know"},
		"position, unknown field in a block": {positionKey, spoilt(func(p *position) { unknown(p.Lanes[2].Blocked) }), "does not know"},
		"deferred, in order":                 {deferredKey, with(func(*cursorpb.DeferredData) {}), ""},
		"deferred, empty":                    {deferredKey, []byte{}, "checksum"},
		"deferred, no message":               {deferredKey, seal([]byte("\xff")), "no DeferredData"},
		"deferred, other version":            {deferredKey, with(func(d *cursorpb.DeferredData) { d.Version = 0 }), "version 0, expected 1"},
		"deferred, other shard":              {deferredKey, with(func(d *cursorpb.DeferredData) { d.Shard = 4 }), "deferred/04"},
		"deferred, other time":               {deferredKey, with(func(d *cursorpb.DeferredData) { d.Due++ }), "0000000000000458"},
		"deferred, negative time":            {deferredKey, with(func(d *cursorpb.DeferredData) { d.Due = -1 }), "negative"},
		"deferred, blocked before 1970":      {deferredKey, with(func(d *cursorpb.DeferredData) { d.Blocked = &cursorpb.BlockData{Since: -1} }), "negative"},
		"deferred, other repository":         {deferredKey, with(func(d *cursorpb.DeferredData) { d.RepositoryUid = "other" }), "holds the record"},
		"deferred, other branch":             {deferredKey, with(func(d *cursorpb.DeferredData) { d.BranchUid = "other" }), "holds the record"},
		"deferred, other key":                {deferredKey, with(func(d *cursorpb.DeferredData) { d.Key = []byte("b") }), "holds the record"},
		"deferred, other kind":               {deferredKey, with(func(d *cursorpb.DeferredData) { d.Kind = "AbortMPU" }), "holds the record"},
		"deferred, other identity":           {deferredKey, with(func(d *cursorpb.DeferredData) { d.Identity = []byte("b") }), "holds the record"},
		"deferred, no logical key":           {deferredKey, with(func(d *cursorpb.DeferredData) { d.LogicalKey = nil }), "logical key"},
		"deferred, no identity":              {deferredKey, with(func(d *cursorpb.DeferredData) { d.Identity = nil }), "identity"},
		"deferred, unknown field":            {deferredKey, with(func(d *cursorpb.DeferredData) { unknown(d) }), "does not know"},
		"deferred, key of nothing":           {"deferred/03/0x", with(func(*cursorpb.DeferredData) {}), "holds the record"},
		"walk, in order":                     {walkKey, walk(func(*cursorpb.WalkData) {}), ""},
		"walk, empty":                        {walkKey, []byte{}, "checksum"},
		"walk, no message":                   {walkKey, seal([]byte("\xff")), "no WalkData"},
		"walk, other version":                {walkKey, walk(func(w *cursorpb.WalkData) { w.Version = 3 }), "version 3, expected 1"},
		"walk, other repository":             {walkKey, walk(func(w *cursorpb.WalkData) { w.RepositoryUid = "other" }), "other"},
		"walk, other branch":                 {walkKey, walk(func(w *cursorpb.WalkData) { w.BranchUid = "other" }), "other"},
		"walk, negative time":                {walkKey, walk(func(w *cursorpb.WalkData) { w.Began = -1 }), "negative"},
		"walk, no hash":                      {walkKey, walk(func(w *cursorpb.WalkData) { w.RuleSetHash = nil }), "0 bytes"},
		"walk, hash too long":                {walkKey, walk(func(w *cursorpb.WalkData) { w.PromotedHash = append(h[:], 0) }), "33 bytes"},
		"walk, tree too short":               {walkKey, walk(func(w *cursorpb.WalkData) { w.Head = &cursorpb.PointData{Tree: []byte("x")} }), "1 bytes"},
		"walk, negative time of the last":    {walkKey, walk(func(w *cursorpb.WalkData) { w.Last = -1 }), "negative"},
		"walk, negative time of a block":     {walkKey, walk(func(w *cursorpb.WalkData) { w.Blocked = &cursorpb.BlockData{Since: -1} }), "negative"},
		"walk, over other shards":            {walkKey, walk(func(w *cursorpb.WalkData) { w.Shards = 1 }), "/0001"},
		"walk, too many shards":              {walkKey, walk(func(w *cursorpb.WalkData) { w.Shards = 1 << 16 }), "10000"},
		"walk, unknown field":                {walkKey, walk(func(w *cursorpb.WalkData) { unknown(w) }), "does not know"},
		"walk, unknown field in the head":    {walkKey, walk(func(w *cursorpb.WalkData) { w.Head = &cursorpb.PointData{}; unknown(w.Head) }), "does not know"},
	} {
		t.Run(name, func(t *testing.T) {
			store := open(t, "mem:")
			put(t, store, c.key, c.value)
			_, err := read(t, store, c.key)
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.says)
		})
	}
}

// stored are the records of everything, as they lie in the store.
func stored(t testing.TB) map[string][]byte {
	store := open(t, "mem:")
	everything(t, store)
	records := map[string][]byte{}
	for key, value := range raw(t, store) {
		records[key] = []byte(value)
	}
	require.Len(t, records, 4)
	return records
}

func TestARecordThatIsCutAnywhereIsMalformed(t *testing.T) {
	engines(t, func(t *testing.T, store kv.Store) {
		for key, value := range stored(t) {
			for n := range len(value) {
				put(t, store, key, value[:n])
				_, err := read(t, store, key)
				require.Error(t, err, "%s cut to %d of %d bytes", key, n, len(value))
			}
			require.NoError(t, store.Delete(t.Context(), []byte(cursor.Partition), []byte(key)))
		}
	})
}

// One byte is made another, at every place. A cursor has no checksum: what is read of it then is what it says.
func TestARecordThatIsAlteredAnywhereIsMalformed(t *testing.T) {
	store := open(t, "mem:")
	for key, value := range stored(t) {
		put(t, store, key, value)
		before, err := read(t, store, key)
		require.NoError(t, err)
		for i := range value {
			for _, flip := range []byte{1, 2, 4, 8, 16, 32, 64, 128, 0x0f, 0x55, 0xff, value[i]} {
				altered := bytes.Clone(value)
				altered[i] ^= flip
				if flip == 0 {
					continue
				}
				put(t, store, key, altered)
				after, err := read(t, store, key)
				if err != nil {
					continue
				}
				require.Equal(t, cursorKey, key, "byte %d of %s may be %#x", i, key, altered[i])
				require.True(t, before == after || says(t, altered, after.(cursor.Cursor)), "%s", altered)
			}
		}
		require.NoError(t, store.Delete(t.Context(), []byte(cursor.Partition), []byte(key)))
	}
}

// says reports whether a stored cursor is c, written another way.
func says(t *testing.T, value []byte, c cursor.Cursor) bool {
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, value))
	store := open(t, "mem:")
	require.NoError(t, cursor.New(store).SaveCursors(t.Context(), c))
	return strings.EqualFold(raw(t, store)[cursorKey], compact.String())
}

func TestARecordUnderTheKeyOfAnotherIsMalformed(t *testing.T) {
	store := open(t, "mem:")
	for key, value := range stored(t) {
		for other := range stored(t) {
			put(t, store, other, value)
			_, err := read(t, store, other)
			require.Equal(t, key != other, err != nil, "%s under %s", key, other)
			require.NoError(t, store.Delete(t.Context(), []byte(cursor.Partition), []byte(other)))
		}
	}
}

func TestAScanGoesOnBehindAMalformedRecord(t *testing.T) {
	store := open(t, "mem:")
	ctx, s := t.Context(), cursor.New(store)
	for shard := range 5 {
		c := aCursor()
		c.Shard = shard
		require.NoError(t, s.SaveCursors(ctx, c))
		d := aDeferred()
		d.Due = int64(shard)
		require.NoError(t, s.Defer(ctx, d))
	}
	put(t, store, "cursors/shard-02", []byte("{}"))
	put(t, store, "cursors/shard-7", []byte("{}"))
	put(t, store, fmt.Sprintf("deferred/03/%016x/x", 2), []byte("x"))
	cursors, errs := all(s.Cursors(ctx))
	require.Len(t, cursors, 4)
	require.Len(t, errs, 2)
	due, errs := all(s.Due(ctx, 3, 3))
	require.Len(t, due, 4)
	require.Len(t, errs, 1)
	require.ErrorIs(t, errs[0], cursor.ErrMalformed)
	n := 0
	for range s.Due(ctx, 3, 3) {
		n++
		break
	}
	require.Equal(t, 1, n)
}

// What decodes is saved as a record that decodes as the same.
func FuzzDecode(f *testing.F) {
	records := stored(f)
	for _, value := range records {
		f.Add(value)
		f.Add(value[:len(value)-9])
	}
	f.Add([]byte(`{"version":1,"shard_id":3,"ts_ns":0,"rule_set_hash":"","promoted_hash":"","last_walked_ns":0}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		store := mem.New()
		defer func() { require.NoError(t, store.Close()) }()
		for key := range records {
			for _, value := range [][]byte{data, seal(data)} {
				put(t, store, key, value)
				first, err := read(t, store, key)
				if err != nil {
					continue
				}
				s := cursor.New(store)
				switch r := first.(type) {
				case cursor.Cursor:
					err = s.SaveCursors(t.Context(), r)
				case cursor.Position:
					require.True(t, r.Equal(r))
					err = s.SavePositions(t.Context(), r)
				case cursor.Deferred:
					err = s.Defer(t.Context(), r)
				case cursor.Walk:
					err = s.SaveWalk(t.Context(), r)
				}
				require.NoError(t, err)
				again, err := read(t, store, key)
				require.NoError(t, err)
				require.Equal(t, first, again)
			}
		}
	})
}
