// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

func TestABucketIsDeletedOnlyWhereNoBranchShowsAnything(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	require.ErrorIs(t, f.CreateBucket(ctx, "Bad_Name", CreateBucketParams{}), InvalidBucketName)
	require.Equal(t, BucketAlreadyExists, CodeOf(f.CreateBucket(ctx, f.name, CreateBucketParams{})))

	f.enable(t, VersioningEnabled)
	version := f.put(t, "k", "1").VersionID
	_, err := f.Graveler.Commit(ctx, f.name, "main", graveler.CommitParams{})
	require.NoError(t, err)
	_, err = f.CreateBranch(ctx, f.name, "other", "main")
	require.NoError(t, err)
	other := Bucket{f.name, "other"}
	_, err = f.Catalog.Delete(ctx, f.bucket(), "k", DeleteParams{VersionID: version})
	require.NoError(t, err)
	require.ErrorIs(t, f.DeleteBucket(ctx, f.name), BucketNotEmpty)
	marker, err := f.Catalog.Delete(ctx, other, "k", DeleteParams{})
	require.NoError(t, err)
	_, err = f.Catalog.Delete(ctx, other, "k", DeleteParams{VersionID: version})
	require.NoError(t, err)
	require.ErrorIs(t, f.DeleteBucket(ctx, f.name), BucketNotEmpty, "a marker is something")
	_, err = f.Catalog.Put(ctx, other, "k2", Object{}, Conditions{})
	require.NoError(t, err, "it is not read-only")
	for _, key := range []string{"k", "k2"} {
		for _, id := range []string{marker.DeleteMarkerVersionID, version} {
			_, err = f.Catalog.Delete(ctx, other, key, DeleteParams{VersionID: id})
			require.NoError(t, err)
		}
	}
	o, err := f.Catalog.Get(ctx, other, "k2", GetParams{})
	require.NoError(t, err)
	_, err = f.Catalog.Delete(ctx, other, "k2", DeleteParams{VersionID: o.VersionID})
	require.NoError(t, err)

	require.NoError(t, f.DeleteBucket(ctx, f.name))
	_, err = f.HeadBucket(ctx, f.name)
	require.ErrorIs(t, err, NoSuchBucket)
	_, err = f.Catalog.Put(ctx, f.bucket(), "k", Object{}, Conditions{})
	require.Equal(t, NoSuchBucket, CodeOf(err))
}

// The default branch of a bucket is remembered; one of the same name that was made anew may have another.
func TestAChangeGoesToTheDefaultBranchThatThereIs(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, err := f.both[0].Put(ctx, f.bucket(), "k", Object{}, Conditions{})
	require.NoError(t, err)
	require.NoError(t, f.DeleteRepository(ctx, f.name))
	require.NoError(t, f.both[1].CreateBucket(ctx, f.name, CreateBucketParams{CreateRepositoryParams: graveler.CreateRepositoryParams{DefaultBranch: "trunk"}}))
	_, err = f.CreateBranch(ctx, f.name, "main", "trunk")
	require.NoError(t, err)
	_, err = f.both[0].Put(ctx, f.bucket(), "k", Object{PhysicalAddress: "new"}, Conditions{})
	require.NoError(t, err)
	o, err := f.both[1].Get(ctx, Bucket{f.name, "trunk"}, "k", GetParams{})
	require.NoError(t, err)
	require.Equal(t, "new", o.PhysicalAddress)
}

