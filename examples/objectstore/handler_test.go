// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/md5"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
)

func TestAnObjectIsPutReadAndDeleted(t *testing.T) {
	f := newBucket(t)
	etag := fmt.Sprintf(`"%x"`, md5.Sum([]byte("hello")))
	put := f.put("a/b", "hello", "Content-Type", "text/plain", "X-Amz-Meta-Color", "blue")
	require.Equal(t, etag, put.header.Get("ETag"))
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		got := f.do(method, object("a/b"), "").is(http.StatusOK)
		require.Equal(t, etag, got.header.Get("ETag"))
		require.Equal(t, "text/plain", got.header.Get("Content-Type"))
		require.Equal(t, "blue", got.header.Get("X-Amz-Meta-Color"))
		require.Equal(t, "5", got.header.Get("Content-Length"))
		require.Equal(t, method == http.MethodGet, got.body == "hello")
	}
	f.put("a/b", "")
	require.Equal(t, "", f.do(http.MethodGet, object("a/b"), "").is(http.StatusOK).body)
	for range 2 {
		f.do(http.MethodDelete, object("a/b"), "").is(http.StatusNoContent)
	}
	f.do(http.MethodGet, object("a/b"), "").fails(catalog.NoSuchKey)
	f.do(http.MethodHead, object("a/b"), "").is(http.StatusNotFound)
}

func TestBucketsAreMadeOnceAndFound(t *testing.T) {
	f := newBucket(t)
	f.do(http.MethodPut, "/"+bucket, "").fails(catalog.BucketAlreadyExists)
	f.do(http.MethodPut, "/Photos", "").fails(catalog.InvalidBucketName)
	f.do(http.MethodHead, "/"+bucket, "").is(http.StatusOK)
	f.do(http.MethodHead, "/letters", "").is(http.StatusNotFound)
	f.do(http.MethodGet, "/letters?list-type=2", "").fails(catalog.NoSuchBucket)
	f.do(http.MethodPut, "/letters/a", "x").fails(catalog.NoSuchBucket)
	require.Empty(t, f.addresses(), "nothing is written for a bucket that is not there")
}

func TestConditionsHoldOrNothingHappens(t *testing.T) {
	f := newBucket(t)
	etag := f.put("k", "one", "If-None-Match", "*").header.Get("ETag")
	f.do(http.MethodPut, object("k"), "two", "If-None-Match", "*").fails(catalog.PreconditionFailed)
	f.do(http.MethodPut, object("k"), "two", "If-Match", `"0"`).fails(catalog.PreconditionFailed)
	f.do(http.MethodPut, object("other"), "two", "If-Match", etag).fails(catalog.NoSuchKey)
	f.do(http.MethodGet, object("k"), "", "If-Match", `"0"`).fails(catalog.PreconditionFailed)
	f.do(http.MethodGet, object("k"), "", "If-Modified-Since", "yesterday").fails(catalog.InvalidArgument)
	f.do(http.MethodDelete, object("k"), "", "If-Match", `"0"`).fails(catalog.PreconditionFailed)
	require.Equal(t, "one", f.do(http.MethodGet, object("k"), "", "If-Match", etag).is(http.StatusOK).body)
	unchanged := f.do(http.MethodGet, object("k"), "", "If-None-Match", etag).is(http.StatusNotModified)
	require.Equal(t, etag, unchanged.header.Get("ETag"))
	later := time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)
	f.do(http.MethodGet, object("k"), "", "If-Modified-Since", later).is(http.StatusNotModified)
	f.put("k", "two", "If-Match", etag)
	f.do(http.MethodDelete, object("k"), "", "If-Match", "*").is(http.StatusNoContent)
}

func TestRanges(t *testing.T) {
	f := newBucket(t)
	etag := f.put("k", "0123456789").header.Get("ETag")
	part := f.do(http.MethodGet, object("k"), "", "Range", "bytes=2-4").is(http.StatusPartialContent)
	require.Equal(t, "234", part.body)
	require.Equal(t, "bytes 2-4/10", part.header.Get("Content-Range"))
	require.Equal(t, "89", f.do(http.MethodGet, object("k"), "", "Range", "bytes=-2", "If-Match", etag, "If-Range", etag).is(http.StatusPartialContent).body)
	f.do(http.MethodGet, object("k"), "", "Range", "bytes=2-4", "If-Range", `"0"`).is(http.StatusOK)
	f.do(http.MethodGet, object("k"), "", "Range", "bytes=10-").is(http.StatusRequestedRangeNotSatisfiable)
}

