// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
)

const (
	leasesPrefix  = "leases/shard-"
	workersPrefix = "workers/"

	// maxTerm is the longest that a worker may be silent.
	maxTerm = time.Hour
)

var workerPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// Lease says who holds a shard.
type Lease struct {
	Shard  int
	Worker string
	Renewal
	stored []byte
}

// Member is a worker that is there, or was.
type Member struct {
	ID     string
	Shards []int // that it would take
	Renewal
	stored []byte
}

// Renewal is the sign of life in a record of a worker.
type Renewal struct {
	Until int64         // by the worker's clock, nanoseconds since the Unix epoch
	Epoch int64         // grows with each renewal, so that a record that stays the same has not been renewed, whatever the clocks say
	Term  time.Duration // after this time without renewal the record means nothing
}

// State is who is there and who holds what.
type State struct {
	Leases  []Lease  // by shard
	Members []Member // by ID
}

// leaseData and memberData are the stored forms. Both are for workers of the same time only, so they are held to the very bytes
// that this program writes.
type leaseData struct {
	Worker string `json:"worker"`
	renewalData
}

type memberData struct {
	renewalData
	Shards []int `json:"shards"`
}

type renewalData struct {
	Until int64 `json:"until_ns"`
	Epoch int64 `json:"epoch"`
	Term  int64 `json:"term_ns"`
}

func (r Renewal) data() renewalData { return renewalData{r.Until, r.Epoch, int64(r.Term)} }

func (d renewalData) renewal() (Renewal, error) {
	if d.Until < 0 || d.Epoch < 1 || d.Term < 1 || d.Term > int64(maxTerm) {
		return Renewal{}, fmt.Errorf("time %d, epoch %d or term %d is out of range", d.Until, d.Epoch, d.Term)
	}
	return Renewal{d.Until, d.Epoch, time.Duration(d.Term)}, nil
}

func leaseKey(shard int) string { return fmt.Sprintf("%s%02d", leasesPrefix, shard) }

func (l Lease) encode() ([]byte, error) { return json.Marshal(leaseData{l.Worker, l.data()}) }

func (m Member) encode() ([]byte, error) { return json.Marshal(memberData{m.data(), m.Shards}) }

func decodeLease(key string, value []byte) (Lease, error) {
	var d leaseData
	if err := decode(value, &d); err != nil {
		return Lease{}, cursor.Malformed(key, err)
	}
	r, err := d.renewal()
	l := Lease{-1, d.Worker, r, value}
	for shard := range lifecycle.Shards {
		if leaseKey(shard) == key {
			l.Shard = shard
		}
	}
	switch {
	case err != nil:
	case l.Shard < 0:
		err = errors.New("is of no shard")
	case !workerPattern.MatchString(l.Worker):
		err = fmt.Errorf("%q is no worker", l.Worker)
	}
	if err != nil {
		return Lease{}, cursor.Malformed(key, err)
	}
	return l, nil
}

func decodeMember(key string, value []byte) (Member, error) {
	var d memberData
	if err := decode(value, &d); err != nil {
		return Member{}, cursor.Malformed(key, err)
	}
	r, err := d.renewal()
	m := Member{strings.TrimPrefix(key, workersPrefix), d.Shards, r, value}
	if err = cmp.Or(err, checkShards(d.Shards)); err == nil && !workerPattern.MatchString(m.ID) {
		err = fmt.Errorf("%q is no worker", m.ID)
	}
	if err != nil {
		return Member{}, cursor.Malformed(key, err)
	}
	return m, nil
}

func decode(value []byte, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		return err
	}
	again, err := json.Marshal(into)
	if err == nil && !bytes.Equal(again, value) {
		err = errors.New("is not as it would be written")
	}
	return err
}

// checkShards wants at least one shard, ascending.
func checkShards(shards []int) error {
	if len(shards) == 0 {
		return errors.New("no shards")
	}
	for i, s := range shards {
		if s < 0 || s >= lifecycle.Shards {
			return fmt.Errorf("shard %d is not in [0,%d)", s, lifecycle.Shards)
		}
		if i > 0 && s <= shards[i-1] {
			return fmt.Errorf("shard %d follows %d", s, shards[i-1])
		}
	}
	return nil
}

// ReadState reads who is there and who holds what. A record that is malformed is left out, and the error then matches
// [cursor.ErrMalformed] and says which, beside the rest of the state; with any other error there is none.
func ReadState(ctx context.Context, store kv.Store) (State, error) {
	leases, leasesErr, err := scan(ctx, store, leasesPrefix, decodeLease)
	if err != nil {
		return State{}, err
	}
	members, membersErr, err := scan(ctx, store, workersPrefix, decodeMember)
	if err != nil {
		return State{}, err
	}
	return State{leases, members}, errors.Join(leasesErr, membersErr)
}

func scan[T any](ctx context.Context, store kv.Store, prefix string, decode func(key string, value []byte) (T, error)) (all []T, malformed, err error) {
	it, err := store.Scan(ctx, []byte(cursor.Partition), kv.ScanOptions{Prefix: []byte(prefix)})
	if err != nil {
		return nil, nil, fmt.Errorf("scan %s: %w", prefix, err)
	}
	for it.Next() {
		record, err := decode(string(it.Key()), it.Value())
		if err != nil {
			malformed = errors.Join(malformed, err)
			continue
		}
		all = append(all, record)
	}
	if err := it.Close(); err != nil {
		return nil, nil, fmt.Errorf("scan %s: %w", prefix, err)
	}
	return all, malformed, nil
}
