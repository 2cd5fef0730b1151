// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"context"
	"errors"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moraine-store/moraine/pkg/kv"
)

// record is one that a script has spoilt, and what it was like when it was in order.
type record struct{ partition, key, value []byte }

// spoil does something to a record of the key/value store, past all that keeps it in order, or restores the one before. The
// record is the first of the partition whose key begins with a prefix.
func (s *script) spoil(ts *testscript.TestScript, args []string) {
	ctx := context.Background()
	store, err := s.engine.open(ctx, s.store, kv.OpenOptions{})
	ts.Check(err)
	switch {
	case args[0] == "restore" && s.spoilt != nil:
		err = errors.Join(store.Delete(ctx, s.spoilt.partition, s.spoilt.key), store.SetIf(ctx, s.spoilt.partition, s.spoilt.key, s.spoilt.value, kv.Absent))
		s.spoilt = nil
	case len(args) == 3 && s.spoilt == nil:
		err = s.spoilFirst(ctx, store, args[0], []byte(s.resolve(args[1])), []byte(s.resolve(args[2])))
	default:
		err = errors.New("nothing to restore, or something that has not been")
	}
	ts.Check(errors.Join(err, store.Close()))
}

func (s *script) spoilFirst(ctx context.Context, store kv.Store, how string, partition, prefix []byte) error {
	it, err := store.Scan(ctx, partition, kv.ScanOptions{Prefix: prefix})
	if err != nil {
		return err
	}
	if !it.Next() {
		return errors.Join(errors.New("no such record"), it.Close())
	}
	s.spoilt = &record{partition, it.Key(), it.Value()}
	if err := it.Close(); err != nil {
		return err
	}
	switch how {
	case "remove":
		return store.DeleteIf(ctx, partition, s.spoilt.key, kv.Present)
	case "overwrite":
		return store.SetIf(ctx, partition, s.spoilt.key, []byte("\xff"), kv.Present)
	}
	return errors.New(how + ": expected remove, overwrite or restore")
}
