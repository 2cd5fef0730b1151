// SPDX-License-Identifier: Apache-2.0

package sqlstore_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

// sqlURL is the URL of a store in the database that has a URL.
func sqlURL(database string) string {
	return sqlstore.Scheme + "://" + strings.TrimPrefix(database, "postgres://")
}

func openStore(t testing.TB, url string, o kv.OpenOptions) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), url, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newStore(t testing.TB) *sqlstore.Store {
	return openStore(t, sqlURL(testpg.Start(t).NewDatabase(t)), kv.OpenOptions{})
}

func TestRefs(t *testing.T) {
	stest.Refs(t, func(t *testing.T) graveler.Refs { return newStore(t) })
}

func TestStaging(t *testing.T) {
	stest.Staging(t, func(t *testing.T) (graveler.Refs, graveler.Staging) {
		s := newStore(t)
		return s, s
	})
}
