// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func TestABackendOfOnesOwnTakesThePlaceOfAnEngine(t *testing.T) {
	engine := mem.New()
	defer func() { require.NoError(t, engine.Close()) }()
	own := struct {
		graveler.Refs
		graveler.Staging
	}{ref.New(engine), staging.New(engine)}
	for _, o := range []moraine.Options{{Backend: own, Store: "mem:"}, {Backend: own, KV: engine}, {}} {
		o.Blocks = "mem:"
		_, err := moraine.Open(t.Context(), o)
		require.ErrorContains(t, err, "give either")
	}
	s, err := moraine.Open(t.Context(), moraine.Options{Backend: own, Blocks: "mem:"})
	require.NoError(t, err)
	_, err = s.CreateRepository(t.Context(), "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.NoError(t, s.Set(t.Context(), "lake", "main", graveler.Key("a"), graveler.Value{Identity: []byte("i")}))
	for _, err := range s.Check(t.Context(), fsck.Options{}, nil) {
		require.ErrorIs(t, err, fsck.ErrNoKV)
	}
	require.NoError(t, s.Close())
	_, err = own.GetRepository(t.Context(), "lake")
	require.NoError(t, err, "it stays open")
}
