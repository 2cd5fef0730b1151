// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
)

// Format is the number of the format that Write writes and Load reads.
const Format = 1

// Write writes the dump of a repository to w. program says who writes it, for people. Others may go on using the repository: what
// they do meanwhile is in the dump or is not, but what is in it fits together. It needs room for temporary files: for what is
// uncommitted on the branch that has most, and for the IDs of the commits. If retention removes commits meanwhile, it returns
// graveler.ErrChanged. A branch that the logs do not tell of is graveler.ErrCorrupt. A dump that ends in an error is none: Load
// refuses it. It costs two scans of the commits, and a read of each parent; memory grows only with the number of live branches,
// and with the commits that are made meanwhile.
func Write(ctx context.Context, g *graveler.Graveler, repo graveler.RepositoryID, program string, w io.Writer) error {
	contents, err := g.Contents(ctx, repo)
	if err != nil {
		return err
	}
	d := dumping{Contents: contents, w: bufio.NewWriter(w), sum: sha256.New(), counts: &dumppb.Counts{}}
	err = d.run(ctx, program)
	if gone := d.StillThere(ctx); err != nil && gone != nil {
		err = gone // which explains whatever was found missing
	}
	if err = errors.Join(err, d.uncommitted.close(), d.named.close(), d.written.close()); err != nil {
		return fmt.Errorf("dump repository %s: %w", repo, err)
	}
	return nil
}

// dumping is a dump under way.
type dumping struct {
	*graveler.Contents
	w      *bufio.Writer
	sum    hash.Hash
	counts *dumppb.Counts
	// uncommitted are the changes of one branch, until it is proven that they are those of one instant. named are the IDs of the
	// commits that branches and tags stand on, written those of all commits that the dump has, in order.
	uncommitted, named, written spool
}

func (d *dumping) run(ctx context.Context, program string) error {
	if err := d.header(program); err != nil {
		return err
	}
	// What refers to commits comes before them: see graveler.Contents.
	for _, part := range []func(context.Context) error{d.settings, d.pins, d.tags, d.logs, d.commits, d.lateCommits, d.checkNamed, d.expirations, d.logStarts, d.StillThere} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return d.trailer()
}

func (d *dumping) header(program string) error {
	r := d.Repository()
	return d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Header{Header: &dumppb.Header{
		Format: Format, Program: program, Time: time.Now().UnixNano(), Repository: string(r.ID), Uid: r.UID, Namespace: r.Namespace,
		DefaultBranch: string(r.DefaultBranch), CreatedAt: nanoseconds(r.CreatedAt), ReadOnly: r.ReadOnly,
	}}})
}

func (d *dumping) trailer() error {
	err := d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Trailer{Trailer: &dumppb.Trailer{Counts: d.counts, Sha256: hex.EncodeToString(d.sum.Sum(nil))}}})
	return errors.Join(err, d.w.Flush())
}

func (d *dumping) write(r *dumppb.DumpRecord) error {
	count(d.counts, r)
	line, err := encode(r)
	if err != nil {
		return err
	}
	return d.writeLine(line)
}

func (d *dumping) writeLine(line []byte) error {
	d.sum.Write(line)
	_, err := d.w.Write(line)
	return err
}

