// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"context"
	"errors"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func errorsIsInjected(err error) bool { return errors.Is(err, kvtest.ErrInjected) }

// checkSound has the target checked, dumped and loaded.
func checkSound(t fataler, s *sides) {
	t.Helper()
	ctx, m := context.Background(), s.migration(t)
	for _, f := range collect(t, fsck.New(s.kv, s.trees).Check(ctx, fsck.Options{}, nil)) {
		require.NotEqual(t, fsck.Damage, f.Severity, "%v", f)
		require.NotEqual(t, fsck.Unverified, f.Kind)
	}
	for id := range repositoryUIDs(t, s) {
		var text bytes.Buffer
		require.NoError(t, dump.Write(ctx, m.Graveler, id, "test", &text))
		to := s.over(t, mem.New()).Graveler
		_, err := dump.Load(ctx, to, id, &text, dump.LoadParams{})
		require.NoError(t, err)
		require.Equal(t, collect(t, m.Graveler.ListCommits(ctx, id, "")), collect(t, to.ListCommits(ctx, id, "")))
	}
}

// damageMessage gives a commit's record another message.
func damageMessage(t fataler, record []byte) []byte {
	t.Helper()
	c := &refpb.CommitData{}
	require.NoError(t, proto.Unmarshal(record, c))
	c.Message += "!"
	record, err := kv.MarshalMessage(c)
	require.NoError(t, err)
	return record
}

// checkDamage makes sure that a check finds something.
func checkDamage(t fataler, s *sides, want string) {
	t.Helper()
	var found []string
	for _, f := range collect(t, fsck.New(s.kv, s.trees).Check(context.Background(), fsck.Options{}, nil)) {
		if f.Severity == fsck.Damage {
			found = append(found, f.What)
		}
	}
	require.Len(t, found, 1)
	require.Contains(t, found[0], want)
}
