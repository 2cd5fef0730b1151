// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files that do not exist yet")

// goldens are the files of version 1 that must stay readable and keep their IDs. Each is a pair in testdata/v1: the file,
// and a text with its ID, its level and its records in hexadecimal.
func goldens() map[string]struct {
	level   int
	records []Record
} {
	type golden = struct {
		level   int
		records []Record
	}
	var children []Record
	for i := range 200 {
		c := Child{
			First: fmt.Appendf(nil, "a/%04d", i*10), Last: fmt.Appendf(nil, "a/%04d", i*10+9),
			ID: contentID(0, uint64(i), nil), Count: uint64(i + 1), Size: uint64(i) << 20,
		}
		children = append(children, c.Record())
	}
	return map[string]golden{
		"one-entry": {0, []Record{{Key: []byte{0}, Identity: []byte("i")}}},
		"entries":   {0, sample(250, 7)},
		"large": {0, []Record{
			{Key: bytes.Repeat([]byte("k"), MaxKey), Identity: []byte{1}, Data: bytes.Repeat([]byte("0123456789abcdef"), 1200)},
			{Key: []byte{0xff}, Identity: []byte{2}, Data: []byte{}},
		}},
		"metarange": {1, children},
		"upper":     {5, children[:2]},
	}
}

func TestGoldenFilesStayReadable(t *testing.T) {
	for name, g := range goldens() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "v1", name)
			id, built := build(t, g.level, g.records)
			if _, err := os.Stat(path + ".file"); *update && os.IsNotExist(err) {
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path+".file", built, 0o644))
				require.NoError(t, os.WriteFile(path+".txt", listing(id, g.level, g.records), 0o644))
			}
			data, err := os.ReadFile(path + ".file")
			require.NoError(t, err)
			wantID, level, want := readListing(t, path+".txt")
			f, all, err := readAll(t.Context(), data)
			require.NoError(t, err)
			requireRecords(t, want, all)
			require.Equal(t, wantID, f.ID)
			require.Equal(t, level, f.Level)
			require.Equal(t, wantID, id, "the ID of the same records has changed")
			requireSamePlainBlocks(t, data, built)
		})
	}
}

// requireSamePlainBlocks compares two files before compression, which alone may differ between releases of a compressor.
func requireSamePlainBlocks(t *testing.T, old, built []byte) {
	f, g := open(t, old), open(t, built)
	require.Equal(t, f.Blocks(), g.Blocks())
	for i := range f.Blocks() {
		a, err := f.Read(t.Context(), Bytes(old), i, nil)
		require.NoError(t, err)
		b, err := g.Read(t.Context(), Bytes(built), i, nil)
		require.NoError(t, err)
		require.True(t, bytes.Equal(a.records, b.records) && bytes.Equal(a.restarts, b.restarts), "block %d", i)
	}
}

func listing(id ID, level int, rs []Record) []byte {
	b := fmt.Appendf(nil, "%s %d\n", id, level)
	for _, r := range rs {
		b = fmt.Appendf(b, "%x|%x|%x\n", r.Key, r.Identity, r.Data)
	}
	return b
}

func readListing(t *testing.T, path string) (id ID, level int, rs []Record) {
	text, err := os.Open(path)
	require.NoError(t, err)
	defer text.Close()
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, 1<<20)
	require.True(t, lines.Scan())
	var digits string
	_, err = fmt.Sscanf(lines.Text(), "%s %d", &digits, &level)
	require.NoError(t, err)
	id, err = ParseID(digits)
	require.NoError(t, err)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "|")
		require.Len(t, fields, 3)
		var parts [3][]byte
		for i := range parts {
			parts[i], err = hex.DecodeString(fields[i])
			require.NoError(t, err)
		}
		rs = append(rs, Record{Key: parts[0], Identity: parts[1], Data: parts[2]})
	}
	require.NoError(t, lines.Err())
	return id, level, rs
}
