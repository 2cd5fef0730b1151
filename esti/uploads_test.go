// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// upload begins a multipart upload and puts some parts: that is for programs, not for people.
func (s *script) upload(ts *testscript.TestScript, args []string) {
	place, key, _ := strings.Cut(args[0], ":")
	repo, branch, _ := strings.Cut(place, "/")
	number, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(s.withStore(ts, func(ctx context.Context, store *moraine.Store) error {
		c, err := catalog.New(catalog.Config{Store: store})
		if err != nil {
			return err
		}
		b := catalog.Bucket{Repository: graveler.RepositoryID(repo), Ref: branch}
		u, err := c.CreateUpload(ctx, b, key, catalog.Object{ContentType: "text/csv", Tags: map[string]string{"kind": "raw"}})
		for n := 1; err == nil && n <= number; n++ {
			_, _, err = c.PutPart(ctx, b, key, u.UploadID, catalog.Part{Number: n, PhysicalAddress: fmt.Sprintf("s3://parts/%s/%d", key, n), Size: catalog.MinPartBytes, Checksum: "0123"})
		}
		return err
	}))
	s.transcribe(ts, fmt.Sprintf("# (an upload to %s with %d parts)\n", args[0], number))
}

// withStore opens the store in this process.
func (s *script) withStore(ts *testscript.TestScript, do func(context.Context, *moraine.Store) error) (err error) {
	ctx := context.Background()
	o := moraine.Options{Store: s.store, Engines: all.Engines(), Blocks: ts.Getenv("MORAINE_BLOCKS")}
	if strings.HasPrefix(s.store, sqlstore.Scheme) {
		backend, err := sqlstore.Open(ctx, s.store, kv.OpenOptions{})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, backend.Close()) }()
		o.Store, o.Backend = "", backend
	}
	store, err := moraine.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(do(ctx, store), store.Close())
}
