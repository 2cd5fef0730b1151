// SPDX-License-Identifier: Apache-2.0

package command

import (
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestARetentionIsUntilATimeOrForATime(t *testing.T) {
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for text, until := range map[string]time.Time{
		"GOVERNANCE:30d":                  now.AddDate(0, 0, 30),
		"governance:1y":                   time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC),
		"GOVERNANCE:2030-01-01":           time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC),
		"GOVERNANCE:2030-01-01T10:00:00Z": time.Date(2030, 1, 1, 10, 0, 0, 0, time.UTC),
	} {
		r, err := parseRetain("--lock", text, now)
		require.NoError(t, err, text)
		require.Equal(t, catalog.LockGovernance, r.Mode, text)
		require.True(t, until.Equal(r.Until), "%s: %s", text, r.Until)
	}
	for _, text := range []string{"", "30d", ":30d", "GOVERNANCE", "GOVERNANCE:", "KEEP:30d", "GOVERNANCE:30", "GOVERNANCE:-30d", "GOVERNANCE:9999999d", "GOVERNANCE:24h"} {
		_, err := parseRetain("--lock", text, now)
		require.ErrorAs(t, err, &usageError{}, text)
	}
}

func TestEveryKindOfKeyIsShownAsWhatItIs(t *testing.T) {
	const version, upload = "67130ee701e64ceca85aac3d", "187c3a7e5f0a11c2d94b0e6f"
	for key, want := range map[string]string{
		"data/a\n":                             `data/a\n`,
		"\x00va\x00\xffb\x00\x01c":             `a\x00b (delete marker)`,
		"\x00vdata/a\x00\x01n":                 "data/a (version null)",
		"\x00vdata/a\x00\x01v" + version:       "data/a (version " + version + ")",
		"\x00udata/a\x00\x01" + upload:         "data/a (upload " + upload + ")",
		"\x00p" + upload + "\x0000007":         "(part 7 of upload " + upload + ")",
		"\x00another layer's":                  `\x00another layer's`,
		"\x00vdata/a\x00\x01v" + version + "0": `\x00vdata/a\x00\x01v` + version + "0",
	} {
		require.Equal(t, want, describeKey(graveler.Key(key)))
		reserved := viewReserved(graveler.Key(key))
		require.Equal(t, describeKey(graveler.Key(key)) != escape(key), reserved != nil, "%q", key)
	}
	require.Equal(t, &reservedView{Kind: "part", UploadID: upload, Part: 7}, viewReserved(graveler.Key("\x00p"+upload+"\x0000007")))
}

// What another program keeps at a key is no object. It is not taken for one, and can be removed.
func TestWhatIsNoObjectIsNotOverwrittenButCanBeRemoved(t *testing.T) {
	s := newLake(t)
	s.withStore(func(store *moraine.Store) {
		for _, key := range []string{"a", "b"} {
			require.NoError(t, store.Set(t.Context(), "lake", "main", graveler.Key(key), graveler.Value{Identity: []byte{1}, Data: []byte("\xff")}))
		}
	})
	require.Contains(t, s.fails(2, "put", "lake/main:a", "--size", "1"), `entry "a"`)
	require.Contains(t, s.fails(2, "rm", "lake/main:", "--recursive"), `entry "a"`)
	require.Len(t, s.objects("ls", "lake/main:"), 2)
	s.ok("rm", "lake/main:a")
	s.ok("put", "lake/main:a", "--size", "1")
	require.Equal(t, 1.0, s.objects("get", "lake/main:a")[0]["size"])
}

// The bytes of a part may have become those of the object: both are known by where they are.
func TestPartsAndObjectsAreIdentifiedByTheirAddress(t *testing.T) {
	s := newLake(t)
	s.withStore(func(store *moraine.Store) {
		c, err := objectsOf(store)
		require.NoError(t, err)
		b := catalog.Bucket{Repository: "lake"}
		u, err := c.CreateUpload(t.Context(), b, "data/x", catalog.Object{})
		require.NoError(t, err)
		_, _, err = c.PutPart(t.Context(), b, "data/x", u.UploadID, catalog.Part{Number: 1, PhysicalAddress: "s3://b/1", Size: 5})
		require.NoError(t, err)
		_, err = c.Put(t.Context(), b, "data/x", catalog.Object{PhysicalAddress: "s3://b/1", Size: 5}, catalog.Conditions{})
		require.NoError(t, err)
		known := map[string]bool{}
		entries := 0
		for l, err := range store.List(t.Context(), "lake", "main", graveler.ListOptions{}) {
			require.NoError(t, err)
			if catalog.Address(*l.Value) != "" {
				known[string(identify(l.Value))] = true
				entries++
			}
		}
		require.Equal(t, 2, entries)
		require.Equal(t, map[string]bool{"\x01s3://b/1": true}, known)
	})
}

