// SPDX-License-Identifier: Apache-2.0

package command

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
)

func TestAStoreThatHasSeenTheFutureCanBeReset(t *testing.T) {
	s := newLake(t)
	store, err := bolt.Open(s.Context(), s.global[1], kv.OpenOptions{})
	require.NoError(t, err)
	require.NoError(t, ref.New(store).AdvanceWatermark(s.Context(), time.Now().Add(48*time.Hour).UnixNano()))
	require.NoError(t, store.Close())

	commit := []string{"commit", "lake/main", "-m", "x", "--allow-empty"}
	require.Contains(t, s.fails(1, commit...), "'moraine clock' shows both times")
	require.Contains(t, s.ok("clock"), "-47h59m")
	s.fails(2, "clock", "--reset")
	s.fails(1, commit...)
	s.ok("clock", "--reset", "--force")
	s.ok(commit...)
}
