// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Records are what our own tables hold beside the old ones, as JSON. Names of fields are never changed; times are nanoseconds since the epoch.

type repositoryRecord struct {
	UID      string                   `json:"uid"`
	Created  *int64                   `json:"created,omitempty"` // nil: no time
	State    graveler.RepositoryState `json:"state"`
	ReadOnly bool                     `json:"read_only,omitempty"`
	Adopting bool                     `json:"adopting,omitempty"`
	Nonce    string                   `json:"nonce"`
}

type branchRecord struct {
	UID       string               `json:"uid"`
	State     graveler.BranchState `json:"state"`
	Counter   uint64               `json:"counter,omitempty"`
	Items     []itemRecord         `json:"items,omitempty"`
	Base      graveler.MetaRangeID `json:"base,omitempty"`
	Hidden    bool                 `json:"hidden,omitempty"`
	Protected graveler.Actions     `json:"protected,omitempty"`
	ReadOnly  bool                 `json:"read_only,omitempty"`
	LastMove  *moveRecord          `json:"last_move,omitempty"`
	Nonce     string               `json:"nonce"`
}

type itemRecord struct {
	Number uint64                `json:"number"`
	Token  graveler.StagingToken `json:"token,omitempty"`
	Prefix graveler.Key          `json:"prefix,omitempty"`
}

type moveRecord struct {
	Time             int64             `json:"time"`
	Previous         int64             `json:"previous,omitempty"`
	Op               graveler.Op       `json:"op"`
	Old              graveler.CommitID `json:"old,omitempty"`
	New              graveler.CommitID `json:"new,omitempty"`
	CommittedThrough uint64            `json:"committed_through,omitempty"`
	Actor            string            `json:"actor,omitempty"`
}

type commitRecord struct {
	Created    *int64 `json:"created,omitempty"` // nil: no time
	Generation int64  `json:"generation"`
	LogTime    int64  `json:"log_time"`
	Nonce      string `json:"nonce"`
}

type pinRecord struct {
	Trees []graveler.MetaRangeID `json:"trees,omitempty"`
	Logs  map[string]int64       `json:"logs,omitempty"`
}

type cleanupRecord struct {
	Partition     string                `json:"partition"`
	Registered    int64                 `json:"registered"`
	RepositoryID  graveler.RepositoryID `json:"repository"`
	RepositoryUID string                `json:"uid"`
	Branch        graveler.BranchID     `json:"branch,omitempty"`
	Namespace     string                `json:"namespace,omitempty"`
}

// encode returns a record as it is stored.
func encode(record any) (string, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("%w: %w", graveler.ErrInvalidValue, err)
	}
	return string(text), checkSize(len(text))
}

// decode reads the record that a table has in a row.
func decode(table, key, text string, record any) error {
	if err := json.Unmarshal([]byte(text), record); err != nil {
		return corrupt(table, key, err)
	}
	return nil
}

// checkText refuses what would not come back as it is: texts that are not UTF-8, those with a zero byte, and all together what is
// larger than the value of a key/value store may be.
func checkText[T ~string](texts ...T) error {
	size := 0
	for _, t := range texts {
		size += len(t)
	}
	if err := checkSize(size); err != nil {
		return err
	}
	for _, t := range texts {
		if !utf8.ValidString(string(t)) || strings.ContainsRune(string(t), 0) {
			return invalid("%.100q is not UTF-8, or has a zero byte", t)
		}
	}
	return nil
}

func checkSize(bytes int) error {
	if bytes > kv.MaxValueBytes {
		return fmt.Errorf("%w: record of %d bytes, at most %d", graveler.ErrTooLarge, bytes, kv.MaxValueBytes)
	}
	return nil
}

// nanoseconds is the stored form of a time: nil for the zero time, which is no instant.
func nanoseconds(t time.Time) (*int64, error) {
	if t.IsZero() {
		return nil, nil
	}
	ns := t.UnixNano()
	if !time.Unix(0, ns).Equal(t) {
		return nil, invalid("time %s is out of range", t)
	}
	return &ns, nil
}

func instant(ns *int64) time.Time {
	if ns == nil {
		return time.Time{}
	}
	return time.Unix(0, *ns).UTC()
}

// checkMove says why a move cannot be one, whether it was read or is to be written. An operation that this program does not know
// is fine: a head moved, whatever the reason is called.
func checkMove(m graveler.Move) error {
	if m.Op <= 0 {
		return fmt.Errorf("move has operation %d", m.Op)
	}
	if m.Previous < 0 || m.Time <= m.Previous {
		return fmt.Errorf("move at %d follows one at %d", m.Time, m.Previous)
	}
	return nil
}

func moveTexts(m graveler.Move) []string { return []string{string(m.Old), string(m.New), m.Actor} }

// checkUID refuses what is no UID.
func checkUID(uid string) error {
	if uid == "" || strings.ContainsAny(uid, "/:") {
		return invalid("branch UID %q", uid)
	}
	return checkText(uid)
}
