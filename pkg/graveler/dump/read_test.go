// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
)

func nobody(*dumppb.DumpRecord) error { return nil }

// The golden dump never changes: what was written once can be read for ever.
func golden(t testing.TB) []byte {
	text, err := os.ReadFile("testdata/v1.dump")
	require.NoError(t, err)
	return text
}

func TestTheGoldenDumpIsReadAndWrittenAlike(t *testing.T) {
	text := golden(t)
	var again bytes.Buffer
	require.NoError(t, read(bytes.NewReader(text), func(r *dumppb.DumpRecord) error {
		line, err := encode(r)
		again.Write(line)
		return err
	}))
	require.Equal(t, string(text), again.String())
}

func TestEveryAlteredByteAndEveryTruncationIsNoticed(t *testing.T) {
	text := golden(t)
	for at := 0; at < len(text); at += 3 {
		altered := bytes.Clone(text)
		altered[at] ^= []byte{0x01, 0x04, 0x20, 0x80}[at%4]
		require.ErrorIs(t, read(bytes.NewReader(altered), nobody), ErrInvalid, "altered at %d", at)
		if at%5 == 0 {
			require.ErrorIs(t, read(bytes.NewReader(text[:at]), nobody), ErrInvalid, "cut off at %d", at)
		}
	}
}
