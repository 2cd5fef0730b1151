// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// The messages of parts, uploads and objects give the same numbers to different fields: the key of a part must not pass for an address.
func TestTheAddressOfAValueNeedsNoKey(t *testing.T) {
	part := Part{Number: 7, PhysicalAddress: "s3://b/part", Size: 5, Checksum: "etag", ModifiedAt: time.Unix(1, 0).UTC()}
	ofPart, err := part.value("data/x")
	require.NoError(t, err)
	require.Equal(t, "s3://b/part", Address(ofPart))
	decoded, err := DecodePart(Place{Kind: KindPart, Part: 7}, ofPart)
	require.NoError(t, err)
	require.Equal(t, part, decoded)

	bare := Part{Number: 1}
	ofBare, err := bare.value("data/x")
	require.NoError(t, err)
	require.Empty(t, Address(ofBare), "its key is no address")

	upload := Upload{Key: "data/x", Initiated: time.Unix(1, 0).UTC(), Object: Object{ContentType: "text/csv"}}
	ofUpload, err := upload.value()
	require.NoError(t, err)
	require.Empty(t, Address(ofUpload))

	for _, o := range []Object{
		{PhysicalAddress: "s3://b/x"},
		{PhysicalAddress: "s3://b/x", Size: 5, Checksum: "etag", ModifiedAt: time.Unix(1, 0).UTC(), Tags: map[string]string{"k": "v"}},
	} {
		v, err := Encode(o)
		require.NoError(t, err)
		require.Equal(t, "s3://b/x", Address(v))
		v.Identity = []byte("of a migrated entry")
		require.Equal(t, "s3://b/x", Address(v))
	}
	require.Empty(t, Address(graveler.Value{Identity: []byte("x"), Data: []byte("\xff")}))
	_, err = DecodePart(Place{}, graveler.Value{Data: []byte("\xff")})
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
}
