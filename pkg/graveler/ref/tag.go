// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/kv"
)

// GetTag implements [graveler.Tags].
func (s *Store) GetTag(ctx context.Context, repo *graveler.Repository, id graveler.TagID) (*graveler.Tag, error) {
	t, err := get(ctx, s, locateTag(repo, id), graveler.ErrTagNotFound, decodeTag)
	return t, wrap(err, "get tag %s/%s", repo.ID, id)
}

// CreateTag implements [graveler.Tags]. The stamp of t is not looked at.
func (s *Store) CreateTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	return wrap(s.createTag(ctx, repo, t), "create tag %s/%s", repo.ID, t.ID)
}

func (s *Store) createTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	m := &refpb.TagData{Id: string(t.ID), Commit: string(t.Commit)}
	if err := checkTag(m); err != nil {
		return invalid("%v", err)
	}
	_, err := s.put(ctx, locateTag(repo, t.ID), m, nil)
	if errors.Is(err, kv.ErrPredicateFailed) {
		return graveler.ErrExists
	}
	return err
}

// RemoveTag implements [graveler.Tags].
func (s *Store) RemoveTag(ctx context.Context, repo *graveler.Repository, t *graveler.Tag) error {
	return wrap(s.remove(ctx, locateTag(repo, t.ID), t.Stamp), "remove tag %s/%s", repo.ID, t.ID)
}

// ScanTags implements [graveler.Tags].
func (s *Store) ScanTags(ctx context.Context, repo *graveler.Repository, from graveler.TagID) iter.Seq2[*graveler.Tag, error] {
	return scan(ctx, s, "tags of "+string(repo.ID), repo.Partition(), tagsPrefix, string(from), decodeTag)
}

func locateTag(repo *graveler.Repository, id graveler.TagID) location {
	return locate(repo.Partition(), tagsPrefix+string(id))
}

func decodeTag(at location, value []byte) (*graveler.Tag, error) {
	m := &refpb.TagData{}
	if err := at.decode(value, m, func() string { return tagsPrefix + m.Id }); err != nil {
		return nil, err
	}
	if err := checkTag(m); err != nil {
		return nil, at.corrupt(err)
	}
	return &graveler.Tag{ID: graveler.TagID(m.Id), Commit: graveler.CommitID(m.Commit), Stamp: value}, nil
}

// checkTag says why a record cannot be one, whether it was read or is to be written.
func checkTag(m *refpb.TagData) error {
	if m.Id == "" || m.Commit == "" {
		return fmt.Errorf("tag %q names commit %q", m.Id, m.Commit)
	}
	return nil
}
