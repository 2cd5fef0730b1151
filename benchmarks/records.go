// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"strings"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// isSQL reports whether the URL of a store names the tables of older deployments.
func isSQL(url string) bool {
	scheme, _, _ := strings.Cut(url, ":")
	return strings.EqualFold(scheme, sqlstore.Scheme)
}

// openRecords opens the key/value engine of the bench, or the tables that stand in its place.
func (b *bench) openRecords(ctx context.Context) (err error) {
	if isSQL(b.storeURL) {
		b.tables, err = sqlstore.Open(ctx, b.storeURL, kv.OpenOptions{})
		return err
	}
	engine, err := kv.Open(ctx, b.storeURL, all.Engines(), kv.OpenOptions{})
	if err != nil {
		return err
	}
	if b.plant != nil {
		engine = b.plant(engine)
	}
	b.kv = &measure.Store{Store: engine}
	return nil
}

func (b *bench) closeRecords() error {
	if b.kv == nil {
		return b.tables.Close()
	}
	return b.kv.Close()
}
