// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
)

const namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

// The answers of S3 in XML, as far as they are needed here.
type (
	listResult struct {
		XMLName                  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
		Name, Prefix, Delimiter  string
		StartAfter, EncodingType string `xml:",omitempty"`
		MaxKeys, KeyCount        int
		IsTruncated              bool
		ContinuationToken        string `xml:",omitempty"`
		NextContinuationToken    string `xml:",omitempty"`
		Contents                 []listedObject
		CommonPrefixes           []commonPrefix
	}
	versionsResult struct {
		XMLName                            xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListVersionsResult"`
		Name, Prefix, Delimiter            string
		KeyMarker, VersionIdMarker         string
		EncodingType                       string `xml:",omitempty"`
		MaxKeys                            int
		IsTruncated                        bool
		NextKeyMarker, NextVersionIdMarker string `xml:",omitempty"`
		Versions                           []listedVersion
		CommonPrefixes                     []commonPrefix
	}
	listedObject struct {
		Key          string
		LastModified time.Time
		ETag         string
		Size         int64
		StorageClass string
	}
	listedVersion struct {
		XMLName      xml.Name // Version or DeleteMarker
		Key          string
		VersionId    string
		IsLatest     bool
		LastModified time.Time
		ETag         string `xml:",omitempty"`
		Size         *int64 `xml:",omitempty"`
	}
	commonPrefix struct{ Prefix string }

	errorResult struct {
		XMLName           xml.Name `xml:"Error"`
		Code              catalog.Code
		Message, Resource string
	}
)

func (h *handler) list(w http.ResponseWriter, r *http.Request, b catalog.Bucket) error {
	q := r.URL.Query()
	size, encode, err := listing(q)
	if err != nil {
		return err
	}
	p := catalog.ListParams{Prefix: q.Get("prefix"), Delimiter: q.Get("delimiter"), StartAfter: q.Get("start-after"), ContinuationToken: q.Get("continuation-token"), MaxKeys: &size}
	page, err := h.catalog.List(r.Context(), b, p)
	if err != nil {
		return err
	}
	result := listResult{
		Name: string(b.Repository), Prefix: encode(p.Prefix), Delimiter: encode(p.Delimiter), StartAfter: encode(p.StartAfter), EncodingType: q.Get("encoding-type"),
		MaxKeys: size, KeyCount: len(page.Objects) + len(page.CommonPrefixes), IsTruncated: page.Truncated,
		ContinuationToken: p.ContinuationToken, NextContinuationToken: page.NextContinuationToken, CommonPrefixes: prefixes(page.CommonPrefixes, encode),
	}
	for _, o := range page.Objects {
		result.Contents = append(result.Contents, listedObject{Key: encode(o.Key), LastModified: o.ModifiedAt, ETag: `"` + o.Checksum + `"`, Size: o.Size, StorageClass: "STANDARD"})
	}
	return answer(w, http.StatusOK, result)
}

func (h *handler) listVersions(w http.ResponseWriter, r *http.Request, b catalog.Bucket) error {
	q := r.URL.Query()
	size, encode, err := listing(q)
	if err != nil {
		return err
	}
	p := catalog.ListVersionsParams{Prefix: q.Get("prefix"), Delimiter: q.Get("delimiter"), KeyMarker: q.Get("key-marker"), VersionIDMarker: q.Get("version-id-marker"), MaxKeys: &size}
	page, err := h.catalog.ListVersions(r.Context(), b, p)
	if err != nil {
		return err
	}
	result := versionsResult{
		Name: string(b.Repository), Prefix: encode(p.Prefix), Delimiter: encode(p.Delimiter), KeyMarker: encode(p.KeyMarker), VersionIdMarker: p.VersionIDMarker, EncodingType: q.Get("encoding-type"),
		MaxKeys: size, IsTruncated: page.Truncated, NextKeyMarker: encode(page.NextKeyMarker), NextVersionIdMarker: page.NextVersionIDMarker, CommonPrefixes: prefixes(page.CommonPrefixes, encode),
	}
	for _, v := range page.Versions {
		listed := listedVersion{XMLName: xml.Name{Space: namespace, Local: "DeleteMarker"}, Key: encode(v.Key), VersionId: v.VersionID, IsLatest: v.Latest, LastModified: v.ModifiedAt}
		if !v.DeleteMarker {
			listed.XMLName.Local, listed.ETag, listed.Size = "Version", `"`+v.Checksum+`"`, &v.Size
		}
		result.Versions = append(result.Versions, listed)
	}
	return answer(w, http.StatusOK, result)
}

// listing returns what both listings have in common: the size of the page, and what makes keys fit for XML.
func listing(q url.Values) (size int, encode func(string) string, err error) {
	size, encode = catalog.MaxListed, func(key string) string { return key }
	switch q.Get("encoding-type") {
	case "":
	case "url":
		encode = catalog.EncodeKey
	default:
		return 0, nil, fmt.Errorf("%w: encoding-type", catalog.InvalidArgument)
	}
	if text := q.Get("max-keys"); text != "" {
		if size, err = strconv.Atoi(text); err != nil {
			return 0, nil, fmt.Errorf("%w: max-keys: %w", catalog.InvalidArgument, err)
		}
	}
	return min(size, catalog.MaxListed), encode, nil
}

func prefixes(found []string, encode func(string) string) (all []commonPrefix) {
	for _, p := range found {
		all = append(all, commonPrefix{encode(p)})
	}
	return all
}

// fail answers with S3's code for an error. What is wrong inside is for the log, not for the client.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	code, message := catalog.CodeOf(err), err.Error()
	if code == catalog.InternalError {
		h.log.Error("request", "method", r.Method, "path", r.URL.Path, "error", err)
		message = "see the log of the server"
	}
	if code == catalog.NotModified {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if err := answer(w, code.HTTPStatus(), errorResult{Code: code, Message: message, Resource: r.URL.Path}); err != nil {
		h.log.Warn("answer", "path", r.URL.Path, "error", err)
	}
}

// answer sends a result. It is made whole first, so that an error can still be answered.
func answer(w http.ResponseWriter, status int, result any) error {
	body, err := xml.Marshal(result)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), body...)) // a client that has gone is no error of ours
	return nil
}