func TestAnImportHeedsVersioningThatIsEnabledWhileItReads(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:x", "--size", "1")
	dir := filepath.Dir(s.file("x", "text"))
	s.withStore(func(store *moraine.Store) {
		a, at := &app{stderr: io.Discard, quiet: true}, address{repo: "lake", ref: "main"}
		c, err := objectsOf(store)
		require.NoError(t, err)
		v, err := catalog.Encode(catalog.Object{Size: 2})
		require.NoError(t, err)
		entries := func(yield func(graveler.Entry, error) bool) {
			if yield(graveler.Entry{Key: graveler.Key("x"), Value: &v}, nil) {
				require.NoError(t, c.SetVersioning(t.Context(), "lake", catalog.VersioningEnabled))
			}
		}
		_, err = a.importCommit(t.Context(), store, at, importFlags{allowDirty: true}, "x", entries)
		require.ErrorIs(t, err, catalog.InvalidBucketState)
		err = (&importing{app: a, store: store, dir: dir, at: at}).stage(t.Context(), importFlags{})
		require.ErrorIs(t, err, catalog.InvalidBucketState)
		o, err := c.Get(t.Context(), at.bucket(), "x", catalog.GetParams{})
		require.NoError(t, err)
		require.EqualValues(t, 1, o.Size)
	})
}

// A version goes from one entry to another when it becomes noncurrent or current again. What takes a part of the entries must not
// lose it between them.
func TestAPartOfABranchTakesTheVersionsOfItsObjectsAlong(t *testing.T) {
	scene := func(t *testing.T) *shell {
		s := newLake(t)
		s.ok("versioning", "enable", "lake")
		s.ok("put", "lake/main:a/x", "--size", "1")
		s.ok("put", "lake/main:a/x", "--size", "2")
		s.ok("commit", "lake/main", "-m", "base")
		return s
	}
	sizes := func(s *shell, ref string) (all []float64) {
		for _, v := range s.objects("ls", "lake/"+ref+":a/x", "--versions") {
			all = append(all, v["size"].(float64))
		}
		return all
	}
	newest := func(s *shell) string { return s.objects("ls", "lake/main:a/x", "--versions")[0]["version_id"].(string) }

	t.Run("commit", func(t *testing.T) {
		s := scene(t)
		s.ok("put", "lake/main:a/x", "--size", "3")
		s.ok("put", "lake/main:b", "--size", "1")
		s.ok("commit", "lake/main", "-m", "part", "--prefix", "a/")
		s.ok("branch", "reset", "lake/main", "--staged")
		require.Equal(t, []float64{3, 2, 1}, sizes(s, "main"))
		require.Empty(t, s.objects("ls", "lake/main:b"))
	})
	for name, part := range map[string][]string{"reset of a prefix": {"--prefix", "a/"}, "reset of a key": {"--key", "a/x"}} {
		t.Run(name, func(t *testing.T) {
			s := scene(t)
			s.ok("rm", "lake/main:a/x", "--version", newest(s))
			require.Equal(t, []float64{1}, sizes(s, "main"))
			s.ok("put", "lake/main:a/xy", "--size", "1")
			s.ok("put", "lake/main:b", "--size", "1")
			s.ok(append([]string{"branch", "reset", "lake/main", "--staged"}, part...)...)
			require.Equal(t, []float64{2, 1}, sizes(s, "main")[:2])
			require.Len(t, s.objects("ls", "lake/main:b"), 1)
			require.Equal(t, name == "reset of a key", len(s.objects("ls", "lake/main:a/")) == 2)
		})
	}
	t.Run("strategy for a prefix", func(t *testing.T) {
		s := scene(t)
		s.ok("branch", "create", "lake/other", "lake/main")
		for ref, size := range map[string]string{"main": "3", "other": "4"} {
			s.ok("put", "lake/"+ref+":a/x", "--size", size)
			s.ok("commit", "lake/"+ref, "-m", "both")
		}
		s.ok("merge", "lake/other", "lake/main", "--strategy-for", "a/=source-wins")
		require.Equal(t, []float64{4, 2, 1}, sizes(s, "main"))
	})
}

func TestAnEmptyValueOfAFlagIsNotItsAbsence(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:x", "--size", "1", "--tag", "a=b")
	for _, args := range [][]string{
		{"get", "lake/main:x"}, {"rm", "lake/main:x"}, {"cp", "lake/main:x", "lake/main:y"}, {"tagging", "get", "lake/main:x"}, {"tagging", "set", "lake/main:x", "c=d"}, {"tagging", "rm", "lake/main:x"},
		{"object-lock", "retain", "lake/main:x", "none"}, {"object-lock", "hold", "lake/main:x", "on"},
	} {
		require.Contains(t, s.fails(2, append(args, "--version", "")...), "--version", args)
	}
	require.Contains(t, s.fails(2, "put", "lake/main:x", "--file", ""), "--file")
	require.Equal(t, map[string]any{"tag": "a", "value": "b"}, s.objects("tagging", "get", "lake/main:x")[0])
	require.Len(t, s.objects("ls", "lake/main:"), 1)
}
