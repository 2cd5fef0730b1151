// SPDX-License-Identifier: Apache-2.0

package lakefs_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

func record(t *testing.T, m *lakefspb.EntryData) lakefs.Record {
	t.Helper()
	data, err := proto.Marshal(m)
	require.NoError(t, err)
	return lakefs.Record{Key: []byte("some/key"), Identity: []byte("of lakeFS"), Data: data}
}

func TestAnEntryBecomesAnObjectWithTheIdentityOfLakeFS(t *testing.T) {
	v, err := lakefs.Value(record(t, &lakefspb.EntryData{
		Address: "data/abc", AddressType: lakefspb.AddressType_ADDRESS_RELATIVE, ModifiedAt: &lakefspb.Instant{Seconds: 1_600_000_000, Nanoseconds: 123_456_789},
		Size: 1 << 40, Etag: "etag", Metadata: map[string]string{"ключ": "значение", "empty": ""}, ContentType: "text/plain",
	}), "s3://bucket/path")
	require.NoError(t, err)
	require.Equal(t, "of lakeFS", string(v.Identity))
	object, err := catalog.Decode(v)
	require.NoError(t, err)
	require.Equal(t, catalog.Object{
		PhysicalAddress: "s3://bucket/path/data/abc", Size: 1 << 40, Checksum: "etag", ModifiedAt: time.Unix(1_600_000_000, 123_456_789).UTC(), ContentType: "text/plain",
		Metadata: map[string]string{"ключ": "значение", "empty": ""},
	}, object)
}

func TestAnEntryWithoutAnythingIsAnObjectWithoutAnything(t *testing.T) {
	v, err := lakefs.Value(record(t, &lakefspb.EntryData{AddressType: lakefspb.AddressType_ADDRESS_RELATIVE}), "s3://bucket/path")
	require.NoError(t, err)
	object, err := catalog.Decode(v)
	require.NoError(t, err)
	require.Equal(t, catalog.Object{}, object)
}

func TestAddressesBecomeFullOnes(t *testing.T) {
	const byPrefix, relative, full = lakefspb.AddressType_ADDRESS_BY_PREFIX, lakefspb.AddressType_ADDRESS_RELATIVE, lakefspb.AddressType_ADDRESS_FULL
	for _, c := range []struct {
		namespace, address string
		of                 lakefspb.AddressType
		want               string
	}{
		{"s3://bucket/path", "a b", relative, "s3://bucket/path/a b"},
		{"s3://bucket/path/", "x", relative, "s3://bucket/path/x"},
		{"local://repo", "x://y", relative, "local://repo/x://y"},
		{"s3://bucket/path", "gs://other/x", full, "gs://other/x"},
		{"s3://bucket/path", "no-scheme", full, "no-scheme"},
		{"s3://bucket/path", "gs://other/x", byPrefix, "gs://other/x"},
		{"s3://bucket/path", "x", byPrefix, "s3://bucket/path/x"},
		{"s3://bucket/path", "data/x://y", byPrefix, "s3://bucket/path/data/x://y"},
		{"s3://bucket/path", "x://y", byPrefix, "s3://bucket/path/x://y"},
		{"s3://bucket/path", "https://account.example/container/x", byPrefix, "https://account.example/container/x"},
	} {
		v, err := lakefs.Value(record(t, &lakefspb.EntryData{Address: c.address, AddressType: c.of}), c.namespace)
		require.NoError(t, err)
		require.Equal(t, c.want, catalog.Address(v))
	}
	_, err := lakefs.Value(record(t, &lakefspb.EntryData{Address: "x", AddressType: 3}), "s3://bucket/path")
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	require.ErrorContains(t, err, "address type 3")
}

func TestWhatS3ForbidsButTheStoreCanHoldCarriesOver(t *testing.T) {
	m := &lakefspb.EntryData{Metadata: map[string]string{"long": strings.Repeat("v", 60<<10)}}
	_, err := lakefs.Value(record(t, m), "s3://bucket/path")
	require.NoError(t, err)
}

func TestAnEntryThatCannotBeKeptIsRefusedByItsKey(t *testing.T) {
	damaged := record(t, &lakefspb.EntryData{Etag: "e"})
	damaged.Data = damaged.Data[:2]
	unknown := record(t, &lakefspb.EntryData{Etag: "e"})
	unknown.Data = append(unknown.Data, 0x40, 1)
	deep := record(t, &lakefspb.EntryData{})
	deep.Data = append(deep.Data, 0x12, 2, 0x18, 1) // field 3 of the time
	notUTF8 := record(t, &lakefspb.EntryData{})
	notUTF8.Data = append(notUTF8.Data, 0x22, 1, 0xff)
	nothing := record(t, &lakefspb.EntryData{})
	nothing.Identity = nil
	for name, c := range map[string]struct {
		record lakefs.Record
		err    error
		says   string
	}{
		"cut short":      {damaged, graveler.ErrInvalidValue, ""},
		"unknown field":  {unknown, graveler.ErrInvalidValue, "EntryData has fields that this program does not know"},
		"unknown inside": {deep, graveler.ErrInvalidValue, "Instant has fields that this program does not know"},
		"not UTF-8":      {notUTF8, graveler.ErrInvalidValue, ""},
		"no identity":    {nothing, graveler.ErrInvalidValue, "identity"},
		"negative size":  {record(t, &lakefspb.EntryData{Size: -1}), graveler.ErrInvalidValue, "size -1"},
		"year":           {record(t, &lakefspb.EntryData{ModifiedAt: &lakefspb.Instant{Seconds: math.MaxInt64 / 2}}), graveler.ErrInvalidValue, "modification time"},
		"too large":      {record(t, &lakefspb.EntryData{Etag: strings.Repeat("e", 2000)}), graveler.ErrTooLarge, "checksum"},
	} {
		_, err := lakefs.Value(c.record, "s3://bucket/path")
		require.ErrorIs(t, err, c.err, name)
		require.ErrorContains(t, err, `entry "some/key"`, name)
		require.ErrorContains(t, err, c.says, name)
	}
}
