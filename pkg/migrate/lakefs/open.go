// SPDX-License-Identifier: Apache-2.0

package lakefs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/kv"
)

// ErrNamespace is returned for a storage namespace of which this program cannot tell where its files are.
var ErrNamespace = errors.New("storage namespace that cannot be opened")

// OpenFiles opens the files of the repository that has a storage namespace, such as s3://bucket/path. They are at the namespace
// itself, or, with a base, which is the URL of a copy or of the disk of a lakeFS server, where what stands behind "://" in the
// namespace leads from there. Parameters stay behind the whole. A base must exist; a folder that does not exist below it has no
// files.
//
// Where files are in a bucket, the path of a URL becomes the driver's parameter prefix.
func OpenFiles(ctx context.Context, base, namespace string, engines block.Engines) (*Files, error) {
	at, err := locate(base, namespace, engines)
	if err != nil {
		return nil, err
	}
	o := block.OpenOptions{ReadOnly: true}
	storage, err := block.Open(ctx, at, engines, o)
	if errors.Is(err, fs.ErrNotExist) && base != "" {
		var whole block.Storage
		if whole, err = block.Open(ctx, base, engines, o); err == nil {
			return &Files{name: namespace, at: kv.Redact(at)}, whole.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("files of storage namespace %s at %s: %w", namespace, kv.Redact(at), err)
	}
	return &Files{storage, namespace, kv.Redact(at)}, nil
}

// locate returns the URL of a namespace.
func locate(base, namespace string, engines block.Engines) (string, error) {
	scheme, path, ok := strings.Cut(namespace, "://")
	scheme = strings.ToLower(scheme)
	path = strings.Trim(path, "/")
	switch {
	case !ok || path == "":
		return "", fmt.Errorf("%w: %q is not scheme://path", ErrNamespace, namespace)
	case strings.ContainsAny(path, "?#\x00") || slices.ContainsFunc(strings.Split(path, "/"), isOdd):
		return "", fmt.Errorf("%w: %q: a part of its path is none", ErrNamespace, namespace)
	case strings.Contains(path, "%"): // which lakeFS decodes for what is relative to it, though not for what it says of itself
		return "", fmt.Errorf("%w: %q has a percent sign, and nobody can tell whether that stands for another character", ErrNamespace, namespace)
	case base != "":
		return below(base, path), nil
	case scheme == "local":
		return "", fmt.Errorf("%w: %s is on the disk of the lakeFS server: name the directory with the files (--from-blocks)", ErrNamespace, namespace)
	case engines[scheme] == nil:
		return "", fmt.Errorf("%w: %s: this program has no driver for %s: name a copy of the files (--from-blocks)", ErrNamespace, namespace, scheme)
	case inBucket(scheme):
		bucket, path, _ := strings.Cut(path, "/")
		return below(scheme+"://"+bucket, path), nil
	default:
		return namespace, nil
	}
}

func isOdd(part string) bool { return part == "" || part == "." || part == ".." }

// inBucket reports whether URLs of a scheme name a bucket, of which drivers overlook the path.
func inBucket(scheme string) bool { return scheme == "s3" || scheme == "gs" || scheme == "azblob" }

// below returns the URL of a path below a base.
func below(base, path string) string {
	if path == "" {
		return base
	}
	base, query, hasQuery := strings.Cut(base, "?")
	base = strings.TrimRight(base, "/")
	if scheme, rest, _ := strings.Cut(base, "://"); inBucket(strings.ToLower(scheme)) {
		if bucket, dir, ok := strings.Cut(rest, "/"); ok {
			base, path = scheme+"://"+bucket, dir+"/"+path
		}
		return base + "?" + withPrefix(query, path+"/")
	}
	if hasQuery {
		query = "?" + query
	}
	return base + "/" + path + query
}

// withPrefix returns the parameters of a bucket with a folder added to the prefix that they may have.
func withPrefix(query, folder string) string {
	var parameters []string
	prefix := ""
	for p := range strings.SplitSeq(query, "&") {
		if value, ok := strings.CutPrefix(p, "prefix="); ok {
			prefix = value
		} else if p != "" {
			parameters = append(parameters, p)
		}
	}
	return strings.Join(append(parameters, "prefix="+prefix+url.QueryEscape(folder)), "&")
}