func TestListingsComeInPagesWithCommonPrefixes(t *testing.T) {
	f := newBucket(t)
	for _, key := range []string{"a", "b/1", "b/2", "b/3", "c d", "d\x01", "e/1"} {
		f.put(key, key)
	}
	f.commit()
	f.put("b/4", "new")
	var found []string
	query := url.Values{"list-type": {"2"}, "delimiter": {"/"}, "max-keys": {"2"}, "encoding-type": {"url"}}
	for pages := 1; ; pages++ {
		var page listResult
		f.do(http.MethodGet, "/"+bucket+"?"+query.Encode(), "").is(http.StatusOK).xml(&page)
		require.Equal(t, page.KeyCount, len(page.Contents)+len(page.CommonPrefixes))
		require.LessOrEqual(t, page.KeyCount, 2)
		for _, o := range page.Contents {
			key, err := url.PathUnescape(o.Key)
			require.NoError(t, err)
			require.EqualValues(t, len(key), o.Size)
			found = append(found, key)
		}
		for _, p := range page.CommonPrefixes {
			found = append(found, p.Prefix)
		}
		if !page.IsTruncated {
			require.Equal(t, 3, pages)
			break
		}
		query.Set("continuation-token", page.NextContinuationToken)
	}
	require.ElementsMatch(t, []string{"a", "b/", "c d", "d\x01", "e/"}, found)

	var page listResult
	f.do(http.MethodGet, "/"+bucket+"?prefix=b/&start-after=b/2", "").is(http.StatusOK).xml(&page)
	require.Len(t, page.Contents, 2)
	f.do(http.MethodGet, "/"+bucket+"?max-keys=many", "").fails(catalog.InvalidArgument)
	f.do(http.MethodGet, "/"+bucket+"?continuation-token=x", "").fails(catalog.InvalidArgument)
	f.do(http.MethodGet, "/"+bucket+"?acl", "").fails(catalog.NotImplemented)
}

func TestOddKeysAreKeptByteForByte(t *testing.T) {
	f := newBucket(t)
	keys := []string{"/", "//", "a//b", "..", "a/../b", "./a", "%2F", "a b+c", "?versionId=1", "#", "ä/日本", "\x01\x02", "a\x00b", "\xff\xfe", "<&>", strings.Repeat("k", catalog.MaxKeyBytes)}
	for _, key := range keys {
		f.put(key, "of "+key)
	}
	for _, key := range keys {
		require.Equal(t, "of "+key, f.do(http.MethodGet, object(key), "").is(http.StatusOK).body, "%q", key)
	}
	f.do(http.MethodPut, object(strings.Repeat("k", catalog.MaxKeyBytes+1)), "x").fails(catalog.KeyTooLongError)
	f.do(http.MethodPut, object("\x00v"), "x").fails(catalog.InvalidArgument)
}

