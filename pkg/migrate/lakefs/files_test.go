// SPDX-License-Identifier: Apache-2.0

package lakefs_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// filesOf returns the files of a repository, and where they are.
func filesOf(t *testing.T, r *lakegen.Repository) (*lakefs.Files, *mem.Storage) {
	t.Helper()
	storage := mem.New()
	require.NoError(t, r.WriteFiles(t.Context(), storage))
	files := lakefs.NewFiles(storage, "s3://bucket/path")
	t.Cleanup(func() { require.NoError(t, files.Close()) })
	return files, storage
}

// readTree returns the entries of a tree, and that of its ranges.
func readTree(t *testing.T, files *lakefs.Files, metarange string) (tree lakegen.Tree, ranges []lakefs.Range) {
	t.Helper()
	ranges, err := files.Metarange(t.Context(), metarange)
	require.NoError(t, err)
	for _, r := range ranges {
		records, err := files.Range(t.Context(), r)
		require.NoError(t, err)
		tree = append(tree, records...)
	}
	return tree, ranges
}

func TestTreesReadAsTheyWereWritten(t *testing.T) {
	several := false
	for seed := range uint64(5) {
		for _, r := range lakegen.Random(lakegen.Params{Seed: seed, Repositories: 2, Commits: 12}).Repositories {
			files, _ := filesOf(t, r)
			for _, c := range r.Commits {
				tree, ranges := readTree(t, files, c.Metarange)
				require.Len(t, tree, len(c.Tree))
				for i := range tree {
					require.Equal(t, c.Tree[i], tree[i])
				}
				several = several || len(ranges) > 5
			}
		}
	}
	require.True(t, several, "some tree has many ranges")
}

func TestAMetarangeMayHaveNoRanges(t *testing.T) {
	id, data, err := lakegen.MetarangeFile(nil)
	require.NoError(t, err)
	files, _ := filesOf(t, &lakegen.Repository{Files: map[string][]byte{id: data}})
	ranges, err := files.Metarange(t.Context(), id)
	require.NoError(t, err)
	require.Empty(t, ranges)

	ranges, err = files.Metarange(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, ranges)
}

func TestFilesAreListedWithWhatIsBesideThem(t *testing.T) {
	r := lakegen.Random(lakegen.Params{Repositories: 1, Commits: 5}).Repositories[0]
	files, storage := filesOf(t, r)
	for _, name := range []string{"_lakefs/settings/protected_branches.json", "_lakefs/ab", "data/not-below"} {
		require.NoError(t, storage.Put(t.Context(), name, []byte("x")))
	}
	var ids, others []string
	for f, err := range files.List(t.Context()) {
		require.NoError(t, err)
		if f.ID != "" {
			ids = append(ids, f.ID)
			require.Equal(t, f.ID, f.Name)
		} else {
			others = append(others, f.Name)
		}
	}
	require.Equal(t, []string{"ab", "settings/protected_branches.json"}, others)
	require.Len(t, ids, len(r.Files))
	require.True(t, slices.IsSorted(ids))

	require.NoError(t, storage.Close())
	for _, err := range files.List(t.Context()) {
		require.ErrorIs(t, err, block.ErrClosed)
		require.ErrorContains(t, err, "s3://bucket/path")
	}
}

// small is a repository with one range, which it returns with the ID of the metarange.
func small(t *testing.T) (r *lakegen.Repository, metarange string, only lakefs.Range) {
	t.Helper()
	r = &lakegen.Repository{Files: map[string][]byte{}}
	w := lakegen.NewTreeWriter(1_000_000, func(id string, data []byte) error {
		r.Files[id] = data
		return nil
	})
	for i := range 3 {
		require.NoError(t, w.Add(lakefs.Record{Key: fmt.Appendf(nil, "key %d", i), Identity: []byte{1, byte(i)}, Data: bytes.Repeat([]byte("data"), i)}))
	}
	metarange, ranges, err := w.Finish()
	require.NoError(t, err)
	require.Len(t, ranges, 1)
	return r, metarange, ranges[0]
}

