// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/staging/stagingpb"
	"github.com/moraine-store/moraine/pkg/kv"
)

func TestRecordsAreTheMessageThatTheyClaimToBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SliceOfN(rapid.Byte(), 1, 300).Draw(t, "key")
		m := &stagingpb.StagedEntryData{Key: key}
		var v *graveler.Value
		if rapid.Bool().Draw(t, "value") {
			m.Identity = rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "identity")
			m.Data = rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")
			v = &graveler.Value{Identity: m.Identity, Data: m.Data}
		}
		want, err := kv.MarshalMessage(m)
		require.NoError(t, err)
		record := encode(key, v)
		require.Equal(t, want, record)
		require.Len(t, record, encodedSize(key, v))

		e, err := decode("t", key, record)
		require.NoError(t, err)
		require.Equal(t, string(m.Identity), string(e.value.Identity))
		require.Equal(t, string(m.Data), string(e.value.Data))
	})
	require.Equal(t, dataField, (&stagingpb.StagedEntryData{}).ProtoReflect().Descriptor().Fields().Len(), "a field that is not written by hand")
}

// Reading by hand agrees with protobuf about every value: what it says, and whether it says anything.
func FuzzDecode(f *testing.F) {
	f.Add([]byte("a"), encode(graveler.Key("a"), nil))
	f.Add([]byte("a"), encode(graveler.Key("a"), &graveler.Value{Identity: []byte("i"), Data: []byte("d")}))
	f.Add([]byte("a"), []byte("\x0a\x01a\xc2\x3e\x03new\x08\x01\x13\x14")) // fields and wire types of others
	f.Fuzz(func(t *testing.T, key, record []byte) {
		e, err := decode("t", key, record)
		m := &stagingpb.StagedEntryData{}
		if problem := proto.Unmarshal(record, m); problem != nil {
			require.ErrorIs(t, err, graveler.ErrCorrupt)
			return
		}
		if string(m.Key) != string(key) || len(m.Identity) == 0 && len(m.Data) > 0 {
			require.ErrorIs(t, err, graveler.ErrCorrupt)
			return
		}
		require.NoError(t, err)
		require.Equal(t, string(m.Identity), string(e.value.Identity))
		require.Equal(t, string(m.Data), string(e.value.Data))
	})
}

func BenchmarkEncode(b *testing.B) {
	key, v := graveler.Key("data/2024/01/part-00000.parquet"), &graveler.Value{Identity: make([]byte, 32), Data: make([]byte, 250)}
	b.Run("by hand", func(b *testing.B) {
		for b.Loop() {
			encode(key, v)
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		for b.Loop() {
			if _, err := kv.MarshalMessage(&stagingpb.StagedEntryData{Key: key, Identity: v.Identity, Data: v.Data}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	key := graveler.Key("data/2024/01/part-00000.parquet")
	record := encode(key, &graveler.Value{Identity: make([]byte, 32), Data: make([]byte, 250)})
	b.Run("by hand", func(b *testing.B) {
		for b.Loop() {
			if _, err := decode("t", key, record); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("protobuf", func(b *testing.B) {
		for b.Loop() {
			if err := proto.Unmarshal(record, &stagingpb.StagedEntryData{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
