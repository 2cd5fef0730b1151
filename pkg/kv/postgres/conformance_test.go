// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
)

func TestConformance(t *testing.T) {
	server := testpg.Start(t)
	kvtest.Run(t, kvtest.Harness{
		Open:    postgres.Open,
		NewURL:  func(t *testing.T) string { return server.NewDatabase(t) },
		Durable: true,
	})
}
