// SPDX-License-Identifier: Apache-2.0

package fileimport

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// recorder is an import that remembers what happened.
type recorder struct {
	Import
	entries  []graveler.Entry
	batches  int
	files    int
	bytes    int64
	skipped  []string
	failed   []string
	progress atomic.Int64
}

func newRecorder(dir string) *recorder {
	r := &recorder{}
	r.Import = Import{
		Dir: dir,
		Stage: func(_ context.Context, entries []graveler.Entry) error {
			r.entries = append(r.entries, entries...)
			r.batches++
			return nil
		},
		Counted: func(files int, bytes int64) { r.files, r.bytes = files, bytes },
		Skipped: func(path, what string) { r.skipped = append(r.skipped, filepath.Base(path)+": "+what) },
		Failed: func(path string, problem error) {
			r.failed = append(r.failed, filepath.Base(path)+": "+problem.Error())
		},
		Progress: func(n int) { r.progress.Add(int64(n)) },
	}
	return r
}

func (r *recorder) keys() (keys []string) {
	for _, e := range r.entries {
		keys = append(keys, string(e.Key))
	}
	return keys
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func TestFilesBecomeEntriesInKeyOrder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a/x", "a.txt", "a-b", "a0", "b/c/d", "\xff", "new\nline"} {
		write(t, filepath.Join(dir, name), name)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o700))
	r := newRecorder(dir)
	r.Prefix = "p/"
	report, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"p/a-b", "p/a.txt", "p/a/x", "p/a0", "p/b/c/d", "p/new\nline", "p/\xff"}, r.keys())
	require.Equal(t, Report{Files: 7, Bytes: 27}, report)
	require.Equal(t, []int64{7, 27, 27}, []int64{int64(r.files), r.bytes, r.progress.Load()})

	o, err := catalog.Decode(*r.entries[1].Value)
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(dir, "a.txt"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("a.txt"))), o.Checksum)
	require.Equal(t, "file://"+dir+"/a.txt", o.PhysicalAddress)
	require.True(t, info.ModTime().Equal(o.ModifiedAt))
}

func TestKeysAscendWhateverFilesAreCalled(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		names := rapid.SliceOfN(rapid.StringMatching(`[ab.0/-]{1,6}`), 1, 12).Draw(rt, "names")
		for _, name := range names {
			path := filepath.Join(dir, name)
			// What is a directory already, or lies below a file, is not made.
			if os.MkdirAll(filepath.Dir(path), 0o700) == nil {
				_ = os.WriteFile(path, nil, 0o600)
			}
		}
		r := newRecorder(dir)
		_, err := r.Run(t.Context())
		require.NoError(rt, err)
		require.True(rt, slices.IsSorted(r.keys()), "%q", r.keys())
	})
}

func TestBatchesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for i := range 2*batchEntries + 1 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "")
	}
	r := newRecorder(dir)
	report, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, 2*batchEntries+1, report.Files)
	require.Equal(t, 3, r.batches)
	require.True(t, slices.IsSorted(r.keys()))
}

func TestWhatBelongsToTheStoreIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "store/meta.db"), "x")
	write(t, filepath.Join(dir, "store/blocks/f"), "x")
	write(t, filepath.Join(dir, "a"), "x")
	r := newRecorder(dir)
	r.Skip = []string{filepath.Join(dir, "store/meta.db"), filepath.Join(dir, "store/../store/blocks"), filepath.Join(dir, "none")}
	report, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, r.keys())
	require.Equal(t, []string{"blocks: " + Own, "meta.db: " + Own}, r.skipped)
	require.Equal(t, Report{Files: 1, Bytes: 1}, report)
}

func TestTheDirectoryMayBeNamedByALink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "real/a"), "x")
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("real", link))
	r := newRecorder(link)
	_, err := r.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"a"}, r.keys())
	_, err = newRecorder(filepath.Join(dir, "real/a")).Run(t.Context())
	require.ErrorContains(t, err, "not a directory")
	_, err = newRecorder(filepath.Join(dir, "none")).Run(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestKeysThatAreTooLongAreRefusedBeforeAnythingIsStaged(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	write(t, filepath.Join(dir, "long"), "x")
	r := newRecorder(dir)
	r.Prefix = strings.Repeat("p", graveler.MaxKeyBytes-1)
	report, err := r.Run(t.Context())
	require.ErrorIs(t, err, graveler.ErrTooLarge)
	require.Empty(t, r.entries)
	require.Len(t, r.failed, 1)
	require.Zero(t, report)
}

func TestAFileThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	write(t, path, "before")
	r := newRecorder(dir)
	r.Progress = func(int) { write(t, path, "afterwards") }
	_, err := r.Run(t.Context())
	require.NoError(t, err)
	o, err := catalog.Decode(*r.entries[0].Value)
	require.NoError(t, err)
	require.Equal(t, int64(len("afterwards")), o.Size)
}

func TestAChangeThatKeepsTheSizeIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	write(t, path, "x")
	info, err := os.Lstat(path)
	require.NoError(t, err)
	_, err = hashFile(t.Context(), path, info, newBuffer(), func(int) { require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0))) })
	require.ErrorIs(t, err, errChanging)
}

func TestALinkThatTakesThePlaceOfAFileIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c"} {
		write(t, filepath.Join(dir, name), "x")
	}
	info, err := os.Lstat(filepath.Join(dir, "a"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(dir, "a")))
	require.NoError(t, os.Symlink("b", filepath.Join(dir, "a")))
	_, err = open(filepath.Join(dir, "a"), info)
	require.ErrorIs(t, err, errReplaced)
}

func TestWhatCannotBecomeAnEntryFailsTheImportAfterTheRest(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	write(t, filepath.Join(dir, "z"), "x")
	r := newRecorder(dir)
	r.Prefix = strings.Repeat("p", graveler.MaxKeyBytes-1)
	r.Counted = func(int, int64) { write(t, filepath.Join(dir, "late"), "x") } // too late for the first walk
	report, err := r.Run(t.Context())
	require.ErrorIs(t, err, ErrIncomplete)
	require.Equal(t, Report{Files: 2, Bytes: 2, Failed: 1}, report)
	require.Len(t, r.failed, 1)
	require.Contains(t, r.failed[0], "late: ")
}

func TestAnImportThatIsCutOffSaysWhatItStaged(t *testing.T) {
	dir := t.TempDir()
	for i := range 2 * batchEntries {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "")
	}
	stop := errors.New("stop")
	for name, end := range map[string]func(cancel func()) error{
		"by an error":      func(func()) error { return stop },
		"by cancelling it": func(cancel func()) error { cancel(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r := newRecorder(dir)
			staged := 0
			r.Stage = func(_ context.Context, entries []graveler.Entry) error {
				if staged += len(entries); staged > batchEntries {
					return end(cancel)
				}
				return nil
			}
			report, err := r.Run(ctx)
			if name == "by an error" {
				require.ErrorIs(t, err, stop)
				require.Equal(t, batchEntries, report.Files)
			} else {
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, 2*batchEntries, report.Files)
			}
			require.Zero(t, report.Failed, r.failed)
		})
	}
}