func TestVersionsAreKeptReadAndRemoved(t *testing.T) {
	f := newBucket(t)
	f.put("k", "before")
	f.do(http.MethodPut, "/"+bucket+"?versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>").is(http.StatusOK)
	f.do(http.MethodPut, "/"+bucket+"?versioning", "<VersioningConfiguration").fails(catalog.MalformedXML)
	one := f.put("k", "one").header.Get("X-Amz-Version-Id")
	two := f.put("k", "two").header.Get("X-Amz-Version-Id")
	f.commit()
	deleted := f.do(http.MethodDelete, object("k"), "").is(http.StatusNoContent)
	require.Equal(t, "true", deleted.header.Get("X-Amz-Delete-Marker"))
	marker := deleted.header.Get("X-Amz-Version-Id")

	gone := f.do(http.MethodGet, object("k"), "")
	gone.fails(catalog.NoSuchKey)
	require.Equal(t, "true", gone.header.Get("X-Amz-Delete-Marker"))
	f.do(http.MethodGet, object("k")+"?versionId="+marker, "").fails(catalog.MethodNotAllowed)
	for id, content := range map[string]string{"null": "before", one: "one", two: "two"} {
		require.Equal(t, content, f.do(http.MethodGet, object("k")+"?versionId="+id, "").is(http.StatusOK).body)
	}
	f.do(http.MethodGet, object("k")+"?versionId=", "").fails(catalog.InvalidArgument)
	f.do(http.MethodDelete, object("k")+"?versionId=", "").fails(catalog.InvalidArgument)

	var found struct {
		IsTruncated                        bool
		NextKeyMarker, NextVersionIdMarker string
		Version, DeleteMarker              []listedVersion
	}
	f.do(http.MethodGet, "/"+bucket+"?versions&max-keys=2", "").is(http.StatusOK).xml(&found)
	require.True(t, found.IsTruncated)
	f.do(http.MethodGet, "/"+bucket+"?versions&key-marker="+found.NextKeyMarker+"&version-id-marker="+found.NextVersionIdMarker, "").is(http.StatusOK).xml(&found)
	require.Len(t, found.DeleteMarker, 1)
	require.Len(t, found.Version, 3, "of both pages")
	require.True(t, found.DeleteMarker[0].IsLatest)

	f.do(http.MethodDelete, object("k")+"?versionId="+marker, "").is(http.StatusNoContent)
	require.Equal(t, "two", f.do(http.MethodGet, object("k"), "").is(http.StatusOK).body)
	f.do(http.MethodDelete, object("k")+"?versionId="+two, "").is(http.StatusNoContent)
	f.do(http.MethodGet, object("k")+"?versionId="+two, "").fails(catalog.NoSuchVersion)
	require.Equal(t, "one", f.do(http.MethodGet, object("k"), "").is(http.StatusOK).body)
}

func TestWhatIsNotServedChangesNothing(t *testing.T) {
	f := newBucket(t)
	f.put("k", "one")
	for _, query := range []string{"?tagging", "?acl", "?uploads", "?partNumber=1&uploadId=2", "?versionId=null&retention"} {
		for _, method := range []string{http.MethodPut, http.MethodGet, http.MethodDelete, http.MethodPost} {
			f.do(method, object("k")+query, "two").fails(catalog.NotImplemented)
		}
	}
	f.do(http.MethodPost, object("k"), "two").fails(catalog.MethodNotAllowed)
	f.do(http.MethodPut, object("k")+"?versionId=null", "two").fails(catalog.MethodNotAllowed)
	for _, header := range []string{"X-Amz-Copy-Source", "X-Amz-Object-Lock-Mode", "X-Amz-Tagging", "Content-MD5"} {
		f.do(http.MethodPut, object("k"), "two", header, "x").fails(catalog.NotImplemented)
	}
	f.do(http.MethodPut, object("k"), "two", "X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD").fails(catalog.NotImplemented)
	f.do(http.MethodPut, object("k"), "two", "X-Amz-Meta-Long", strings.Repeat("x", catalog.MaxUserMetadataBytes)).fails(catalog.MetadataTooLarge)
	require.Equal(t, "one", f.do(http.MethodGet, object("k")+"?x-id=GetObject", "").is(http.StatusOK).body)
}

// An upload that breaks off leaves neither an entry nor bytes.
func TestABrokenUploadLeavesNothing(t *testing.T) {
	f := newBucket(t)
	body, half := io.Pipe()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, f.url+object("k"), body)
	require.NoError(t, err)
	r.ContentLength = 10
	done := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(r)
		done <- err
	}()
	_, err = half.Write([]byte("01234"))
	require.NoError(t, err)
	require.NoError(t, half.CloseWithError(io.ErrClosedPipe))
	require.Error(t, <-done)
	f.do(http.MethodGet, object("k"), "").fails(catalog.NoSuchKey)
	require.Eventually(t, func() bool { return len(f.addresses()) == 0 }, 10*time.Second, time.Millisecond)
}

// Bytes that are not those which the entry speaks of are an error, not an answer.
func TestDamagedBytesAreNotServed(t *testing.T) {
	f := newBucket(t)
	f.put("short", "0123456789")
	f.put("gone", "0123456789")
	require.NoError(t, f.bytes.root.WriteFile(f.address("short"), []byte("01234"), 0o600))
	require.NoError(t, f.bytes.remove(f.address("gone")))
	f.do(http.MethodGet, object("short"), "").fails(catalog.InternalError)
	f.do(http.MethodGet, object("gone"), "").fails(catalog.InternalError)
}