// writeAll writes a record for each item.
func writeAll[T any](d *dumping, items iter.Seq2[T, error], record func(T) *dumppb.DumpRecord) error {
	for item, err := range items {
		if err == nil {
			err = d.write(record(item))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dumping) settings(ctx context.Context) error {
	return writeAll(d, d.Settings(ctx), func(s graveler.Setting) *dumppb.DumpRecord {
		return &dumppb.DumpRecord{Record: &dumppb.DumpRecord_Setting{Setting: &dumppb.Setting{Name: s.Name, Document: s.Document}}}
	})
}

func (d *dumping) pins(ctx context.Context) error {
	return writeAll(d, d.Pins(ctx), func(p graveler.Pin) *dumppb.DumpRecord {
		return &dumppb.DumpRecord{Record: &dumppb.DumpRecord_Pin{Pin: pinData(p)}}
	})
}

func (d *dumping) tags(ctx context.Context) error {
	for t, err := range d.Tags(ctx) {
		if err == nil {
			err = d.named.addID(t.Commit)
		}
		if err == nil {
			err = d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Tag{Tag: &dumppb.Tag{Id: string(t.ID), Commit: string(t.Commit)}}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// logs writes the branches: every one, live or deleted, has a log. So that none is left out without a word if a store says
// otherwise, those that live are listed first.
func (d *dumping) logs(ctx context.Context) error {
	missing := map[graveler.LogName]struct{}{}
	for log, err := range d.LiveLogs(ctx) {
		if err != nil {
			return err
		}
		missing[log] = struct{}{}
	}
	for log, err := range d.Logs(ctx) {
		if err == nil {
			err = d.branch(ctx, log)
		}
		if errors.Is(err, graveler.ErrBranchNotFound) {
			err = d.deletedBranch(ctx, log)
		}
		if err != nil {
			return err
		}
		delete(missing, log)
	}
	for log := range missing {
		if err := d.checkGone(ctx, log); err != nil {
			return err
		}
	}
	return nil
}

// checkGone makes sure that a branch without a log lives no more.
func (d *dumping) checkGone(ctx context.Context, log graveler.LogName) error {
	err := d.ReadBranch(ctx, log, func(graveler.Branch, iter.Seq2[graveler.Entry, error]) error { return nil })
	switch {
	case err == nil:
		return fmt.Errorf("branch %s: %w: no log is that of its UID %s", log.Branch, graveler.ErrCorrupt, log.UID)
	case errors.Is(err, graveler.ErrBranchNotFound):
		return nil
	default:
		return err
	}
}

func (d *dumping) branch(ctx context.Context, log graveler.LogName) error {
	var branch graveler.Branch
	err := d.ReadBranch(ctx, log, func(b graveler.Branch, changes iter.Seq2[graveler.Entry, error]) error {
		branch = b
		err := d.uncommitted.reset()
		for e, entryErr := range changes {
			if err = errors.Join(err, entryErr); err == nil {
				err = d.spoolEntry(e)
			}
			if err != nil {
				break
			}
		}
		return err
	})
	if err == nil {
		err = d.named.addID(branch.Head)
	}
	if err == nil {
		err = d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Branch{Branch: branchData(branch)}})
	}
	if err == nil {
		err = d.moves(d.EarlierMoves(ctx, branch))
	}
	if err != nil {
		return err
	}
	d.counts.Entries += d.uncommitted.lines
	for line, err := range d.uncommitted.each() {
		if err == nil {
			err = d.writeLine(line)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dumping) spoolEntry(e graveler.Entry) error {
	line, err := encode(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Entry{Entry: entryData(e)}})
	if err != nil {
		return err
	}
	return d.uncommitted.add(line)
}

func (d *dumping) deletedBranch(ctx context.Context, log graveler.LogName) error {
	begun := false
	for m, err := range d.DeletedMoves(ctx, log) {
		if err == nil && !begun { // a log without moves is of a branch that was never made
			err = d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_DeletedBranch{DeletedBranch: &dumppb.DeletedBranch{Id: string(log.Branch), Uid: log.UID}}})
			begun = true
		}
		if err == nil {
			err = d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_Move{Move: moveData(m)}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *dumping) moves(moves iter.Seq2[graveler.Move, error]) error {
	return writeAll(d, moves, func(m graveler.Move) *dumppb.DumpRecord {
		return &dumppb.DumpRecord{Record: &dumppb.DumpRecord_Move{Move: moveData(m)}}
	})
}

func (d *dumping) expirations(ctx context.Context) error {
	return writeAll(d, d.Expirations(ctx), func(e graveler.Expiration) *dumppb.DumpRecord {
		return &dumppb.DumpRecord{Record: &dumppb.DumpRecord_Expiration{Expiration: &dumppb.Expiration{Commit: string(e.Commit), At: e.At}}}
	})
}

func (d *dumping) logStarts(ctx context.Context) error {
	for log, err := range d.Logs(ctx) {
		if err != nil {
			return err
		}
		start, err := d.LogStart(ctx, log)
		if err == nil && start != 0 {
			err = d.write(&dumppb.DumpRecord{Record: &dumppb.DumpRecord_LogStart{LogStart: &dumppb.LogStart{Branch: string(log.Branch), BranchUid: log.UID, Time: start}}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}
