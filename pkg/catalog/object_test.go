// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func sample() Object {
	return Object{
		PhysicalAddress: "s3://bucket/data/1", Size: 42, Checksum: "sha256:00", ModifiedAt: time.Unix(1, 2).UTC(), ContentType: "text/csv",
		Metadata: map[string]string{"origin": "test", "empty": ""}, Tags: map[string]string{"team": "blue"}, StorageClass: "STANDARD",
		Lock:      Lock{Mode: LockGovernance, RetainUntil: time.Unix(3, 4).UTC(), LegalHold: true},
		VersionID: "v1", DeleteMarker: true, NoncurrentSince: time.Unix(0, 0).UTC(), // the epoch is a time like any other
		unknown: protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7),
	}
}

func mustEncode(t *testing.T, o Object) graveler.Value {
	t.Helper()
	v, err := Encode(o)
	require.NoError(t, err)
	return v
}

func TestAnObjectComesBackAsItWas(t *testing.T) {
	for _, o := range []Object{{}, sample()} {
		got, err := Decode(mustEncode(t, o))
		require.NoError(t, err)
		require.Equal(t, o, got)
	}
}

// The hashes are in people's stores: where they change, every object looks changed.
func TestIdentitiesNeverChange(t *testing.T) {
	o := sample()
	require.Equal(t, "29357e046e7a187e9103d44a8744cbf1f10e7f54c08d7040ba4ea8012a2abfa2", hex.EncodeToString(mustEncode(t, o).Identity))
	require.Equal(t, "c618630ff4d457a5a937883721cf6bfccd2dfc3c033252a46f51813518a4bf99", hex.EncodeToString(mustEncode(t, Object{}).Identity))
	require.Equal(t, "9ea0b161d24fc7c5a57d5bb57603dca2381942fec561460a29fa0c8a807892ac", hex.EncodeToString(o.ContentIdentity()))
}

func TestEqualObjectsHaveEqualValues(t *testing.T) {
	a, b := sample(), sample()
	b.ModifiedAt = b.ModifiedAt.In(time.FixedZone("elsewhere", 3600))
	require.Equal(t, mustEncode(t, a), mustEncode(t, b))
	require.Equal(t, mustEncode(t, Object{}), mustEncode(t, Object{Metadata: map[string]string{}, Tags: map[string]string{}}))
}

// contentFields are those that the content identity covers.
var contentFields = map[string]bool{"PhysicalAddress": true, "Size": true, "Checksum": true, "ModifiedAt": true}

// A field that is added to Object without being stored and hashed fails here.
func TestEveryFieldIsStoredAndPartOfTheIdentity(t *testing.T) {
	// A lock needs mode and time, so it is there from the start.
	base := Object{Lock: Lock{Mode: LockCompliance, RetainUntil: time.Unix(9, 0).UTC()}}
	identities := map[string]string{string(base.identity()): "none"}
	eachField(t, reflect.TypeFor[Object](), func(name string, index []int) {
		changed := base
		if name == "unknown" {
			changed.unknown = sample().unknown
		} else {
			change(t, reflect.ValueOf(&changed).Elem().FieldByIndex(index))
		}
		v := mustEncode(t, changed)
		got, err := Decode(v)
		require.NoError(t, err)
		require.Equal(t, changed, got, "%s is not stored", name)
		other, taken := identities[string(v.Identity)]
		require.False(t, taken, "the identity is the same when %s is changed and when %s is", name, other)
		identities[string(v.Identity)] = name
		require.Equal(t, contentFields[name], string(base.ContentIdentity()) != string(changed.ContentIdentity()), name)
	})
	require.Len(t, identities, 16)
}

func eachField(t *testing.T, typ reflect.Type, fn func(name string, index []int)) {
	for _, f := range reflect.VisibleFields(typ) {
		if f.Type == reflect.TypeFor[Lock]() {
			for _, g := range reflect.VisibleFields(f.Type) {
				fn(g.Name, append(append([]int{}, f.Index...), g.Index...))
			}
			continue
		}
		fn(f.Name, f.Index)
	}
}

func change(t *testing.T, field reflect.Value) {
	switch old := field.Interface().(type) {
	case string:
		field.SetString("x")
	case bool:
		field.SetBool(true)
	case int64:
		field.SetInt(1)
	case LockMode:
		field.SetInt(int64(LockGovernance))
	case time.Time:
		field.Set(reflect.ValueOf(time.Unix(1, 0).UTC()))
	case map[string]string:
		field.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	default:
		t.Fatalf("no way to change a %T", old)
	}
}

