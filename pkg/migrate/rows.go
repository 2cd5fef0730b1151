// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Rows as every layout gives them. Names compare as byte strings. A time is zero where there is none.

type repositoryRow struct {
	id, namespace, defaultBranch string
	uid                          string // of this instance, where the layout has that
	created                      time.Time
	readOnly                     bool
}

type branchRow struct {
	id     string
	tokens []string // that have what is uncommitted, the first one in front of the next
	commit string
	hidden bool
}

type tagRow struct{ id, commit string }

type commitRow struct {
	id, committer, message, tree string
	created                      time.Time
	metadata                     map[string]string
	parents                      []string // in the order of the row
	version                      int
	badMetadata, badParents      error // why these cannot be read
}

type stagedRow struct{ key, identity, data []byte } // identity nil: a tombstone

// commitHash is a commit ID in the memory that it needs.
type commitHash [32]byte

func parseCommitID(id string) (h commitHash, err error) {
	if len(id) != hex.EncodedLen(len(h)) || strings.Trim(id, "0123456789abcdef") != "" {
		return h, fmt.Errorf("commit ID %s: 64 hexadecimal digits are expected", quoted(id))
	}
	_, err = hex.Decode(h[:], []byte(id))
	return h, err
}

func (h commitHash) id() graveler.CommitID { return graveler.CommitID(hex.EncodeToString(h[:])) }

// appendParents adds the parents of a row in order, the main parent first: rows of version 0 have it last.
func (row commitRow) appendParents(to []commitHash) ([]commitHash, error) {
	if row.badParents != nil {
		return to, row.badParents
	}
	first := len(to)
	for _, p := range row.parents {
		h, err := parseCommitID(p)
		if err != nil {
			return to, fmt.Errorf("parent: %w", err)
		}
		to = append(to, h)
	}
	switch row.version {
	case 0:
		if parents := to[first:]; len(parents) > 1 {
			last := len(parents) - 1
			main := parents[last]
			copy(parents[1:], parents[:last])
			parents[0] = main
		}
	case 1:
	default:
		return to, fmt.Errorf("version %d: 0 or 1 is expected", row.version)
	}
	return to, nil
}

// timeOf returns an instant that nanoseconds since the epoch can say.
func timeOf(t time.Time) (time.Time, error) {
	first, last := time.Unix(0, math.MinInt64), time.Unix(0, math.MaxInt64)
	if t.Before(first) || t.After(last) {
		return time.Time{}, errors.New("its creation date is none between the years 1678 and 2262")
	}
	return t.UTC(), nil
}

// maxCommitBytes is how much text a commit may have, so that its record fits every engine.
const maxCommitBytes = 240 << 10

// check says why a row cannot become a commit, apart from its place in the history.
func (row commitRow) check() error {
	size := len(row.committer) + len(row.message) + 70*len(row.parents)
	valid := utf8.ValidString(row.committer) && utf8.ValidString(row.message)
	const perPair = 8 // what one takes in a record besides its text
	for k, v := range row.metadata {
		size += len(k) + len(v) + perPair
		valid = valid && utf8.ValidString(k) && utf8.ValidString(v)
	}
	switch {
	case row.badMetadata != nil:
		return row.badMetadata
	case size > maxCommitBytes:
		return fmt.Errorf("%w: committer, message and metadata of %d bytes, at most %d are allowed", graveler.ErrTooLarge, size, maxCommitBytes)
	case !valid:
		return errors.New("committer, message or metadata is not UTF-8")
	case row.tree != "" && (!utf8.ValidString(row.tree) || len(row.tree) > graveler.MaxKeyBytes):
		return fmt.Errorf("%w: metarange ID", graveler.ErrInvalidValue)
	}
	return nil
}

// entry returns the entry that a row stages. A tombstone has no identity, which is NULL, and no data, whether that is NULL or empty.
func (row stagedRow) entry() (graveler.Entry, error) {
	e := graveler.Entry{Key: row.key}
	if row.identity == nil {
		if len(row.data) > 0 {
			return e, fmt.Errorf("%w: a tombstone with data", graveler.ErrInvalidValue)
		}
		return e, graveler.ValidateEntry(e)
	}
	e.Value = &graveler.Value{Identity: row.identity, Data: row.data}
	return e, graveler.ValidateEntry(e)
}
