// SPDX-License-Identifier: Apache-2.0

package fsck

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
)

// repository is the check of one repository.
type repository struct {
	*check
	record  *graveler.Repository
	workers *errgroup.Group // those that read files

	commits  map[digest]commitFacts
	expired  map[digest]struct{}
	logs     map[digest]struct{} // whose name is known
	files    map[digest]fileFacts
	seed     maphash.Seed
	suspects suspects
	lastLog  string // of the moves that are being scanned

	unlisted   bool // the namespace could not be listed: its files are not checked
	unwalked   bool // some tree was not, or not all of it: who refers to which files is not known then
	unverified int64
	foreign    Finding
	foreigners Finding
}

// errGone: the repository was deleted while it was checked.
var errGone = errors.New("repository has gone")

func (k *check) repository(ctx context.Context, record *graveler.Repository) error {
	workers, workCtx := errgroup.WithContext(ctx)
	workers.SetLimit(k.options.Parallel)
	r := newRepository(k, record)
	r.workers = workers
	err := r.run(workCtx)
	// A worker that failed has ended the rest: its error is the cause.
	if failed := workers.Wait(); failed != nil {
		err = failed
	}
	if err == nil {
		err = r.settle(ctx)
	}
	if err == nil {
		err = r.notes(ctx)
	}
	if errors.Is(err, errGone) {
		return nil
	}
	return err
}

func newRepository(k *check, record *graveler.Repository) *repository {
	return &repository{
		check: k, record: record, seed: maphash.MakeSeed(),
		commits: map[digest]commitFacts{}, expired: map[digest]struct{}{}, logs: map[digest]struct{}{}, files: map[digest]fileFacts{},
	}
}

func (r *repository) run(ctx context.Context) error {
	// Files are listed before the records are read: what no record refers to then was not about to be referred to when it was
	// listed, unless an operation is under way.
	if err := r.listFiles(ctx); err != nil {
		return err
	}
	if err := r.index(ctx); err != nil {
		return err
	}
	for s, err := range r.refs.ScanStored(ctx, r.record.Partition(), "") {
		if err == nil {
			err = r.stored(ctx, s)
		}
		if err != nil {
			return err
		}
	}
	return r.defaultBranch(ctx)
}

func (r *repository) stored(ctx context.Context, s ref.Stored) error {
	switch record := s.Record.(type) {
	case *graveler.Branch:
		return r.branch(ctx, record)
	case *graveler.Commit:
		return r.commit(ctx, record)
	case *graveler.Tag:
		return r.tag(ctx, record)
	case graveler.LogName:
		return r.log(ctx, record)
	case ref.LoggedMove:
		return r.move(ctx, record)
	case graveler.Pin:
		return r.pin(ctx, record)
	case ref.Setting:
		return r.setting(ctx, record)
	case graveler.Expiration, ref.LogStart, ref.SettingChunk:
		return nil // looked at with what they belong to
	}
	if s.Problem != nil {
		r.unwalked = true // it may have been a commit
		return r.confirm(ctx, r.badRecord(r.record.Partition(), s.Key))
	}
	if r.foreign.Count++; r.foreign.Count == 1 {
		r.foreign.Partition, r.foreign.Key = r.record.Partition(), string(s.Key)
	}
	return nil
}

// setting has a document put together, which checks it.
func (r *repository) setting(ctx context.Context, s ref.Setting) error {
	return r.confirm(ctx, func(ctx context.Context) ([]Finding, error) {
		_, _, err := r.refs.GetSetting(ctx, r.record, s.Name)
		switch {
		case errors.Is(err, graveler.ErrCorrupt), errors.Is(err, graveler.ErrInvalidName):
			return []Finding{damage(BadSetting, "%v", err)}, nil
		case errors.Is(err, graveler.ErrSettingNotFound):
			return nil, nil
		}
		return nil, err
	})
}

// damage is a finding of a repository, which confirm names.
func damage(kind Kind, format string, args ...any) Finding {
	return Finding{Kind: kind, Severity: Damage, What: fmt.Sprintf(format, args...)}
}

// confirm reports what a look finds twice.
func (r *repository) confirm(ctx context.Context, look look) error {
	found, err := twice(ctx, look)
	if err != nil {
		return err
	}
	return r.damaged(ctx, found)
}

// damaged reports findings if the repository is still there: it may have been deleted, and what is missing with it.
func (r *repository) damaged(ctx context.Context, found []Finding) error {
	if len(found) == 0 {
		return nil
	}
	now, err := r.refs.GetRepository(ctx, r.record.ID)
	switch {
	case errors.Is(err, graveler.ErrRepositoryNotFound):
		return errGone
	case errors.Is(err, graveler.ErrCorrupt): // that is another matter
	case err != nil:
		return err
	case now.UID != r.record.UID, now.State != graveler.RepositoryActive:
		return errGone
	}
	for i := range found {
		found[i].Repository = r.record.ID
	}
	return r.report(ctx, found...)
}

// notes reports what was counted only.
func (r *repository) notes(ctx context.Context) error {
	note := func(kind Kind, f Finding, format string, args ...any) error {
		if f.Count == 0 {
			return nil
		}
		f.Kind, f.Severity, f.Repository, f.What = kind, Note, r.record.ID, fmt.Sprintf(format, args...)
		return r.report(ctx, f)
	}
	orphans, referring := r.orphans(), "commit in the store"
	if r.unwalked {
		referring = "tree that was looked at"
	}
	return errors.Join(
		note(Unverified, Finding{Count: r.unverified}, "%s that this program does not know", plural(r.unverified, "commit whose ID follows a rule", "commits whose IDs follow a rule")),
		note(ForeignRecords, r.foreign, "%s %q", plural(r.foreign.Count, "record under a key that this program does not know:", "records under keys that this program does not know, the first is"), r.foreign.Key),
		note(OrphanFiles, orphans, "%s that no %s refers to, %s", plural(orphans.Count, "file", "files"), referring, plural(orphans.Bytes, "byte", "bytes")),
		note(ForeignFiles, r.foreigners, "%s of this program, %s", plural(r.foreigners.Count, "file that is not", "files that are not"), plural(r.foreigners.Bytes, "byte", "bytes")),
	)
}

// plural puts a number before what there is so much of.
func plural(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}
