// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"gocloud.dev/blob"

	"github.com/moraine-store/moraine/pkg/block"
)

// Open is the [block.Opener] of every URL whose driver the program imports. It makes sure that the
// bucket exists and may be listed.
func Open(ctx context.Context, bucketURL string, o block.OpenOptions) (block.Storage, error) {
	u, err := url.Parse(bucketURL)
	if err != nil {
		// The parser's error quotes the URL.
		return nil, fmt.Errorf("%w: it does not parse", block.ErrInvalidURL)
	}
	shown := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	if u.User != nil {
		return nil, fmt.Errorf("%w %s: credentials do not belong into it", block.ErrInvalidURL, shown)
	}
	s, err := open(ctx, bucketURL)
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", shown, withoutQuery(err, u.RawQuery))
	}
	if o.ReadOnly {
		return block.ReadOnly(s), nil
	}
	return s, nil
}

func open(ctx context.Context, bucketURL string) (block.Storage, error) {
	bucket, err := blob.OpenBucket(ctx, bucketURL)
	if err != nil {
		return nil, err
	}
	accessible, err := bucket.IsAccessible(ctx)
	if err == nil && !accessible {
		err = errors.New("it does not exist")
	}
	if err != nil {
		return nil, errors.Join(err, bucket.Close())
	}
	return New(bucket), nil
}

// withoutQuery cuts the parameters of a URL, which may hold a secret, out of the text of an error.
func withoutQuery(err error, query string) error {
	if query == "" || !strings.Contains(err.Error(), query) {
		return err
	}
	return &redacted{err, strings.ReplaceAll(err.Error(), query, "xxxxx")}
}

type redacted struct {
	err  error
	text string
}

func (r *redacted) Error() string { return r.text }
func (r *redacted) Unwrap() error { return r.err }