func TestSettingsOfABucket(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	require.ErrorIs(t, f.SetVersioning(ctx, f.name, VersioningOff), MalformedXML)
	require.ErrorIs(t, f.SetVersioning(ctx, f.name, "enabled"), MalformedXML)
	_, err := f.ObjectLock(ctx, f.name)
	require.ErrorIs(t, err, ObjectLockConfigurationNotFoundError)
	require.ErrorIs(t, f.SetObjectLock(ctx, f.name, ObjectLockConfig{Enabled: true}), InvalidBucketState)
	f.enable(t, VersioningEnabled)
	for _, c := range []struct {
		config ObjectLockConfig
		want   Code
	}{
		{ObjectLockConfig{}, MalformedXML},
		{ObjectLockConfig{Enabled: true, Mode: LockGovernance}, MalformedXML},
		{ObjectLockConfig{Enabled: true, Days: 1}, MalformedXML},
		{ObjectLockConfig{Enabled: true, Mode: LockGovernance, Days: 1, Years: 1}, MalformedXML},
		{ObjectLockConfig{Enabled: true, Mode: LockGovernance, Days: -1}, InvalidArgument},
		{ObjectLockConfig{Enabled: true, Mode: LockCompliance, Years: 101}, InvalidArgument},
	} {
		require.ErrorIs(t, f.SetObjectLock(ctx, f.name, c.config), c.want)
	}
	config := ObjectLockConfig{Enabled: true, Mode: LockCompliance, Days: 2}
	require.NoError(t, f.SetObjectLock(ctx, f.name, config))
	got, err := f.both[1].ObjectLock(ctx, f.name)
	require.NoError(t, err)
	require.Equal(t, config, got)
	require.ErrorIs(t, f.SetVersioning(ctx, f.name, VersioningSuspended), InvalidBucketState)

	o := f.put(t, "k", "1")
	require.Equal(t, Lock{Mode: LockCompliance, RetainUntil: f.now().Add(48 * time.Hour)}, o.Lock)
	_, err = f.Catalog.Delete(ctx, f.bucket(), "k", DeleteParams{VersionID: o.VersionID, BypassGovernance: true})
	require.ErrorIs(t, err, AccessDenied)
	f.clock.Add(int64(48 * time.Hour))
	_, err = f.Catalog.Delete(ctx, f.bucket(), "k", DeleteParams{VersionID: o.VersionID})
	require.NoError(t, err)
}

func TestBadInputIsRefusedWithTheCodeOfS3(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	tags := map[string]string{}
	for i := range MaxTags + 1 {
		tags[fmt.Sprint(i)] = ""
	}
	now := f.now()
	for name, c := range map[string]struct {
		key        string
		object     Object
		conditions Conditions
		want       Code
	}{
		"no key":              {"", Object{}, Conditions{}, InvalidArgument},
		"reserved key":        {"\x00k", Object{}, Conditions{}, InvalidArgument},
		"long key":            {strings.Repeat("k", 1025), Object{}, Conditions{}, KeyTooLongError},
		"many tags":           {"k", Object{Tags: tags}, Conditions{}, InvalidTag},
		"long tag key":        {"k", Object{Tags: map[string]string{strings.Repeat("ä", 129): ""}}, Conditions{}, InvalidTag},
		"long tag value":      {"k", Object{Tags: map[string]string{"a": strings.Repeat("ä", 257)}}, Conditions{}, InvalidTag},
		"character in a tag":  {"k", Object{Tags: map[string]string{"a": "<"}}, Conditions{}, InvalidTag},
		"system tag":          {"k", Object{Tags: map[string]string{"aws:a": ""}}, Conditions{}, InvalidTag},
		"much metadata":       {"k", Object{Metadata: map[string]string{"a": strings.Repeat("b", 2048)}}, Conditions{}, MetadataTooLarge},
		"future":              {"k", Object{ModifiedAt: now.Add(time.Hour)}, Conditions{}, InvalidArgument},
		"negative size":       {"k", Object{Size: -1}, Conditions{}, InvalidArgument},
		"lock without bucket": {"k", Object{Lock: Lock{LegalHold: true}}, Conditions{}, InvalidRequest},
		"lock of the past":    {"k", Object{Lock: Lock{Mode: LockGovernance, RetainUntil: now}}, Conditions{}, InvalidArgument},
		"If-None-Match":       {"k", Object{}, Conditions{IfNoneMatch: "x"}, NotImplemented},
		"both":                {"k", Object{}, Conditions{IfNoneMatch: "*", IfMatch: "*"}, NotImplemented},
		"dates":               {"k", Object{}, Conditions{IfUnmodifiedSince: now}, NotImplemented},
	} {
		_, err := f.Put(ctx, f.bucket(), c.key, c.object, c.conditions)
		require.Equal(t, c.want, CodeOf(err), name)
	}
	shown, err := f.show("main", true)
	require.NoError(t, err)
	require.Empty(t, shown)

	f.put(t, strings.Repeat("k", 1024), "1")
	most := map[string]string{strings.Repeat("ä", 128): strings.Repeat("ä", 256)}
	require.NoError(t, f.PutTagging(ctx, f.bucket(), strings.Repeat("k", 1024), "", most))
	got, err := f.Tagging(ctx, f.bucket(), strings.Repeat("k", 1024), "")
	require.NoError(t, err)
	require.Equal(t, most, got)
	_, err = f.DeleteMany(ctx, f.bucket(), make([]ObjectID, 1001), false)
	require.ErrorIs(t, err, MalformedXML)
}

