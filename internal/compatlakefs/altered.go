// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// alteration changes one byte of what was migrated, or of what it became.
type alteration struct {
	what  string
	named string // what the comparison must name
	apply func(ctx context.Context) (undo func() error, err error)
}

// checkAltered changes one byte here and there of the source and of what it became, and sees whether the comparison of both sides finds it.
func (s *loaded) checkAltered(ctx context.Context, t target) (int, error) {
	alterations, err := s.alterations(ctx, t)
	if err != nil {
		return 0, err
	}
	subject := newTally(s.name, "bolt", "one byte changed").subject
	missed := 0
	for _, a := range alterations {
		undo, err := a.apply(ctx)
		if err != nil {
			return 0, fmt.Errorf("change %s: %w", a.what, err)
		}
		found := s.found(ctx, t)
		if err := undo(); err != nil {
			return 0, fmt.Errorf("undo the change of %s: %w", a.what, err)
		}
		result := "found"
		if !strings.Contains(found, a.named) {
			result, missed = "MISSED", missed+1
		}
		fmt.Printf("%s %-24s %s: %.300s\n", subject, a.what, result, found)
	}
	if found := s.found(ctx, t); found != "" {
		fmt.Printf("%s %-24s DIFFERS: %s\n", subject, "put back", found)
		missed++
	}
	return missed, nil
}

// found is all that the comparison of both sides says, "" if they are equal.
func (s *loaded) found(ctx context.Context, t target) string {
	verified, err := t.verify(ctx, s)
	if err != nil {
		return err.Error()
	}
	var all []string
	for _, r := range verified.Repositories {
		for _, d := range r.First {
			all = append(all, d.String())
		}
	}
	return strings.Join(all, "; ")
}

func (s *loaded) alterations(ctx context.Context, t target) ([]alteration, error) {
	var r *repository
	for _, one := range s.expected.Repositories {
		if one.ID == "beta-staged" {
			r = one
		}
	}
	if r == nil {
		return nil, errors.New("there is no repository beta-staged")
	}
	head := commitOf(r, r.Branches[0].Commit)
	files, err := s.files(ctx, r)
	if err != nil {
		return nil, err
	}
	ranges, err := files.Metarange(ctx, head.Metarange)
	if err := errors.Join(err, files.Close()); err != nil {
		return nil, err
	}
	_, folder, _ := strings.Cut(r.Namespace, "://")
	own, err := largestFile(strings.TrimPrefix(t.blocks, "file:"))
	if err != nil {
		return nil, err
	}
	staged, key, err := s.stagedRow(ctx)
	return []alteration{
		{"a staged row", key, staged},
		{"a commit message", head.ID, s.commitMessage(head)},
		{"a range", ranges[0].ID, inFile(filepath.Join(s.blocks, folder, "_lakefs", ranges[0].ID))},
		{"a metarange", head.Metarange, inFile(filepath.Join(s.blocks, folder, "_lakefs", head.Metarange))},
		{"a file of the target", filepath.Base(own), inFile(own)},
	}, err
}

func commitOf(r *repository, id string) commit {
	for _, c := range r.Commits {
		if c.ID == id {
			return c
		}
	}
	return commit{}
}

// inFile changes the byte in the middle of a file.
func inFile(path string) func(context.Context) (func() error, error) {
	return func(context.Context) (func() error, error) {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		altered := bytes.Clone(data)
		altered[len(data)/2] ^= 1
		return func() error { return os.WriteFile(path, data, 0o600) }, os.WriteFile(path, altered, 0o600)
	}
}

func largestFile(dir string) (path string, err error) {
	var size int64
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > size {
			path, size = p, info.Size()
		}
		return err
	})
	return path, err
}

// stagedRow returns a change of a staged row, and the key of it.
func (s *loaded) stagedRow(ctx context.Context) (change func(context.Context) (func() error, error), key string, err error) {
	find := "SELECT key, data FROM graveler_staging_kv WHERE staging_token LIKE 'beta-staged-trunk:%' AND identity IS NOT NULL ORDER BY key LIMIT 1"
	update := "UPDATE graveler_staging_kv SET data = $2 WHERE staging_token LIKE 'beta-staged-trunk:%' AND data = $1"
	keyValue, err := s.isKeyValue(ctx)
	if keyValue {
		find = "SELECT key, value FROM kv WHERE encode(partition_key, 'escape') LIKE 'beta-staged-trunk:%' AND length(value) > 100 ORDER BY key LIMIT 1"
		update = "UPDATE kv SET value = $2 WHERE encode(partition_key, 'escape') LIKE 'beta-staged-trunk:%' AND value = $1"
	}
	if err != nil {
		return nil, "", err
	}
	var name, stored []byte
	err = within(ctx, s.url, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, find).Scan(&name, &stored) })
	if err != nil {
		return nil, "", err
	}
	data := stored
	if keyValue {
		m := &lakefspb.StagedData{}
		if err := proto.Unmarshal(stored, m); err != nil {
			return nil, "", err
		}
		data = m.Data
	}
	entry := &lakefspb.EntryData{}
	if err := proto.Unmarshal(data, entry); err != nil {
		return nil, "", err
	}
	return s.updating(update, stored, altered(stored, entry.Etag)), string(name), nil
}

// commitMessage returns a change of the message of a commit.
func (s *loaded) commitMessage(c commit) func(context.Context) (func() error, error) {
	return func(ctx context.Context) (func() error, error) {
		keyValue, err := s.isKeyValue(ctx)
		if err != nil {
			return nil, err
		}
		if !keyValue {
			const update = "UPDATE graveler_commits SET message = convert_from($2, 'UTF8') WHERE repository_id = 'beta-staged' AND message = convert_from($1, 'UTF8')"
			return s.updating(update, []byte(c.Message), altered([]byte(c.Message), c.Message))(ctx)
		}
		var stored []byte
		find := "SELECT value FROM kv WHERE key = convert_to($1, 'UTF8')"
		err = within(ctx, s.url, func(conn *pgx.Conn) error { return conn.QueryRow(ctx, find, "commits/"+c.ID).Scan(&stored) })
		if err != nil {
			return nil, err
		}
		return s.updating("UPDATE kv SET value = $2 WHERE value = $1", stored, altered(stored, c.Message))(ctx)
	}
}

func (s *loaded) isKeyValue(ctx context.Context) (is bool, err error) {
	err = within(ctx, s.url, func(conn *pgx.Conn) error {
		version, err := lakefs.Version(ctx, conn)
		is = version > 0
		return err
	})
	return is, err
}

// altered returns stored bytes with another first byte of the text in them.
func altered(stored []byte, text string) []byte {
	out := bytes.Clone(stored)
	if i := bytes.Index(out, []byte(text)); i >= 0 {
		out[i] ^= 1
	}
	return out
}

// updating replaces the first parameter of a statement by the second.
func (s *loaded) updating(update string, from, to []byte) func(context.Context) (func() error, error) {
	exec := func(ctx context.Context, from, to []byte) error {
		return within(ctx, s.url, func(conn *pgx.Conn) error {
			tag, err := conn.Exec(ctx, update, from, to)
			if err == nil && tag.RowsAffected() != 1 {
				err = fmt.Errorf("%d rows were changed, not one", tag.RowsAffected())
			}
			return err
		})
	}
	return func(ctx context.Context) (func() error, error) {
		return func() error { return exec(ctx, to, from) }, exec(ctx, from, to)
	}
}
