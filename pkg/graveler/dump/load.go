// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
)

// LoadParams says where a loaded repository keeps its files. The zero value will do where the dump was made of a repository of
// the same block storage.
type LoadParams struct {
	// Files is where the range files are that the dump needs, as a namespace: a URL, or a path in the store's block storage. "":
	// where the dump says that they were.
	Files string
	// InPlace leaves them there, and makes that the namespace of the repository; it must belong to no other
	// (graveler.ErrNamespaceTaken). Otherwise they are copied.
	InPlace bool
	// Namespace is below which URL, or path in the store's block storage, they are copied to, in a folder of the repository's
	// own. "": the store's default.
	Namespace string
	// UID is what the repository is to have as its own; see graveler.LoadParams. "": a new one.
	UID string
}

// Entries are staged in batches of at most so many, or about so many bytes.
const (
	batchEntries = 1000
	batchBytes   = 1 << 20
)

// Load makes a repository of a dump. It must not exist: graveler.ErrExists. Nobody sees it before all of the dump has been read
// and proven: its form and checksum, the ID of every commit, that whatever is referred to is there, and every file of every tree.
// ErrInvalid, with the number of the line, says that something is wrong with the dump, graveler.ErrCorrupt that it is with a
// file. Where Load fails, it removes what it has made; where it is cut off, the store's upkeep does so. It must not pause for
// longer than the store's grace period: see graveler.Loading.
func Load(ctx context.Context, g *graveler.Graveler, id graveler.RepositoryID, r io.Reader, p LoadParams) (graveler.Repository, error) {
	if err := graveler.ValidateRepositoryID(id); err != nil {
		return graveler.Repository{}, err
	}
	l := loading{g: g, id: id, params: p}
	repo, err := l.run(ctx, r)
	if err == nil {
		return repo, nil
	}
	if l.to != nil {
		// Also where the context has ended: it would only be left for upkeep to do.
		err = errors.Join(err, l.to.Abort(context.WithoutCancel(ctx)))
	}
	return graveler.Repository{}, fmt.Errorf("load dump: %w", err)
}

// loading is a load under way.
type loading struct {
	g      *graveler.Graveler
	id     graveler.RepositoryID
	params LoadParams
	to     *graveler.Loading

	log     string          // the UID of the branch whose lines are being read
	branch  graveler.Branch // it, if it is a live one
	entries []graveler.Entry
	bytes   int
}

func (l *loading) run(ctx context.Context, r io.Reader) (graveler.Repository, error) {
	err := read(r, func(record *dumppb.DumpRecord) error {
		if record.GetEntry() == nil {
			if err := l.stage(ctx); err != nil {
				return err
			}
		}
		return invalid(l.take(ctx, record))
	})
	if err != nil {
		return graveler.Repository{}, err
	}
	repo, err := l.to.Finish(ctx)
	return repo, invalid(err)
}

// invalid adds to an error that says that something cannot be in a repository that it is the dump's fault.
func invalid(err error) error {
	for _, cause := range []error{graveler.ErrInvalidName, graveler.ErrInvalidValue, graveler.ErrTooLarge} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w: %w", ErrInvalid, err)
		}
	}
	return err
}

func (l *loading) take(ctx context.Context, r *dumppb.DumpRecord) error {
	switch m := r.Record.(type) {
	case *dumppb.DumpRecord_Header:
		return l.begin(ctx, m.Header)
	case *dumppb.DumpRecord_Setting:
		return l.to.PutSetting(ctx, graveler.Setting{Name: m.Setting.Name, Document: m.Setting.Document})
	case *dumppb.DumpRecord_Pin:
		return l.to.PutPin(ctx, pinOf(m.Pin))
	case *dumppb.DumpRecord_Tag:
		return l.to.PutTag(ctx, graveler.Tag{ID: graveler.TagID(m.Tag.Id), Commit: graveler.CommitID(m.Tag.Commit)})
	case *dumppb.DumpRecord_Branch:
		b, err := l.to.PutBranch(ctx, branchOf(m.Branch))
		l.log, l.branch = b.UID, b
		return err
	case *dumppb.DumpRecord_DeletedBranch:
		l.log = m.DeletedBranch.Uid
		return l.to.PutLog(ctx, graveler.LogName{Branch: graveler.BranchID(m.DeletedBranch.Id), UID: l.log})
	case *dumppb.DumpRecord_Move:
		return l.to.PutMove(ctx, l.log, moveOf(m.Move))
	case *dumppb.DumpRecord_Entry:
		return l.entry(ctx, entryOf(m.Entry))
	case *dumppb.DumpRecord_Commit:
		return l.to.PutCommit(ctx, commitOf(m.Commit))
	case *dumppb.DumpRecord_Expiration:
		return l.to.PutExpiration(ctx, graveler.Expiration{Commit: graveler.CommitID(m.Expiration.Commit), At: m.Expiration.At})
	case *dumppb.DumpRecord_LogStart:
		return l.to.PutLogStart(ctx, m.LogStart.BranchUid, m.LogStart.Time)
	default:
		return nil
	}
}

func (l *loading) begin(ctx context.Context, h *dumppb.Header) (err error) {
	files := l.params.Files
	if files == "" {
		files = h.Namespace
	}
	if files == "" {
		return fmt.Errorf("%w: it does not say where the range files are", ErrInvalid)
	}
	l.to, err = l.g.LoadRepository(ctx, l.id, graveler.LoadParams{
		DefaultBranch: graveler.BranchID(h.DefaultBranch), CreatedAt: instant(h.CreatedAt), ReadOnly: h.ReadOnly,
		UID: l.params.UID, Namespace: l.params.Namespace, Files: files, InPlace: l.params.InPlace,
	})
	return err
}

// entry keeps an entry for the next batch, once it is known to be a valid one.
func (l *loading) entry(ctx context.Context, e graveler.Entry) error {
	if err := graveler.ValidateEntry(e); err != nil {
		return err
	}
	l.entries = append(l.entries, e)
	l.bytes += len(e.Key)
	if e.Value != nil {
		l.bytes += len(e.Value.Identity) + len(e.Value.Data)
	}
	if len(l.entries) < batchEntries && l.bytes < batchBytes {
		return nil
	}
	return l.stage(ctx)
}

// stage stages the batch.
func (l *loading) stage(ctx context.Context) error {
	if len(l.entries) == 0 {
		return nil
	}
	entries := l.entries
	l.entries, l.bytes = nil, 0
	return l.to.Stage(ctx, l.branch, entries)
}