// Whatever happens to a file, what is read from it is what was written, or an error that names it.
func TestDamageIsNotRead(t *testing.T) {
	r, metarange, only := small(t)
	files, storage := filesOf(t, r)
	records, err := files.Range(t.Context(), only)
	require.NoError(t, err)

	harmless := 0
	check := func(id string, data []byte, what string) {
		require.NoError(t, storage.Delete(t.Context(), lakegen.FileName(id)))
		require.NoError(t, storage.Put(t.Context(), lakegen.FileName(id), data))
		var got, want any
		var err error
		if id == metarange {
			want = []lakefs.Range{only}
			got, err = files.Metarange(t.Context(), id)
		} else {
			want = records
			got, err = files.Range(t.Context(), only)
		}
		if err == nil {
			harmless++
			require.Equal(t, want, got, what)
			return
		}
		require.ErrorIs(t, err, lakefs.ErrDamaged, what)
		require.ErrorContains(t, err, "s3://bucket/path/_lakefs/"+id)
	}
	tried := 0
	for id, data := range r.Files {
		for i := range data {
			for _, bit := range []byte{1, 0x80} {
				altered := bytes.Clone(data)
				altered[i] ^= bit
				check(id, altered, fmt.Sprintf("bits %x of byte %d of %s", bit, i, id))
				tried++
			}
			check(id, data[:i], fmt.Sprintf("the first %d bytes of %s", i, id))
		}
		check(id, append(bytes.Clone(data), 0), "a byte more")
		check(id, data, "as it was")
	}
	require.Less(t, harmless, tried/4, "most changes are noticed")
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	r, metarange, only := small(t)
	delete(r.Files, only.ID)
	files, _ := filesOf(t, r)
	_, err := files.Metarange(t.Context(), metarange)
	require.NoError(t, err)
	_, err = files.Range(t.Context(), only)
	require.ErrorIs(t, err, lakefs.ErrMissing)
	require.ErrorIs(t, err, block.ErrNotFound)
	require.ErrorContains(t, err, "range s3://bucket/path/_lakefs/"+only.ID)

	none := strings.Repeat("0", 64)
	_, err = files.Metarange(t.Context(), none)
	require.ErrorIs(t, err, lakefs.ErrMissing)
	require.ErrorContains(t, err, "metarange s3://bucket/path/_lakefs/"+none)

	nowhere := lakefs.NewFiles(nil, "local://nothing")
	_, err = nowhere.Metarange(t.Context(), none)
	require.ErrorIs(t, err, lakefs.ErrMissing)
	for range nowhere.List(t.Context()) {
		require.Fail(t, "a file of no folder")
	}
	require.NoError(t, nowhere.Close())
}

func TestWhatIsNoIDIsNeverOpened(t *testing.T) {
	files := lakefs.NewFiles(mem.New(), "s3://bucket/path")
	for _, id := range []string{"../secret", "ab", strings.Repeat("A", 64), strings.Repeat("0", 65), strings.Repeat("0", 63) + "/"} {
		_, err := files.Metarange(t.Context(), id)
		require.ErrorIs(t, err, lakefs.ErrDamaged, id)
		_, err = files.Range(t.Context(), lakefs.Range{ID: id})
		require.ErrorIs(t, err, lakefs.ErrDamaged, id)
		require.NotErrorIs(t, err, block.ErrInvalidName)
	}
	_, err := files.Range(t.Context(), lakefs.Range{})
	require.ErrorIs(t, err, lakefs.ErrDamaged, "a range has an ID, other than a tree")
}

