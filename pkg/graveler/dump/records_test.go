// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Every field of a message has a value, and comes back in the record, of which every field has one too: what is added to one must
// be added to the other.
func TestEveryFieldIsInADump(t *testing.T) {
	c := &graveler.Commit{
		ID: "1", Version: 2, Committer: "3", Message: "4", Tree: "5", CreatedAt: time.Unix(0, 6).UTC(), Parents: []graveler.CommitID{"7"}, Metadata: map[string]string{"8": "9"},
		Generation: 10, LogTime: 11, Nonce: "12",
	}
	requireFull(t, commitData(c), *c)
	require.Equal(t, c, commitOf(commitData(c)))

	m := graveler.Move{Time: 1, Previous: 2, Op: graveler.OpMerge, Old: "3", New: "4", CommittedThrough: 5, Actor: "6"}
	requireFull(t, moveData(m), m)
	require.Equal(t, m, moveOf(moveData(m)))

	b := graveler.Branch{
		ID: "1", UID: "2", Head: "3", ItemCounter: 4, Hidden: true, LastMove: m,
		// Of the store that it is in, shown by the entries, or what settings and repository say of it.
		Protected: graveler.ActionStage, ReadOnly: true,
		State: graveler.BranchLive, Token: "5", Items: []graveler.Item{{}}, Base: "6", Nonce: "7", Stamp: graveler.Stamp("8"),
	}
	requireFull(t, branchData(b), b)
	b.Protected, b.ReadOnly = 0, false
	b.State, b.Token, b.Items, b.Base, b.Nonce, b.Stamp = 0, "", nil, "", "", nil
	require.Equal(t, b, branchOf(branchData(b)))

	p := graveler.Pin{Owner: "1", Trees: []graveler.MetaRangeID{"2"}, Logs: map[string]int64{"3": 4}}
	requireFull(t, pinData(p), p)
	require.Equal(t, p, pinOf(pinData(p)))

	e := graveler.Entry{Key: graveler.Key("1"), Value: &graveler.Value{Identity: []byte("2"), Data: []byte("3")}}
	requireFull(t, entryData(e), e)
	require.Equal(t, e, entryOf(entryData(e)))
	require.Equal(t, graveler.Entry{Key: e.Key}, entryOf(entryData(graveler.Entry{Key: e.Key})), "a tombstone")
}

func requireFull(t *testing.T, m proto.Message, record any) {
	t.Helper()
	fields := m.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		require.True(t, m.ProtoReflect().Has(fields.Get(i)), fields.Get(i).FullName())
	}
	v := reflect.ValueOf(record)
	for i := range v.NumField() {
		require.False(t, v.Field(i).IsZero(), v.Type().Field(i).Name)
	}
}

// What moves the head of a branch has the same number in a dump as in the store.
func TestOperationsHaveTheirNumbers(t *testing.T) {
	for op := graveler.OpCreate; op <= graveler.OpDelete; op++ {
		m := moveData(graveler.Move{Op: op})
		require.NotContains(t, "0123456789", m.Op.String()[:1], "it has a name")
		require.Equal(t, op, moveOf(m).Op)
	}
}
