// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// anyKey draws keys in which zero bytes, and what they are escaped to, meet.
var anyKey = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{"\x00", "\x01", "\xff", "\xfe", "a", "b", "/", "v", "\x00\x01", "\x00\xff", "ä"}), 0, 12).Draw(t, "parts")
	return rapid.SampledFrom([]string{"a", "\x01", "\xff", "b"}).Draw(t, "first") + strings.Join(parts, "")
})

func TestEveryPlaceIsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key, at := anyKey.Draw(t, "key"), rapid.Int64Range(0, math.MaxInt64).Draw(t, "time")
		version, upload, part := newVersionID(at), newUploadID(at), rapid.IntRange(1, 10_000).Draw(t, "part")
		for _, c := range []struct {
			key  graveler.Key
			want Place
		}{
			{currentKey(key), Place{Kind: KindCurrent, Key: key}},
			{markerKey(key), Place{Kind: KindMarker, Key: key}},
			{nullKey(key), Place{Kind: KindNull, Key: key, VersionID: NullVersion}},
			{versionKey(key, ""), Place{Kind: KindNull, Key: key, VersionID: NullVersion}},
			{versionKey(key, version), Place{Kind: KindNoncurrent, Key: key, VersionID: version}},
			{uploadKey(key, upload), Place{Kind: KindUpload, Key: key, UploadID: upload}},
			{partKey(upload, part), Place{Kind: KindPart, UploadID: upload, Part: part}},
		} {
			got, err := ParseKey(c.key)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			if c.want.Kind != KindCurrent {
				require.Less(t, string(c.key), afterReserved)
				require.Greater(t, key, afterReserved)
			}
		}
		got, ok := versionTimeOf(version)
		require.True(t, ok)
		require.Equal(t, at, got)
	})
}

func TestReservedKeysAreInTheOrderOfKeysAndVersionsNewestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyKey.Draw(t, "a"), anyKey.Draw(t, "b")
		if a != b {
			require.Equal(t, cmp.Compare(a, b), cmp.Compare(string(versionKey(a, newVersionID(0))), string(markerKey(b))))
			require.Equal(t, cmp.Compare(a, b), cmp.Compare(string(uploadKey(a, newUploadID(math.MaxInt64))), string(uploadKey(b, newUploadID(0)))))
		}
		require.Equal(t, strings.HasPrefix(a, b), strings.HasPrefix(string(markerKey(a)), versionsArea+escape(b)))

		at := rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "time")
		group := []string{string(markerKey(a)), string(nullKey(a)), string(versionKey(a, newVersionID(at+1))), string(versionKey(a, newVersionID(at)))}
		require.True(t, slices.IsSorted(group))
		require.Less(t, newUploadID(at), newUploadID(at+1))
	})
}

func TestTheLongestKeysFit(t *testing.T) {
	for _, key := range []string{strings.Repeat("k", MaxKeyBytes), strings.Repeat("k", MaxKeyBytes-maxZeros) + strings.Repeat("\x00", maxZeros)} {
		require.NoError(t, checkKey(key))
		for _, k := range []graveler.Key{currentKey(key), markerKey(key), nullKey(key), versionKey(key, newVersionID(0)), uploadKey(key, newUploadID(0))} {
			require.NoError(t, graveler.ValidateKey(k))
		}
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	for key, want := range map[string]Code{
		"":                                       InvalidArgument,
		"\x00a":                                  InvalidArgument,
		strings.Repeat("k", MaxKeyBytes+1):       KeyTooLongError,
		"k" + strings.Repeat("\x00", maxZeros+1): KeyTooLongError,
	} {
		require.ErrorIs(t, checkKey(key), want)
	}
}

func TestReservedKeysOfAnyOtherFormAreErrors(t *testing.T) {
	id := newVersionID(1)
	for _, key := range []string{
		"", "\x00", "\x00x", "\x00v", "\x00va", "\x00va\x00\x01", "\x00va\x00\x01x", "\x00va\x00\x01cc", "\x00va\x00\x01v" + id[1:], "\x00va\x00\x01v" + strings.ToUpper(newVersionID(0)[:8]) + id[8:] + "0",
		"\x00va\x00\x02c", "\x00v\x00\x01c", "\x00v\x00\xffa\x00\x01c", "\x00va\x00\x01vf" + id[1:], "\x00ua\x00\x01", "\x00ua\x00\x01x", "\x00p" + id, "\x00p" + id + "\x001", "\x00p" + id + "\x00-0001", "\x00px\x0000001",
	} {
		_, err := ParseKey(graveler.Key(key))
		require.ErrorIs(t, err, graveler.ErrCorrupt, "%q", key)
	}
}

func FuzzParseKey(f *testing.F) {
	f.Add([]byte(versionKey("a\x00b", newVersionID(7))))
	f.Add([]byte(partKey(newUploadID(7), 3)))
	f.Fuzz(func(t *testing.T, key []byte) {
		p, err := ParseKey(key)
		if err != nil {
			return
		}
		back := map[Kind]func() graveler.Key{
			KindCurrent:    func() graveler.Key { return currentKey(p.Key) },
			KindMarker:     func() graveler.Key { return markerKey(p.Key) },
			KindNull:       func() graveler.Key { return nullKey(p.Key) },
			KindNoncurrent: func() graveler.Key { return versionKey(p.Key, p.VersionID) },
			KindUpload:     func() graveler.Key { return uploadKey(p.Key, p.UploadID) },
			KindPart:       func() graveler.Key { return partKey(p.UploadID, p.Part) },
		}[p.Kind]()
		require.Equal(t, graveler.Key(key), back)
	})
}
