// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler/dump/dumppb"
)

// ErrInvalid: what was read is not a dump, or was altered, or cut off.
var ErrInvalid = errors.New("not a valid dump")

// read calls visit for each record of a dump between the first one, the header, and the trailer, both included. It checks form,
// order, counts and checksum; the last two only at the end, so that whoever acts on a record before read has returned nil must be
// able to take it back.
func read(r io.Reader, visit func(*dumppb.DumpRecord) error) error {
	lines := newScanner(r)
	sum := sha256.New()
	counts := &dumppb.Counts{}
	var o order
	number := 0
	for lines.Scan() {
		number++
		record, err := decode(lines.Bytes(), number == 1)
		if err == nil {
			err = o.next(record)
		}
		if t := record.GetTrailer(); err == nil && t != nil && (t.Sha256 != hex.EncodeToString(sum.Sum(nil)) || !proto.Equal(t.Counts, counts)) {
			err = fmt.Errorf("%w: the lines before are not those that were written: it was altered", ErrInvalid)
		}
		if err == nil {
			err = visit(record)
		}
		if errors.Is(err, ErrInvalid) {
			return fmt.Errorf("line %d: %w", number, err)
		}
		if err != nil {
			return err
		}
		count(counts, record)
		sum.Write(lines.Bytes())
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("line %d: %w: it has more than %d bytes", number+1, ErrInvalid, maxLineBytes)
	case errors.Is(err, errCutOff):
		return fmt.Errorf("line %d: %w: %w", number+1, ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("read line %d: %w", number+1, err)
	case number == 0:
		return fmt.Errorf("%w: it is empty", ErrInvalid)
	case o.at != atTrailer:
		return fmt.Errorf("%w: it ends after line %d, without a trailer: it was cut off", ErrInvalid, number)
	}
	return nil
}

// count adds a record to the counts of a dump.
func count(c *dumppb.Counts, r *dumppb.DumpRecord) {
	switch r.Record.(type) {
	case *dumppb.DumpRecord_Setting:
		c.Settings++
	case *dumppb.DumpRecord_Pin:
		c.Pins++
	case *dumppb.DumpRecord_Tag:
		c.Tags++
	case *dumppb.DumpRecord_Branch:
		c.Branches++
	case *dumppb.DumpRecord_DeletedBranch:
		c.DeletedBranches++
	case *dumppb.DumpRecord_Move:
		c.Moves++
	case *dumppb.DumpRecord_Entry:
		c.Entries++
	case *dumppb.DumpRecord_Commit:
		c.Commits++
	case *dumppb.DumpRecord_Expiration:
		c.Expirations++
	case *dumppb.DumpRecord_LogStart:
		c.LogStarts++
	}
}

// section is a part of a dump; they come in this order.
type section int

const (
	atStart section = iota
	atHeader
	atSettings
	atPins
	atTags
	atBranches
	atCommits
	atExpirations
	atLogStarts
	atTrailer
)

// order makes sure that lines come in the order of a dump, which also keeps anything from coming twice, and that they have the
// names by which they are ordered.
type order struct {
	at   section
	last string // of the section
	// Within a branch:
	live      bool
	entries   bool  // they have begun, so that no move may follow
	lastMove  int64 // the last one that came
	beforeAll int64 // of a live branch: the move in its record, which comes after all others
	lastKey   []byte
}

func (o *order) next(r *dumppb.DumpRecord) error {
	switch m := r.Record.(type) {
	case *dumppb.DumpRecord_Header:
		if o.at != atStart {
			return misplaced("a second header")
		}
		o.at = atHeader
		return nil
	case *dumppb.DumpRecord_Setting:
		return o.enter(atSettings, m.Setting.Name)
	case *dumppb.DumpRecord_Pin:
		return o.enter(atPins, m.Pin.Owner)
	case *dumppb.DumpRecord_Tag:
		return o.enter(atTags, m.Tag.Id)
	case *dumppb.DumpRecord_Branch:
		o.live, o.beforeAll = true, m.Branch.GetLastMove().GetTime()
		if m.Branch.LastMove != nil {
			if err := checkMove(m.Branch.LastMove); err != nil {
				return err
			}
		}
		return o.enterBranch(m.Branch.Id, m.Branch.Uid)
	case *dumppb.DumpRecord_DeletedBranch:
		o.live = false
		return o.enterBranch(m.DeletedBranch.Id, m.DeletedBranch.Uid)
	case *dumppb.DumpRecord_Move:
		return o.move(m.Move)
	case *dumppb.DumpRecord_Entry:
		return o.entry(m.Entry)
	case *dumppb.DumpRecord_Commit:
		if o.at == atCommits {
			o.last = "" // they come in any order
		}
		return o.enter(atCommits, m.Commit.Id)
	case *dumppb.DumpRecord_Expiration:
		return o.enter(atExpirations, m.Expiration.Commit)
	case *dumppb.DumpRecord_LogStart:
		return o.enterLog(atLogStarts, m.LogStart.Branch, m.LogStart.BranchUid)
	case *dumppb.DumpRecord_Trailer:
		return o.enter(atTrailer, "trailer")
	default:
		return fmt.Errorf("%w: it has no record", ErrInvalid)
	}
}

func misplaced(what string) error { return fmt.Errorf("%w: %s is out of order", ErrInvalid, what) }

// enter goes on to a line of a section, with a name that is greater than the last.
func (o *order) enter(s section, name string) error {
	switch {
	case o.at == atStart:
		return fmt.Errorf("%w: it does not begin with a header", ErrInvalid)
	case name == "":
		return fmt.Errorf("%w: it has no name", ErrInvalid)
	case s < o.at, s == o.at && name <= o.last:
		return misplaced(name)
	}
	o.at, o.last = s, name
	return nil
}

func (o *order) enterBranch(id, uid string) error {
	o.entries, o.lastMove, o.lastKey = false, 0, nil
	return o.enterLog(atBranches, id, uid)
}

func (o *order) enterLog(s section, branch, uid string) error {
	if uid == "" || strings.ContainsAny(uid, "/:") {
		return fmt.Errorf("%w: branch UID %q", ErrInvalid, uid)
	}
	return o.enter(s, branch+":"+uid)
}

func (o *order) move(m *dumppb.Move) error {
	if err := checkMove(m); err != nil {
		return err
	}
	if o.at != atBranches || o.entries || m.Time <= o.lastMove || o.live && m.Time >= o.beforeAll {
		return misplaced(fmt.Sprintf("a move at %d", m.Time))
	}
	o.lastMove = m.Time
	return nil
}

func checkMove(m *dumppb.Move) error {
	if m.Op <= 0 || m.Previous < 0 || m.Time <= m.Previous {
		return fmt.Errorf("%w: a move at %d after one at %d, by operation %d", ErrInvalid, m.Time, m.Previous, m.Op)
	}
	return nil
}

func (o *order) entry(m *dumppb.Entry) error {
	if o.at != atBranches || !o.live || bytes.Compare(m.Key, o.lastKey) <= 0 {
		return misplaced(fmt.Sprintf("the entry %q", m.Key))
	}
	o.entries, o.lastKey = true, m.Key
	return nil
}
