// SPDX-License-Identifier: Apache-2.0

package pebble_test

import (
	"path/filepath"
	"testing"

	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/pebble"
)

func TestConformance(t *testing.T) {
	kvtest.Run(t, kvtest.Harness{
		Open:    pebble.Open,
		NewURL:  func(t *testing.T) string { return "pebble:" + filepath.Join(t.TempDir(), "new", "meta") },
		Durable: true,
	})
}
