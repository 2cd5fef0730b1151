// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
)

// stepCounter counts the steps of the iterations over what is staged.
type stepCounter struct {
	graveler.Staging
	steps atomic.Int64
}

type countedSteps struct {
	graveler.Iterator[graveler.Entry]
	steps *atomic.Int64
}

func (s *stepCounter) Scan(ctx context.Context, token graveler.StagingToken, from, prefix graveler.Key) (graveler.Iterator[graveler.Entry], error) {
	it, err := s.Staging.Scan(ctx, token, from, prefix)
	return countedSteps{it, &s.steps}, err
}

func (c countedSteps) Next() bool {
	c.steps.Add(1)
	return c.Iterator.Next()
}

// openCounted opens an engine in memory, with trees in files. The calls of the files are counted, and the steps of staging.
func openCounted(t testing.TB) (*engine, *blocktest.Counter, *stepCounter) {
	t.Helper()
	e := openEngine(t, "mem:")
	blocks := blocktest.Counting(blockmem.New())
	trees, err := committed.New(committed.Config{Storage: func(_ context.Context, namespace string) (block.Storage, error) {
		return block.Sub(blocks, namespace), nil
	}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, trees.Close()) })
	steps := &stepCounter{Staging: e.config.Staging}
	e.config.Trees, e.config.Staging = trees, steps
	return e, blocks, steps
}
