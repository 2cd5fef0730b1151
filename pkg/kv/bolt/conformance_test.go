// SPDX-License-Identifier: Apache-2.0

package bolt_test

import (
	"path/filepath"
	"testing"

	"github.com/moraine-store/moraine/pkg/kv/bolt"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
)

func TestConformance(t *testing.T) {
	kvtest.Run(t, kvtest.Harness{
		Open:    bolt.Open,
		NewURL:  func(t *testing.T) string { return "bolt:" + filepath.Join(t.TempDir(), "new", "meta.db") },
		Durable: true,
	})
}