func TestAFileUnderTheIDOfAnotherIsDamaged(t *testing.T) {
	r, metarange, only := small(t)
	r.Files[only.ID], r.Files[metarange] = r.Files[metarange], r.Files[only.ID]
	files, _ := filesOf(t, r)
	_, err := files.Range(t.Context(), only)
	require.ErrorIs(t, err, lakefs.ErrDamaged)
	require.ErrorContains(t, err, `it is of type "metaranges"`)

	id, data, err := lakegen.RangeFile([]lakefs.Record{{Key: []byte("k"), Identity: []byte("i")}})
	require.NoError(t, err)
	r.Files[only.ID] = data
	files, _ = filesOf(t, r)
	_, err = files.Range(t.Context(), only)
	require.ErrorIs(t, err, lakefs.ErrDamaged)
	require.ErrorContains(t, err, "have the ID "+id)
}

func TestAMetarangeThatNamesARangeOfOtherBoundsIsDamaged(t *testing.T) {
	r, _, only := small(t)
	files, _ := filesOf(t, r)
	for _, other := range []lakefs.Range{
		{ID: only.ID, First: []byte("a"), Last: only.Last, Count: only.Count},
		{ID: only.ID, First: only.First, Last: []byte("z"), Count: only.Count},
		{ID: only.ID, First: only.First, Last: only.Last, Count: only.Count + 1},
	} {
		_, err := files.Range(t.Context(), other)
		require.ErrorIs(t, err, lakefs.ErrDamaged)
		require.ErrorContains(t, err, only.ID)
		require.ErrorContains(t, err, `3 records from "key 0" to "key 2"`)
		require.ErrorContains(t, err, fmt.Sprintf("%d from %q to %q", other.Count, other.First, other.Last))
	}
}

func TestAMetarangeThatContradictsItselfIsDamaged(t *testing.T) {
	id := strings.Repeat("ab", 32)
	data := func(m *lakefspb.RangeData) []byte {
		data, err := proto.Marshal(m)
		require.NoError(t, err)
		return data
	}
	good := data(&lakefspb.RangeData{First: []byte("b"), Last: []byte("d"), Count: 2})
	for name, records := range map[string][]lakefs.Record{
		"no ID":         {{Key: []byte("d"), Identity: []byte("0123"), Data: good}},
		"another last":  {{Key: []byte("c"), Identity: []byte(id), Data: good}},
		"no message":    {{Key: []byte("d"), Identity: []byte(id), Data: []byte{0xff}}},
		"unknown field": {{Key: []byte("d"), Identity: []byte(id), Data: append(bytes.Clone(good), 0x28, 1)}},
		"no records":    {{Key: []byte("d"), Identity: []byte(id), Data: data(&lakefspb.RangeData{First: []byte("b"), Last: []byte("d")})}},
		"backwards":     {{Key: []byte("d"), Identity: []byte(id), Data: data(&lakefspb.RangeData{First: []byte("e"), Last: []byte("d"), Count: 2})}},
		"overlap": {
			{Key: []byte("d"), Identity: []byte(id), Data: good},
			{Key: []byte("f"), Identity: []byte(id), Data: data(&lakefspb.RangeData{First: []byte("d"), Last: []byte("f"), Count: 2})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			metarange, file, err := lakegen.MetarangeFile(records)
			require.NoError(t, err)
			files, _ := filesOf(t, &lakegen.Repository{Files: map[string][]byte{metarange: file}})
			_, err = files.Metarange(t.Context(), metarange)
			require.ErrorIs(t, err, lakefs.ErrDamaged)
			require.ErrorContains(t, err, metarange)
		})
	}
}

func TestOtherErrorsOfTheStorageStayWhatTheyAre(t *testing.T) {
	r, metarange, _ := small(t)
	files, storage := filesOf(t, r)
	require.NoError(t, storage.Close())
	_, err := files.Metarange(t.Context(), metarange)
	require.ErrorIs(t, err, block.ErrClosed)
	require.False(t, errors.Is(err, lakefs.ErrDamaged) || errors.Is(err, lakefs.ErrMissing))
	require.ErrorContains(t, err, metarange)
}
