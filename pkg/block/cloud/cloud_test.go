// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	_ "gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/blocktest"
	"github.com/moraine-store/moraine/pkg/block/cloud"
)

func TestConformanceInMemory(t *testing.T) {
	blocktest.Run(t, func(t *testing.T) blocktest.Harness {
		s := cloud.New(memblob.OpenBucket(nil))
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return blocktest.Harness{Forgetful: true, Open: func(_ context.Context, o block.OpenOptions) (block.Storage, error) {
			if o.ReadOnly {
				return block.ReadOnly(s), nil
			}
			return s, nil
		}}
	})
}

// fileURL makes fileblob keep plain files, and none in other directories.
func fileURL(dir string) string { return "file://" + dir + "?metadata=skip&no_tmp_dir=true" }

func TestConformanceOnFiles(t *testing.T) {
	blocktest.Run(t, func(t *testing.T) blocktest.Harness {
		dir := t.TempDir()
		return blocktest.Harness{Open: func(ctx context.Context, o block.OpenOptions) (block.Storage, error) {
			return block.Open(ctx, fileURL(dir), block.Engines{"file": cloud.Open}, o)
		}}
	})
}