func TestConditionsOfAReadAreJudgedInTheOrderOfHTTP(t *testing.T) {
	f := newFixture(t)
	o := f.put(t, "k", "etag")
	f.clock.Add(int64(time.Hour))
	before, after := o.ModifiedAt.Add(-time.Hour), o.ModifiedAt.Add(time.Hour)
	for i, c := range []struct {
		conditions Conditions
		want       Code
	}{
		{Conditions{}, ""},
		{Conditions{IfMatch: `"etag"`}, ""},
		{Conditions{IfMatch: `"x", "etag"`}, ""},
		{Conditions{IfMatch: "x"}, PreconditionFailed},
		{Conditions{IfNoneMatch: "etag"}, NotModified},
		{Conditions{IfNoneMatch: "*"}, NotModified},
		{Conditions{IfNoneMatch: "x"}, ""},
		{Conditions{IfModifiedSince: o.ModifiedAt}, NotModified},
		{Conditions{IfModifiedSince: before}, ""},
		{Conditions{IfUnmodifiedSince: o.ModifiedAt}, ""},
		{Conditions{IfUnmodifiedSince: before}, PreconditionFailed},
		{Conditions{IfMatch: "etag", IfUnmodifiedSince: before}, ""},
		{Conditions{IfNoneMatch: "x", IfModifiedSince: after}, ""},
		{Conditions{IfNoneMatch: "etag", IfModifiedSince: before}, NotModified},
	} {
		_, err := f.Catalog.Get(context.Background(), f.bucket(), "k", GetParams{Conditions: c.conditions})
		require.Equal(t, c.want, CodeOf(err), i)
		if c.want == NotModified {
			c.want = PreconditionFailed // of the source of a copy
		}
		_, err = f.Copy(context.Background(), f.bucket(), "k", f.bucket(), fmt.Sprint("copy", i), CopyParams{Source: c.conditions})
		require.Equal(t, c.want, CodeOf(err), i)
	}
}

func TestCopies(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	source, err := f.Put(ctx, f.bucket(), "k", Object{PhysicalAddress: "here", Size: 3, Checksum: "etag", ContentType: "a/b", Metadata: map[string]string{"m": "1"}, Tags: map[string]string{"t": "1"}, StorageClass: "COLD"}, Conditions{})
	require.NoError(t, err)
	f.clock.Add(int64(time.Minute))
	plain, err := f.Copy(ctx, f.bucket(), "k", f.bucket(), "copy", CopyParams{})
	require.NoError(t, err)
	want := source
	want.ModifiedAt = f.now()
	require.Equal(t, want, plain)

	changed, err := f.Copy(ctx, f.bucket(), "k", f.bucket(), "k", CopyParams{ReplaceMetadata: true, ContentType: "c/d", ReplaceTags: true, StorageClass: "HOT", Address: "there"})
	require.NoError(t, err)
	want.ContentType, want.Metadata, want.Tags, want.StorageClass, want.PhysicalAddress = "c/d", nil, nil, "HOT", "there"
	require.Equal(t, want, changed)

	elsewhere := Bucket{Repository: f.name + "-2"}
	require.NoError(t, f.CreateBucket(ctx, elsewhere.Repository, CreateBucketParams{}))
	_, err = f.Copy(ctx, f.bucket(), "k", elsewhere, "k", CopyParams{})
	require.ErrorIs(t, err, InvalidRequest)
	_, err = f.Copy(ctx, f.bucket(), "none", elsewhere, "k", CopyParams{Address: "third"})
	require.ErrorIs(t, err, NoSuchKey)
	o, err := f.Copy(ctx, f.bucket(), "k", elsewhere, "k", CopyParams{Address: "third"})
	require.NoError(t, err)
	require.Equal(t, "third", o.PhysicalAddress)
}

func TestCodesHaveTheStatusOfS3(t *testing.T) {
	for code, want := range map[Code]int{
		NotModified: http.StatusNotModified, InvalidTag: 400, AccessDenied: 403, NoSuchKey: 404, MethodNotAllowed: 405, BucketNotEmpty: 409, PreconditionFailed: 412, InternalError: 500, NotImplemented: 501, "Other": 500,
	} {
		require.Equal(t, want, code.HTTPStatus(), code)
	}
	require.Equal(t, NoSuchKey, CodeOf(fmt.Errorf("wrapped: %w", NoSuchKey)))
	require.Equal(t, Code(""), CodeOf(nil))
	require.Equal(t, InternalError, CodeOf(graveler.ErrCorrupt))
	require.Equal(t, AccessDenied, CodeOf(graveler.ErrProtected))
	require.Equal(t, NoSuchBucket, CodeOf(graveler.ErrBranchNotFound))
	require.Equal(t, NoSuchKey, CodeOf(graveler.ErrEntryNotFound))
}
