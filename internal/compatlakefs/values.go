// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// records yields the records of a tree of the source.
func records(ctx context.Context, files *lakefs.Files, metarange string) iter.Seq2[lakefs.Record, error] {
	return func(yield func(lakefs.Record, error) bool) {
		ranges, err := files.Metarange(ctx, metarange)
		if err != nil {
			yield(lakefs.Record{}, err)
			return
		}
		for _, r := range ranges {
			records, err := files.Range(ctx, r)
			if err != nil {
				yield(lakefs.Record{}, err)
				return
			}
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
		}
	}
}

func (s *loaded) files(ctx context.Context, r *repository) (*lakefs.Files, error) {
	return lakefs.OpenFiles(ctx, "file:"+s.blocks, r.Namespace, engines())
}

// checkSource reads all trees of the source, and compares them with what lakeFS reads.
func (s *loaded) checkSource(ctx context.Context) (differences int, err error) {
	for _, r := range s.expected.Repositories {
		t := newTally(s.name, "(source)", r.ID)
		files, err := s.files(ctx, r)
		if err != nil {
			return differences, err
		}
		for _, c := range r.Commits {
			h := sha256.New()
			for record, failed := range records(ctx, files, c.Metarange) {
				if failed != nil {
					return differences, errors.Join(failed, files.Close())
				}
				fmt.Fprintf(h, "%s\t%x\t%x\n", record.Key, record.Identity, record.Data)
			}
			t.equal("values of commits", c.ID, hex.EncodeToString(h.Sum(nil)), c.ValuesHash)
		}
		differences += t.print()
		if err := files.Close(); err != nil {
			return differences, err
		}
	}
	return differences, nil
}

// values compares every entry of every commit with what it should have become, side by side.
func (c *comparison) values(ctx context.Context, s *loaded) error {
	files, err := s.files(ctx, c.want)
	if err != nil {
		return err
	}
	for _, commit := range c.want.Commits {
		what, failed := c.firstOtherValue(ctx, files, commit)
		if failed != nil {
			return errors.Join(failed, files.Close())
		}
		c.equal("values of commits", commit.ID, what, "")
	}
	return files.Close()
}

// firstOtherValue names the first entry of a commit that is not what it should have become, "" if there is none.
func (c *comparison) firstOtherValue(ctx context.Context, files *lakefs.Files, commit commit) (string, error) {
	next, stop := iter.Pull2(c.g.List(ctx, c.id, commit.ID, graveler.ListOptions{}))
	defer stop()
	for record, err := range records(ctx, files, commit.Metarange) {
		if err != nil {
			return "", err
		}
		want, err := lakefs.Value(record, c.want.Namespace)
		if err != nil {
			return "", err
		}
		got, err, ok := next()
		if err != nil {
			return "", err
		}
		if !ok || !bytes.Equal(got.Key, record.Key) || !got.Value.Same(&want) || !bytes.Equal(got.Value.Data, want.Data) {
			return fmt.Sprintf("%q", record.Key), nil
		}
	}
	_, err, more := next()
	if more && err == nil {
		return "an entry too many", nil
	}
	return "", err
}
