// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/cloud"
)

var (
	errMissing = errors.New("no such key")
	errRefused = errors.New("refused")
)

// fake is a driver with one object, "a", that behaves badly where it is told to.
type fake struct {
	driver.Bucket
	stored  []byte
	served  []byte // what reads deliver
	written []byte // by the last Put
	writes  int
	listed  [][]string // pages of names, of which those that end in a slash are directories
	deleted error
}

func (f *fake) Close() error            { return nil }
func (f *fake) ErrorAs(error, any) bool { return false }
func (f *fake) ErrorCode(err error) gcerrors.ErrorCode {
	if errors.Is(err, errMissing) {
		return gcerrors.NotFound
	}
	return gcerrors.Unknown
}

func (f *fake) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	if key != "a" || f.stored == nil {
		return nil, errMissing
	}
	sum := md5.Sum(f.stored)
	return &driver.Attributes{Size: int64(len(f.stored)), MD5: sum[:], ModTime: time.Unix(1, 0)}, nil
}

type fakeReader struct {
	io.Reader
	size int64
}

func (r fakeReader) Close() error { return nil }
func (r fakeReader) As(any) bool  { return false }
func (r fakeReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: r.size}
}

// NewRangeReader refuses ranges that begin beyond the end, as S3 does, with an error of its own.
func (f *fake) NewRangeReader(_ context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	size := int64(len(f.stored))
	if key != "a" || f.stored == nil {
		return nil, errMissing
	}
	if length == 0 || length > 0 && offset >= size {
		return nil, errRefused
	}
	served := f.served[min(offset, int64(len(f.served))):]
	if length > 0 {
		served = served[:min(length, int64(len(served)))]
	}
	return fakeReader{bytes.NewReader(served), size}, nil
}

type fakeWriter struct {
	f   *fake
	ctx context.Context
	buf []byte
}

func (f *fake) NewTypedWriter(ctx context.Context, _, _ string, _ *driver.WriterOptions) (driver.Writer, error) {
	return &fakeWriter{f: f, ctx: ctx}, nil
}

func (w *fakeWriter) Write(p []byte) (int, error) { w.buf = append(w.buf, p...); return len(p), nil }

func (w *fakeWriter) Close() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.f.written = w.buf
	w.f.writes++
	return nil
}

func (f *fake) ListPaged(_ context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	if o.Prefix != "" {
		return &driver.ListPage{}, nil
	}
	page := 0
	if len(o.PageToken) > 0 {
		page = int(o.PageToken[0])
	}
	if page == len(f.listed) {
		return nil, errRefused
	}
	var p driver.ListPage
	for _, name := range f.listed[page] {
		p.Objects = append(p.Objects, &driver.ListObject{Key: name, IsDir: name[len(name)-1] == '/'})
	}
	if page+1 < len(f.listed) || f.stored == nil {
		p.NextPageToken = []byte{byte(page + 1)}
	}
	return &p, nil
}

func (f *fake) Delete(context.Context, string, *driver.DeleteOptions) error { return f.deleted }

