// SPDX-License-Identifier: Apache-2.0

package lakefs_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// No file makes the reader panic, or is read under an ID that is not its own.
func FuzzFile(f *testing.F) {
	for _, r := range lakegen.Random(lakegen.Params{Repositories: 1, Commits: 2}).Repositories {
		for _, data := range r.Files {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		id := strings.Repeat("0", 64)
		storage := mem.New()
		require.NoError(t, storage.Put(t.Context(), lakegen.FileName(id), data))
		files := lakefs.NewFiles(storage, "s3://bucket/path")
		_, err := files.Metarange(t.Context(), id)
		require.ErrorIs(t, err, lakefs.ErrDamaged)
		_, err = files.Range(t.Context(), lakefs.Range{ID: id})
		require.ErrorIs(t, err, lakefs.ErrDamaged)
	})
}

// What is taken for an entry is one that the catalog can read.
func FuzzValue(f *testing.F) {
	for _, r := range lakegen.Random(lakegen.Params{Repositories: 1, Commits: 2}).Repositories {
		for _, c := range r.Commits {
			for _, record := range c.Tree {
				f.Add(record.Identity, record.Data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, identity, data []byte) {
		v, err := lakefs.Value(lakefs.Record{Key: []byte("k"), Identity: identity, Data: data}, "s3://bucket/path")
		if err != nil {
			return
		}
		require.NoError(t, graveler.ValidateValue(&v))
		require.Equal(t, identity, v.Identity)
		object, err := catalog.Decode(v)
		require.NoError(t, err)
		again, err := catalog.Encode(object)
		require.NoError(t, err)
		require.Equal(t, v.Data, again.Data)
	})
}
