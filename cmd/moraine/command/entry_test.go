// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestListingsShowWhatIsBelowAPrefix(t *testing.T) {
	s := newLake(t)
	for _, key := range []string{"a", "b/1", "b/2", "b/c/3", "d"} {
		s.ok("put", "lake/main:"+key, "--size", "1536")
	}
	keys := func(args ...string) string {
		var all []string
		for i, line := range lines(s.ok(append([]string{"ls"}, args...)...)) {
			if i > 0 {
				all = append(all, line[strings.LastIndex(line, " ")+1:])
			}
		}
		return strings.Join(all, " ")
	}
	require.Equal(t, "a b/ d", keys("lake/main:"))
	require.Equal(t, "b/1 b/2 b/c/", keys("lake/main:b/"))
	require.Equal(t, "a b/1 b/2 b/c/3 d", keys("lake/main:", "--recursive"))
	require.Equal(t, "b/2 b/c/3", keys("lake/main:b/", "--recursive", "--after", "b/1"))
	require.Equal(t, "a b/", keys("lake/main:", "--limit", "2"))
	require.Empty(t, s.ok("ls", "lake/main:nothing"))
	require.Empty(t, s.ok("ls", "lake/main@:"), "the head")
	require.Regexp(t, `(?m)^1\.5 KiB  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  a$`, s.ok("ls", "lake/main:"))
	require.Equal(t, map[string]any{"key": "b/", "common_prefix": true}, s.objects("ls", "lake/main:")[1])

	_, _, stderr := s.run("rm", "lake/main:b/")
	require.Equal(t, "nothing at lake/main:b/; to remove what is below it use --recursive\n", stderr)
	_, _, stderr = s.run("rm", "lake/main:nothing")
	require.Empty(t, stderr)
	s.ok("rm", "lake/main:b/", "--recursive")
	require.Equal(t, "a d", keys("lake/main:", "--recursive"))
}

func TestALongListingIsAllThere(t *testing.T) {
	s := newLake(t)
	s.withStore(func(store *moraine.Store) {
		var entries []graveler.Entry
		for i := range 2500 {
			entries = append(entries, graveler.Entry{Key: graveler.Key(fmt.Sprintf("%04d", i)), Value: &graveler.Value{Identity: []byte("x")}})
		}
		require.NoError(t, store.SetMany(t.Context(), "lake", "main", entries))
	})
	all := lines(s.ok("ls", "lake/main:"))
	require.Len(t, all, 2501)
	require.True(t, strings.HasSuffix(all[2500], " 2499"))
}

func (s *shell) withStore(fn func(*moraine.Store)) {
	s.Helper()
	store, err := moraine.Open(s.Context(), moraine.Options{Store: s.global[1], Blocks: s.global[3]})
	require.NoError(s, err)
	fn(store)
	require.NoError(s, store.Close())
}

func TestKeysOfAnyBytesAreOneLine(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:a\nb\\\"\xff\tü")
	require.Equal(t, "+ "+`a\nb\\"\xff\tü`+"\n", s.ok("diff", "lake/main"))
	require.Len(t, lines(s.ok("ls", "lake/main:")), 2)
	entry := s.objects("ls", "lake/main:")[0]
	require.Equal(t, "a\nb\\\"\uFFFD\tü", entry["key"])
	require.Equal(t, "YQpiXCL/CcO8", entry["key_base64"])
	require.NotContains(t, s.objects("diff", "lake/main")[0], "left")
	require.Contains(t, s.fails(3, "get", "lake/main:x\ny"), `get lake/main:"x\ny": NoSuchKey`)
}

// Programs that embed the store may keep in it what they like.
func TestDataThatIsNoObjectIsShownAsItIs(t *testing.T) {
	s := newLake(t)
	s.withStore(func(store *moraine.Store) {
		require.NoError(t, store.Set(t.Context(), "lake", "main", graveler.Key("a"), graveler.Value{Identity: []byte{1}, Data: []byte("\xff")}))
	})
	require.Equal(t, map[string]any{"key": "a", "identity": "01", "data_base64": "/w=="}, s.objects("get", "lake/main:a")[0])
	require.Contains(t, s.ok("get", "lake/main:a"), `\xff`)
	require.Regexp(t, `(?m)^- +- +a$`, s.ok("ls", "lake/main:"))
}

func TestPutDescribesAFile(t *testing.T) {
	s := newLake(t)
	path := s.file("hello world", "hello")
	s.ok("put", "lake/main:a", "--file", path, "--meta", "origin=test", "--meta", "empty=")
	entry := s.objects("get", "lake/main:a")[0]
	require.Equal(t, 5.0, entry["size"])
	require.Equal(t, "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", entry["checksum"])
	require.True(t, strings.HasSuffix(entry["physical_address"].(string), "/hello%20world"))
	require.Equal(t, map[string]any{"origin": "test", "empty": ""}, entry["metadata"])
	text := s.ok("get", "lake/main:a")
	require.Regexp(t, `Metadata: +empty= origin=test\n`, text)

	s.ok("put", "lake/main:a", "--file", path, "--address", "s3://b/a", "--size", "9", "--checksum", "etag")
	entry = s.objects("get", "lake/main:a")[0]
	require.Equal(t, []any{"s3://b/a", 9.0, "etag"}, []any{entry["physical_address"], entry["size"], entry["checksum"]})

	require.Contains(t, s.fails(1, "put", "lake/main:a", "--file", path+"no"), "no such file")
	require.Contains(t, s.fails(1, "put", "lake/main:a", "--file", s.dir), "not a regular file")
}

func TestPutKeepsToItsCondition(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:a", "--if-absent", "--size", "1")
	require.Contains(t, s.fails(4, "put", "lake/main:a", "--if-absent"), "PreconditionFailed: If-None-Match: the object exists")
	first := s.objects("get", "lake/main:a")[0]["identity"].(string)
	s.ok("put", "lake/main:a", "--if-match", first, "--size", "2")
	require.Contains(t, s.fails(4, "put", "lake/main:a", "--if-match", first), "another identity")
	require.Contains(t, s.fails(4, "put", "lake/main:b", "--if-match", first), "does not exist")
	require.Contains(t, s.fails(2, "put", "lake/main:b", "--if-match", first, "--if-absent"), "if-absent")
	require.Equal(t, 2.0, s.objects("get", "lake/main:a")[0]["size"])
}
