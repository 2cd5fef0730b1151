// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moraine-store/moraine/cmd/moraine/command"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
	"github.com/moraine-store/moraine/pkg/migrate/facade"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// A facade's first side are the SQL tables of a database, its second one is the key/value store in it. Its URL is that of the
// database, with a scheme that says which kinds the second side has. Each side follows the other, so that whatever is read must
// be the same on both: a command says what is not, which no golden text has.
const facadeScheme = "facade"

// routing are the kinds that the second side has.
type routing []facade.Kind

func (r routing) scheme() string {
	scheme := facadeScheme
	for _, k := range r {
		scheme += "-" + k.String()
	}
	return scheme
}

// routings are all that part kinds.
func routings() (all []routing) {
	for i := 1; i < 1<<len(facade.Kinds())-1; i++ {
		var r routing
		for _, k := range facade.Kinds() {
			if i&(1<<k) != 0 {
				r = append(r, k)
			}
		}
		all = append(all, r)
	}
	return all
}

// facadeEngines are what scripts run on that must not notice a migration: two, such that each kind is once on either side, and in
// a nightly run all of them.
func facadeEngines(sql engine) (engines []engine) {
	without := maps.Clone(sql.without)
	without["bench.txtar"] = "the benchmarks open stores by themselves"
	without["uploads.txtar"] = "it opens the store by itself, to begin uploads"
	without["changes.txtar"] = "a command reads while others write, and what is written between the reads of two sides is a difference"
	chosen := []routing{{facade.Repositories, facade.Branches}, {facade.Commits, facade.Tags}}
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		chosen = routings()
	}
	for _, r := range chosen {
		engines = append(engines, engine{r.scheme(), nil, func(tb testing.TB, _ string) string {
			_, rest, _ := strings.Cut(testpg.Start(tb).NewDatabase(tb), ":")
			return r.scheme() + ":" + rest
		}, without})
	}
	return engines
}

// facades are the back ends of the program moraine in scripts.
func facades() command.Backends {
	all := command.Backends{}
	for _, r := range routings() {
		all[r.scheme()] = r.open
	}
	return all
}

// sides is a facade with what it is made of.
type sides struct {
	facade.Backend
	close func() error
}

func (s sides) Close() error { return s.close() }

func (r routing) open(ctx context.Context, url string, o kv.OpenOptions) (command.Backend, error) {
	_, rest, _ := strings.Cut(url, ":")
	tables, err := sqlstore.Open(ctx, sqlstore.Scheme+":"+rest, o)
	if err != nil {
		return nil, err
	}
	store, err := postgres.Open(ctx, "postgres:"+rest, o)
	if err != nil {
		return nil, errors.Join(err, tables.Close())
	}
	first, second := facade.Backend{Refs: tables, Staging: tables}, facade.Backend{Refs: ref.New(store), Staging: staging.New(store)}
	routes := facade.Routes{}
	for _, k := range facade.Kinds() {
		routes[k] = slices.Contains(r, k)
	}
	both, err := facade.New(facade.Config{
		First: following(first, second), Second: following(second, first), Routes: routes, Shadow: facade.Kinds(),
		Report: func(_ context.Context, d facade.Difference) { fmt.Fprintln(os.Stderr, d) },
	})
	return sides{both, func() error { return errors.Join(store.Close(), tables.Close()) }}, err
}
