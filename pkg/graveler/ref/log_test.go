// SPDX-License-Identifier: Apache-2.0

package ref_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func isNotFound(err error) bool { return errors.Is(err, graveler.ErrNotFound) }

func TestAMoveIsStoredWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store, repo := mem.New(), repository()
		defer func() { require.NoError(t, store.Close()) }()
		m := stest.Full[graveler.Move](t)
		require.NoError(t, ref.New(store).PutMove(context.Background(), repo, uid, *m))
		requireEveryFieldStored(t, store, repo.Partition(), keys(t, store, repo.Partition())[0])
	})
}
