// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/block"
)

var sizes = rapid.OneOf(
	rapid.Int64Range(0, 20),
	rapid.Int64Range(chunkBytes-5, chunkBytes+5),
	rapid.Int64Range(2*chunkBytes-5, 2*chunkBytes+5),
	rapid.Int64Range(0, 4*chunkBytes),
)

func someBytes(size int64) []byte {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	return data
}

func TestSizesConvert(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := sizes.Draw(t, "size")
		require.Len(t, encode("a", someBytes(size)), int(diskSize(size)))
		require.Equal(t, size, dataSize(diskSize(size)))
	})
}

func TestEveryRangeIsReadBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(t *rapid.T) {
		data := someBytes(sizes.Draw(t, "size"))
		require.NoError(t, os.WriteFile(path, encode("a", data), 0o600))
		got, err := readFile(path, "a", span{whole: true})
		require.NoError(t, err)
		require.Equal(t, data, got)
		for range 5 {
			s := span{offset: sizes.Draw(t, "offset"), length: sizes.Draw(t, "length")}
			got, err := readFile(path, "a", s)
			if wrong := block.CheckRange(int64(len(data)), s.offset, s.length); wrong != nil {
				require.ErrorIs(t, err, block.ErrShort)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, data[s.offset:s.offset+s.length], got)
			_ = append(got, 'x')
		}
	})
}

// However a file is damaged, a read gives what was written or else an error that says that the file
// is of no use: never other bytes, and never a false word about its length.
func TestDamageIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	rapid.Check(t, func(t *rapid.T) {
		data := someBytes(sizes.Draw(t, "size"))
		disk, name := encode("a", data), "a"
		switch rapid.SampledFrom([]string{"flip", "cut", "extend", "swap"}).Draw(t, "damage") {
		case "flip":
			disk[rapid.IntRange(0, len(disk)-1).Draw(t, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "cut":
			betweenChunks := (len(disk) - 1) / (chunkBytes + sumBytes) * (chunkBytes + sumBytes)
			disk = disk[:rapid.OneOf(rapid.IntRange(0, len(disk)-1), rapid.Just(betweenChunks)).Draw(t, "to")]
		case "extend":
			disk = append(disk, make([]byte, rapid.IntRange(1, 2*chunkBytes).Draw(t, "by"))...)
		case "swap":
			name = "b"
		}
		require.NoError(t, os.WriteFile(path, disk, 0o600))
		_, err := readFile(path, name, span{whole: true})
		require.Error(t, err)
		require.NotErrorIs(t, err, block.ErrShort)
		s := span{offset: sizes.Draw(t, "offset"), length: sizes.Draw(t, "length")}
		got, err := readFile(path, name, s)
		switch wrong := block.CheckRange(int64(len(data)), s.offset, s.length); {
		case err == nil:
			require.NoError(t, wrong)
			require.Equal(t, data[s.offset:s.offset+s.length], got)
		case wrong == nil:
			require.NotErrorIs(t, err, block.ErrShort)
		}
	})
}
