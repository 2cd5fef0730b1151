// SPDX-License-Identifier: Apache-2.0

package lakefs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

func TestANamespaceLeadsToItsFolder(t *testing.T) {
	var opened string
	note := func(_ context.Context, url string, o block.OpenOptions) (block.Storage, error) {
		require.True(t, o.ReadOnly)
		opened = url
		return mem.New(), nil
	}
	engines := block.Engines{"file": note, "s3": note}
	for _, c := range []struct{ base, namespace, url string }{
		{"file:/copy", "local://repo1", "file:/copy/repo1"},
		{"file:///copy/", "local://Repo/One/", "file:///copy/Repo/One"},
		{"file:copy?x=y", "s3://bucket/path", "file:copy/bucket/path?x=y"},
		{"file:/copy", "https://account.blob.core.windows.net/container/path", "file:/copy/account.blob.core.windows.net/container/path"},
		{"", "s3://bucket/path/Deep/", "s3://bucket?prefix=path%2FDeep%2F"},
		{"", "S3://bucket", "s3://bucket"},
		{"s3://other?region=eu", "s3://bucket/path", "s3://other?region=eu&prefix=bucket%2Fpath%2F"},
		{"s3://other/dir?prefix=a/&region=eu", "local://repo1", "s3://other?region=eu&prefix=a/dir%2Frepo1%2F"},
	} {
		files, err := lakefs.OpenFiles(t.Context(), c.base, c.namespace, engines)
		require.NoError(t, err, c.namespace)
		require.Equal(t, c.url, opened)
		require.NoError(t, files.Close())
	}
	opened = ""
	for _, c := range []struct{ base, namespace, says string }{
		{"", "local://repo1", "--from-blocks"},
		{"", "gs://bucket/path", "no driver for gs"},
		{"", "bucket/path", "is not scheme://path"},
		{"file:/copy", "local://", "is not scheme://path"},
		{"file:/copy", "local://../secret", "a part of its path"},
		{"file:/copy", "local://a/./b", "a part of its path"},
		{"file:/copy", "local://a//b", "a part of its path"},
		{"file:/copy", "local://a?b=c", "a part of its path"},
		{"file:/copy", "s3://bucket/a%20b", "percent sign"},
	} {
		_, err := lakefs.OpenFiles(t.Context(), c.base, c.namespace, engines)
		require.ErrorIs(t, err, lakefs.ErrNamespace, c.namespace)
		require.ErrorContains(t, err, c.says)
	}
	require.Empty(t, opened)
}

func TestFilesAreReadFromADirectoryAndNothingIsMadeThere(t *testing.T) {
	dir := t.TempDir()
	d := lakegen.Random(lakegen.Params{Seed: 3, Repositories: 2, Commits: 6})
	require.NoError(t, d.WriteFiles(t.Context(), dir))
	engines := block.Engines{"file": local.Open}
	for _, r := range d.Repositories {
		files, err := lakefs.OpenFiles(t.Context(), "file:"+dir, r.Namespace, engines)
		require.NoError(t, err)
		for _, c := range r.Commits {
			tree, _ := readTree(t, files, c.Metarange)
			require.Len(t, tree, len(c.Tree))
		}
		require.NoError(t, files.Close())
	}
	files, err := lakefs.OpenFiles(t.Context(), "file:"+dir, "local://not-there", engines)
	require.NoError(t, err)
	require.NoError(t, files.Close())
	require.NoDirExists(t, filepath.Join(dir, "not-there"))

	_, err = lakefs.OpenFiles(t.Context(), "file:"+dir+"/no-base", "local://repo", engines)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoDirExists(t, filepath.Join(dir, "no-base"))
}

func TestErrorsOfAnEngineComeWithTheNamespace(t *testing.T) {
	boom := errors.New("boom")
	engines := block.Engines{"s3": func(context.Context, string, block.OpenOptions) (block.Storage, error) { return nil, boom }}
	_, err := lakefs.OpenFiles(t.Context(), "s3://copy?secret=hunter2", "local://repo", engines)
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "local://repo")
	require.NotContains(t, err.Error(), "hunter2")
}
