// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestAnImportIsCommittedOnceUnlessSomethingChanges(t *testing.T) {
	s := newLake(t)
	path := s.file("data/sub/a", "x")
	s.file("data/b", "xyz")
	data := filepath.Join(s.dir, "data")

	first := s.objects("import", data, "lake/main:p/", "--commit", "-m", "first")[0]
	require.Equal(t, []any{2.0, 4.0, 0.0}, []any{first["files"], first["bytes"], first["skipped"]})
	require.Equal(t, first["commit"], s.objects("show", "lake/main")[0]["id"])
	require.Equal(t, "file://"+path, s.objects("get", "lake/main@:p/sub/a")[0]["physical_address"])

	code, stdout, stderr := s.run("import", data, "lake/main:p/", "--commit", "-m", "again")
	require.Zero(t, code)
	require.Equal(t, "nothing changed: no commit was made\n", stderr)
	require.NotContains(t, stdout, "Commit")
	require.Equal(t, first["commit"], s.objects("show", "lake/main")[0]["id"])

	s.file("data/b", "changed")
	s.ok("import", data, "lake/main:p/")
	require.Equal(t, "~ p/b\n", s.ok("diff", "lake/main"))
}

func TestAnImportLeavesTheStoreOut(t *testing.T) {
	s := newLake(t)
	s.file("a", "x")
	_, _, stderr := s.run("import", s.dir, "lake/main:")
	require.Empty(t, stderr)
	require.Equal(t, "+ a\n", s.ok("diff", "lake/main"))
	_, _, stderr = s.run("import", s.dir, "lake/main:", "--verbose")
	require.Contains(t, stderr, "meta.db: belongs to the store\n")
	require.Contains(t, stderr, "blocks: belongs to the store\n")

	// A repository may have its files elsewhere.
	s.ok("repo", "create", "sea", "--namespace", "file:"+filepath.Join(s.dir, "sea"))
	s.ok("import", s.dir, "sea/main:", "--commit", "-m", "x")
	require.DirExists(t, filepath.Join(s.dir, "sea"))
	s.ok("import", s.dir, "sea/main:")
	require.Empty(t, s.ok("diff", "sea/main"))
}

func TestAnImportNamesWhatItSkips(t *testing.T) {
	s := newLake(t)
	s.file("data/a", "x")
	data := filepath.Join(s.dir, "data")
	require.NoError(t, os.Symlink("a", filepath.Join(data, "li\nnk")))
	code, stdout, stderr := s.run("import", data, "lake/main:")
	require.Zero(t, code)
	require.Equal(t, "skipped "+data+`/li\nnk: symbolic link`+"\n", stderr)
	require.Regexp(t, `Skipped: +1\n`, stdout)
	_, _, stderr = s.run("import", data, "lake/main:", "--quiet")
	require.Empty(t, stderr)
}

func TestAnImportNamesOnlyTheFirstOfManyThatItSkips(t *testing.T) {
	s := newLake(t)
	s.file("data/a", "x")
	data := filepath.Join(s.dir, "data")
	for i := range 1012 {
		require.NoError(t, os.Symlink("a", filepath.Join(data, fmt.Sprintf("link-%04d", i))))
	}
	_, stdout, stderr := s.run("import", data, "lake/main:")
	require.Len(t, lines(stderr), 11)
	require.Contains(t, lines(stderr)[9], "link-0009")
	require.Equal(t, "… and 1,002 more skipped (--verbose names them all)", lines(stderr)[10])
	require.Regexp(t, `Skipped: +1012\n`, stdout)
	_, _, stderr = s.run("import", data, "lake/main:", "--verbose")
	require.Equal(t, 1012, strings.Count(stderr, "skipped "))
	require.NotContains(t, stderr, "more skipped")
}

func TestAnImportThatIsNotCompleteIsNotCommitted(t *testing.T) {
	s := newLake(t)
	data := filepath.Join(s.dir, "data")
	s.file("data/a", "x")
	s.file("data/long", "x")
	code, stdout, stderr := s.run("import", data, "lake/main:"+strings.Repeat("p", 1023), "--commit", "-m", "x")
	require.Equal(t, 2, code)
	require.Empty(t, stdout)
	require.Len(t, lines(stderr), 2)
	require.Contains(t, stderr, "cannot import "+data+"/long: too large: key of 1027 bytes")
	require.Contains(t, lines(stderr)[1], "the keys of 1 files, nothing was staged")
	require.Empty(t, s.ok("diff", "lake/main"))
}

// canceller cancels when a word is written to it.
type canceller struct {
	bytes.Buffer
	word   string
	cancel func()
}

func (c *canceller) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.word)) {
		c.cancel()
	}
	return c.Buffer.Write(p)
}

func TestAnImportThatIsInterruptedSaysHowFarItCame(t *testing.T) {
	s := newLake(t)
	for i := range 1500 {
		s.file(fmt.Sprintf("data/%04d", i), "x")
	}
	data := filepath.Join(s.dir, "data")
	require.NoError(t, os.Symlink("0000", filepath.Join(data, "1200-link")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stderr := canceller{word: "1200-link", cancel: cancel}
	var stdout bytes.Buffer
	require.Equal(t, 1, Run(ctx, nil, append(s.global, "import", data, "lake/main:", "--commit", "-m", "x"), &stdout, &stderr))
	require.Empty(t, stdout.String())
	require.Equal(t, "moraine: import "+data+" lake/main: interrupted: 1000 files are staged, nothing was committed (run it again to go on)", lines(stderr.String())[1])
	require.Len(t, lines(s.ok("diff", "lake/main")), 1000)
	require.Len(t, s.objects("log", "lake/main"), 1)

	s.ok("import", data, "lake/main:", "--commit", "-m", "x")
	require.Len(t, lines(s.ok("ls", "lake/main@:")), 1501)
}

// Keys that begin with a zero byte belong to layers above: an import with the empty prefix replaces all the others.
func TestReplacingEverythingKeepsReservedKeys(t *testing.T) {
	s := newLake(t)
	store, err := moraine.Open(t.Context(), moraine.Options{Store: s.global[1], Blocks: s.global[3]})
	require.NoError(t, err)
	for _, key := range []string{"\x00version", "\x01", "a", "\xff\xff"} {
		require.NoError(t, store.Set(t.Context(), "lake", "main", graveler.Key(key), graveler.Value{Identity: []byte("1")}))
	}
	require.NoError(t, store.Close())
	s.ok("commit", "lake/main", "-m", "all")
	list := s.file("list.jsonl", `{"key":"b"}`)
	s.ok("import", "--listing", list, "lake/main:", "--replace")
	require.Equal(t, "- \\x01\n- a\n+ b\n- \\xff\\xff\n", s.ok("diff", "lake/main~1", "lake/main"))
}

func TestAnImportOfAListingThatIsInterruptedChangesNothing(t *testing.T) {
	s := newLake(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, stdout, stderr := s.runContext(ctx, "import", "--listing", s.file("list.jsonl", `{"key":"b"}`), "lake/main:")
	require.Equal(t, 1, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "context canceled (interrupted)")
	require.Len(t, s.objects("log", "lake/main"), 1)
}
