// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// handler serves /bucket and /bucket/key in the manner of S3: bytes from disk, all else from the catalog.
type handler struct {
	catalog *catalog.Catalog
	bytes   *byteStore
	log     *slog.Logger
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	b := catalog.Bucket{Repository: graveler.RepositoryID(name)}
	var err error
	if key == "" {
		err = h.serveBucket(w, r, b)
	} else {
		err = h.serveObject(w, r, b, key)
	}
	if err != nil {
		h.fail(w, r, err)
	}
}

func (h *handler) serveBucket(w http.ResponseWriter, r *http.Request, b catalog.Bucket) error {
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPut && q.Has("versioning"):
		return h.putVersioning(r, b)
	case r.Method == http.MethodPut && len(q) == 0:
		return h.catalog.CreateBucket(r.Context(), b.Repository, catalog.CreateBucketParams{})
	case r.Method == http.MethodHead && len(q) == 0:
		_, err := h.catalog.HeadBucket(r.Context(), b.Repository)
		return err
	case r.Method == http.MethodGet && q.Has("versions"):
		return h.listVersions(w, r, b)
	case r.Method == http.MethodGet && onlyHas(q, "list-type", "prefix", "delimiter", "start-after", "continuation-token", "max-keys", "encoding-type"):
		return h.list(w, r, b)
	}
	return catalog.NotImplemented
}

func (h *handler) serveObject(w http.ResponseWriter, r *http.Request, b catalog.Bucket, key string) error {
	q := r.URL.Query()
	switch {
	case q.Has("versionId") && q.Get("versionId") == "":
		return fmt.Errorf("%w: an empty version ID", catalog.InvalidArgument)
	case !onlyHas(q, "versionId"): // such as ?tagging or ?partNumber, which must not be taken for the object itself
		return catalog.NotImplemented
	case r.Method == http.MethodPut && len(q) == 0:
		return h.put(w, r, b, key)
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		return h.get(w, r, b, key)
	case r.Method == http.MethodDelete:
		return h.delete(w, r, b, key)
	}
	return catalog.MethodNotAllowed
}

// put writes and syncs the bytes under an address of their own, and only then puts the entry: whoever sees an entry finds its bytes.
func (h *handler) put(w http.ResponseWriter, r *http.Request, b catalog.Bucket, key string) error {
	if err := refuseUnknown(r.Header); err != nil {
		return err
	}
	conditions, err := conditionsOf(r.Header)
	if err != nil {
		return err
	}
	if _, err := h.catalog.HeadBucket(r.Context(), b.Repository); err != nil {
		return err
	}
	address := h.bytes.allocate(string(b.Repository))
	defer h.bytes.settle(address) // after the entry: clean-up does not touch bytes that are under way
	size, etag, err := h.bytes.write(address, r.Body)
	if err != nil {
		return errors.Join(err, h.bytes.remove(address)) // no entry was tried, so they may go at once
	}
	o, err := h.catalog.Put(r.Context(), b, key, catalog.Object{
		PhysicalAddress: address, Size: size, Checksum: etag, ContentType: r.Header.Get("Content-Type"), Metadata: metadataOf(r.Header),
	}, conditions)
	if err != nil {
		return err // and the bytes stay: after an error the entry may be there all the same, which the sweep finds out
	}
	describe(w.Header(), &o)
	return nil
}

func (h *handler) get(w http.ResponseWriter, r *http.Request, b catalog.Bucket, key string) error {
	conditions, err := conditionsOf(r.Header)
	if err != nil {
		return err
	}
	o, err := h.catalog.Get(r.Context(), b, key, catalog.GetParams{VersionID: r.URL.Query().Get("versionId"), Conditions: conditions})
	describe(w.Header(), &o)
	if err != nil {
		return err
	}
	f, err := h.bytes.open(o.PhysicalAddress, o.Size)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", cmp.Or(o.ContentType, "binary/octet-stream"))
	for name, value := range o.Metadata {
		w.Header().Set(metadataPrefix+name, value)
	}
	judged := r.Clone(r.Context()) // what is left to ServeContent are ranges
	for _, name := range []string{"If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"} {
		judged.Header.Del(name)
	}
	http.ServeContent(w, judged, "", o.ModifiedAt, f)
	return nil
}

// delete removes no bytes: commits of the past have them, until retention says otherwise.
func (h *handler) delete(w http.ResponseWriter, r *http.Request, b catalog.Bucket, key string) error {
	d, err := h.catalog.Delete(r.Context(), b, key, catalog.DeleteParams{VersionID: r.URL.Query().Get("versionId"), IfMatch: r.Header.Get("If-Match")})
	if err != nil {
		return err
	}
	describe(w.Header(), &catalog.Object{DeleteMarker: d.DeleteMarker, VersionID: cmp.Or(d.VersionID, d.DeleteMarkerVersionID)})
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (h *handler) putVersioning(r *http.Request, b catalog.Bucket) error {
	var c struct{ Status catalog.Versioning }
	if err := xml.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<10)).Decode(&c); err != nil {
		return fmt.Errorf("%w: %w", catalog.MalformedXML, err)
	}
	return h.catalog.SetVersioning(r.Context(), b.Repository, c.Status)
}

// describe sets the headers that tell of a version. The zero Object has none.
func describe(header http.Header, o *catalog.Object) {
	if o.Checksum != "" {
		header.Set("ETag", `"`+o.Checksum+`"`)
	}
	if o.VersionID != "" {
		header.Set("X-Amz-Version-Id", o.VersionID)
	}
	if o.DeleteMarker {
		header.Set("X-Amz-Delete-Marker", "true")
	}
}

const metadataPrefix = "X-Amz-Meta-"

func metadataOf(header http.Header) map[string]string {
	metadata := map[string]string{}
	for name, values := range header {
		if name, ok := strings.CutPrefix(name, metadataPrefix); ok {
			metadata[strings.ToLower(name)] = strings.Join(values, ",")
		}
	}
	return metadata
}

func conditionsOf(header http.Header) (c catalog.Conditions, err error) {
	c = catalog.Conditions{IfMatch: header.Get("If-Match"), IfNoneMatch: header.Get("If-None-Match")}
	for name, at := range map[string]*time.Time{"If-Modified-Since": &c.IfModifiedSince, "If-Unmodified-Since": &c.IfUnmodifiedSince} {
		if text := header.Get(name); text != "" {
			if *at, err = http.ParseTime(text); err != nil {
				return c, fmt.Errorf("%w: %s: %w", catalog.InvalidArgument, name, err)
			}
		}
	}
	return c, nil
}

// refuseUnknown refuses a put that asks for more than this store does: what it would get instead is not what was asked for.
func refuseUnknown(header http.Header) error {
	for name := range header {
		for _, prefix := range []string{"X-Amz-Copy-Source", "X-Amz-Object-Lock-", "X-Amz-Tagging", "X-Amz-Server-Side-Encryption", "X-Amz-Trailer", "Content-Md5", "Content-Range"} {
			if strings.HasPrefix(name, prefix) {
				return fmt.Errorf("%w: %s", catalog.NotImplemented, name)
			}
		}
	}
	if strings.HasPrefix(header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return fmt.Errorf("%w: bodies in signed chunks", catalog.NotImplemented)
	}
	return nil
}

// onlyHas reports whether a query has no parameters but these, and x-id, by which clients name the operation.
func onlyHas(q url.Values, names ...string) bool {
	known := len(q)
	for _, name := range append(names, "x-id") {
		if q.Has(name) {
			known--
		}
	}
	return known == 0
}