func TestFieldsDoNotRunIntoEachOther(t *testing.T) {
	for _, pair := range [][2]Object{
		{{PhysicalAddress: "a", Checksum: ""}, {PhysicalAddress: "", Checksum: "a"}},
		{{Metadata: map[string]string{"ab": "c"}}, {Metadata: map[string]string{"a": "bc"}}},
		{{Metadata: map[string]string{"a": "b"}}, {Tags: map[string]string{"a": "b"}}},
		{{ModifiedAt: time.Unix(0, 0)}, {}},
	} {
		require.NotEqual(t, pair[0].identity(), pair[1].identity())
	}
}

func TestUnknownFieldsSurviveAnEdit(t *testing.T) {
	o, err := Decode(mustEncode(t, sample()))
	require.NoError(t, err)
	o.Tags = map[string]string{"team": "red"}
	edited, err := Decode(mustEncode(t, o))
	require.NoError(t, err)
	require.Equal(t, sample().unknown, edited.unknown)
}

func TestBadObjectsAreRefused(t *testing.T) {
	many := map[string]string{}
	for i := range maxPairs + 1 {
		many[fmt.Sprint(i)] = ""
	}
	when := time.Unix(1, 0)
	for name, c := range map[string]struct {
		object Object
		want   error
	}{
		"negative size":      {Object{Size: -1}, graveler.ErrInvalidValue},
		"address not UTF-8":  {Object{PhysicalAddress: "\xff"}, graveler.ErrInvalidValue},
		"metadata not UTF-8": {Object{Metadata: map[string]string{"a": "\xff"}}, graveler.ErrInvalidValue},
		"empty tag":          {Object{Tags: map[string]string{"": "a"}}, graveler.ErrInvalidValue},
		"year 3000":          {Object{ModifiedAt: time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)}, graveler.ErrInvalidValue},
		"mode alone":         {Object{Lock: Lock{Mode: LockGovernance}}, graveler.ErrInvalidValue},
		"time alone":         {Object{Lock: Lock{RetainUntil: when}}, graveler.ErrInvalidValue},
		"unknown mode":       {Object{Lock: Lock{Mode: 9, RetainUntil: when}}, graveler.ErrInvalidValue},
		"long address":       {Object{PhysicalAddress: strings.Repeat("a", MaxAddressBytes+1)}, graveler.ErrTooLarge},
		"long checksum":      {Object{Checksum: strings.Repeat("a", MaxTextBytes+1)}, graveler.ErrTooLarge},
		"much metadata":      {Object{Metadata: map[string]string{"a": strings.Repeat("a", MaxMetadataBytes)}}, graveler.ErrTooLarge},
		"many tags":          {Object{Tags: many}, graveler.ErrTooLarge},
		"much of a newer one": {Object{unknown: protowire.AppendBytes(protowire.AppendTag(nil, 1000, protowire.BytesType), make([]byte, graveler.MaxValueBytes))},
			graveler.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Encode(c.object)
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestTheLargestObjectFitsIntoAnEntry(t *testing.T) {
	text := strings.Repeat("a", MaxTextBytes)
	pairs := map[string]string{}
	for i := range maxPairs {
		pairs[fmt.Sprintf("%04d", i)] = strings.Repeat("a", MaxMetadataBytes/maxPairs-4)
	}
	mustEncode(t, Object{
		PhysicalAddress: strings.Repeat("a", MaxAddressBytes), Checksum: text, ContentType: text, StorageClass: text, VersionID: text,
		Metadata: pairs, Tags: pairs, ModifiedAt: time.Unix(1, 0),
	})
}

func TestDataOfAnotherKindIsRefused(t *testing.T) {
	_, err := Decode(graveler.Value{Identity: []byte("x"), Data: []byte("\xff no message")})
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
}

func FuzzDecode(f *testing.F) {
	for _, o := range []Object{{}, sample()} {
		v, err := Encode(o)
		require.NoError(f, err)
		f.Add(v.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Decode(graveler.Value{Data: data})
		if err != nil {
			return
		}
		v, err := Encode(o)
		if err != nil {
			return // such as a lock of an unknown mode
		}
		again, err := Decode(v)
		require.NoError(t, err)
		require.Equal(t, o.identity(), again.identity())
	})
}
