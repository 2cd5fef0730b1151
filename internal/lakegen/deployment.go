// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// Deployment is all that a lakeFS has.
type Deployment struct {
	Repositories []*Repository // by ID
	// Orphans are staged under tokens that no branch has.
	Orphans map[string][]lakefs.Staged
	// Deleted are partitions of repositories that are gone: the same name may be there again.
	Deleted []*Repository
}

// Repository is one with all its history.
type Repository struct {
	lakefs.Repository
	Commits    []*Commit // parents before their children; none where only the repository's record is there
	Branches   []*Branch // by name
	Tags       []lakefs.Tag
	Metadata   map[string]string
	Protection []lakefs.ProtectionRule
	// Files are the range and metarange files by ID, also those that no commit leads to.
	Files map[string][]byte
}

// Commit is a commit with its entries.
type Commit struct {
	lakefs.Commit
	Tree Tree
}

// MainFirst returns the parents of a commit with the main one first, also where lakeFS has it last.
func (c *Commit) MainFirst() []string {
	if c.Version > 0 || len(c.Parents) < 2 {
		return c.Parents
	}
	last := len(c.Parents) - 1
	return append([]string{c.Parents[last]}, c.Parents[:last]...)
}

// Branch is a branch with what is staged under its tokens.
type Branch struct {
	lakefs.Branch
	Staged map[string][]lakefs.Staged // by token; by key
}

// Newest returns what is staged on a branch, by key: of several rows of a key the one under the newest token.
func (b *Branch) Newest() []lakefs.Staged {
	newest := map[string]lakefs.Staged{}
	for _, token := range append([]string{b.Token}, b.Sealed...) {
		for _, s := range b.Staged[token] {
			if _, ok := newest[string(s.Key)]; !ok {
				newest[string(s.Key)] = s
			}
		}
	}
	staged := slices.Collect(maps.Values(newest))
	slices.SortFunc(staged, func(a, b lakefs.Staged) int { return bytes.Compare(a.Key, b.Key) })
	return staged
}

// Tree is the entries of a commit by key.
type Tree []lakefs.Record

// Get returns the entry of a key.
func (t Tree) Get(key []byte) (lakefs.Record, bool) {
	i, ok := slices.BinarySearchFunc(t, key, func(r lakefs.Record, key []byte) int { return bytes.Compare(r.Key, key) })
	if !ok {
		return lakefs.Record{}, false
	}
	return t[i], true
}

// with returns a tree with changes.
func (t Tree) with(changes []lakefs.Staged) Tree {
	byKey := map[string]lakefs.Record{}
	for _, r := range t {
		byKey[string(r.Key)] = r
	}
	for _, c := range changes {
		if c.Tombstone {
			delete(byKey, string(c.Key))
		} else {
			byKey[string(c.Key)] = c.Record
		}
	}
	next := slices.Collect(maps.Values(byKey))
	slices.SortFunc(next, func(a, b lakefs.Record) int { return bytes.Compare(a.Key, b.Key) })
	return next
}

// Commit returns the commit with an ID, nil if there is none.
func (r *Repository) Commit(id string) *Commit {
	for _, c := range r.Commits {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// WriteFiles writes the files of all repositories below a directory, each where its namespace leads from there.
func (d *Deployment) WriteFiles(ctx context.Context, dir string) error {
	for _, r := range d.Repositories {
		_, path, _ := strings.Cut(r.Namespace, "://")
		if len(r.Files) == 0 {
			continue
		}
		storage, err := local.OpenDir(filepath.Join(dir, path), block.OpenOptions{})
		if err == nil {
			err = errors.Join(r.WriteFiles(ctx, storage), storage.Close())
		}
		if err != nil {
			return fmt.Errorf("write files of %s: %w", r.ID, err)
		}
	}
	return nil
}

// WriteFiles writes the files into a storage that is the folder of the repository.
func (r *Repository) WriteFiles(ctx context.Context, storage block.Storage) error {
	for id, data := range r.Files {
		if err := storage.Put(ctx, FileName(id), data); err != nil {
			return err
		}
	}
	return nil
}

// FileName names the file of an ID in the folder of its repository.
func FileName(id string) string { return "_lakefs/" + id }