func open(t *testing.T, f *fake) block.Storage {
	s := cloud.New(blob.NewBucket(f))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestARangeThatTheStoreRefusesIsShort(t *testing.T) {
	s := open(t, &fake{stored: []byte("12345"), served: []byte("12345")})
	for _, r := range [][2]int64{{5, 1}, {9, 1}, {9, 0}, {1 << 62, 1 << 62}, {1<<63 - 1, 1<<63 - 1}} {
		_, err := s.GetRange(t.Context(), "a", r[0], r[1])
		require.ErrorIs(t, err, block.ErrShort, "%v", r)
	}
	data, err := s.GetRange(t.Context(), "a", 3, 2)
	require.NoError(t, err)
	require.Equal(t, "45", string(data))
}

func TestATransferThatBreaksOffIsAnError(t *testing.T) {
	s := open(t, &fake{stored: []byte("12345"), served: []byte("123")})
	_, err := s.Get(t.Context(), "a")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.ErrorContains(t, err, "get a: got 3 of 5 bytes")
	require.NotErrorIs(t, err, block.ErrShort)
	_, err = s.GetRange(t.Context(), "a", 2, 2)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestRefreshWritesNothingButWhatWasStored(t *testing.T) {
	for name, served := range map[string]string{"short": "123", "damaged": "12x45"} {
		f := &fake{stored: []byte("12345"), served: []byte(served)}
		require.Error(t, open(t, f).Refresh(t.Context(), "a"), name)
		require.Zero(t, f.writes, name)
	}
	f := &fake{stored: []byte("12345"), served: []byte("12345")}
	require.NoError(t, open(t, f).Refresh(t.Context(), "a"))
	require.Equal(t, "12345", string(f.written))
	require.ErrorIs(t, open(t, &fake{}).Refresh(t.Context(), "a"), block.ErrNotFound)
}

func TestPutWritesOnlyWhatIsNotThere(t *testing.T) {
	f := &fake{stored: []byte("12345")}
	s := open(t, f)
	require.NoError(t, s.Put(t.Context(), "a", []byte("12345")))
	require.Zero(t, f.writes)
	require.NoError(t, s.Put(t.Context(), "a", []byte("whole file")))
	require.Equal(t, "whole file", string(f.written))
	require.NoError(t, s.Put(t.Context(), "b", nil))
	require.Equal(t, 2, f.writes)
}

func TestListInsistsOnOrder(t *testing.T) {
	for name, pages := range map[string][][]string{
		"within a page": {{"b", "a"}},
		"between pages": {{"a", "b"}, {"b", "c"}},
	} {
		var last error
		for _, err := range open(t, &fake{stored: []byte{}, listed: pages}).List(t.Context(), "") {
			last = err
		}
		require.ErrorContains(t, last, "list : the object store lists", name)
	}
}

func TestListShowsNoForeignObjects(t *testing.T) {
	s := open(t, &fake{stored: []byte{}, listed: [][]string{{"/", "A", "B/", "a", "a b", "c"}}})
	var names []string
	for info, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		names = append(names, info.Name)
	}
	require.Equal(t, []string{"a", "c"}, names)
}

func TestAPageThatFailsIsTheLastThingListed(t *testing.T) {
	var names []string
	var last error
	for info, err := range open(t, &fake{listed: [][]string{{"a", "b"}}}).List(t.Context(), "") {
		if last = err; err == nil {
			names = append(names, info.Name)
		}
	}
	require.Equal(t, []string{"a", "b"}, names)
	require.ErrorIs(t, last, errRefused)
}

func TestADeleteThatFailedIsNilOnlyIfNothingIsThere(t *testing.T) {
	require.ErrorIs(t, open(t, &fake{stored: []byte{}, deleted: errRefused}).Delete(t.Context(), "a"), errRefused)
	require.NoError(t, open(t, &fake{deleted: errRefused}).Delete(t.Context(), "a"))
	require.NoError(t, open(t, &fake{deleted: errMissing}).Delete(t.Context(), "a"))
}

func TestOpenNamesTheBucketWithoutSecrets(t *testing.T) {
	dir := t.TempDir()
	for _, url := range []string{
		"file://user:secret@host" + dir, fileURL(dir+"/missing") + "&x=secret", fileURL(dir+"/missing") + "&secret_key_path=secret",
		"nowhere://bucket?key=secret", "file://%secret", "://secret",
	} {
		_, err := cloud.Open(t.Context(), url, block.OpenOptions{})
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "=secret", url)
		require.NotContains(t, err.Error(), ":secret", url)
		require.NotContains(t, err.Error(), "%secret", url)
	}
	_, err := cloud.Open(t.Context(), "nowhere://bucket/dir", block.OpenOptions{})
	require.ErrorContains(t, err, "nowhere://bucket/dir")
	_, err = cloud.Open(t.Context(), "file://user:secret@host"+dir, block.OpenOptions{})
	require.ErrorIs(t, err, block.ErrInvalidURL)
}

func TestAPrefixIsANamespaceOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	whole, err := cloud.Open(t.Context(), fileURL(dir), block.OpenOptions{})
	require.NoError(t, err)
	part, err := cloud.Open(t.Context(), fileURL(dir)+"&prefix=part/", block.OpenOptions{})
	require.NoError(t, err)
	require.NoError(t, part.Put(t.Context(), "a/b", []byte("x")))
	_, err = whole.Stat(t.Context(), "part/a/b")
	require.NoError(t, err)
	for info, err := range part.List(t.Context(), "") {
		require.NoError(t, err)
		require.Equal(t, "a/b", info.Name)
	}
	require.NoError(t, part.Close())
	require.NoError(t, whole.Close())
}
