// SPDX-License-Identifier: Apache-2.0

package kv_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// opening returns an opener that always gives the same store.
func opening(s kv.Store) kv.Opener {
	return func(context.Context, string, kv.OpenOptions) (kv.Store, error) { return s, nil }
}

func TestOpenPicksTheEngineByScheme(t *testing.T) {
	var got string
	engines := kv.Engines{"one": mem.Open, "two": func(ctx context.Context, url string, o kv.OpenOptions) (kv.Store, error) {
		got = url
		return mem.New(), nil
	}}
	s, err := kv.Open(t.Context(), "TWO://host/path?x=y", engines, kv.OpenOptions{})
	require.NoError(t, err)
	require.Equal(t, "TWO://host/path?x=y", got)
	require.NoError(t, s.Close())
}

func TestOpenRefusesWhatNamesNoEngine(t *testing.T) {
	engines := kv.Engines{"mem": mem.Open, "bolt": mem.Open, "postgres": mem.Open}
	_, err := kv.Open(t.Context(), "redis://host", engines, kv.OpenOptions{})
	require.ErrorIs(t, err, kv.ErrUnknownEngine)
	require.EqualError(t, err, `open store: unknown engine "redis" (known: bolt, mem, postgres)`)

	for _, url := range []string{"", "/var/lib/meta.db", "meta.db", "host=h password=secret:1", ":x", "1a:x"} {
		_, err := kv.Open(t.Context(), url, engines, kv.OpenOptions{})
		require.ErrorIs(t, err, kv.ErrInvalidURL)
		require.ErrorContains(t, err, "no scheme")
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = kv.Open(t.Context(), "mem:", nil, kv.OpenOptions{})
	require.ErrorContains(t, err, "known: none")
}

func TestOpenHidesCredentials(t *testing.T) {
	cause := errors.New("no route")
	engines := kv.Engines{"pg": func(context.Context, string, kv.OpenOptions) (kv.Store, error) { return nil, cause }}
	_, err := kv.Open(t.Context(), "pg://user:secret@host/db?password=secret", engines, kv.OpenOptions{})
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "open store pg://xxxxx@host/db?password=xxxxx: no route")
}

func TestRedact(t *testing.T) {
	for url, want := range map[string]string{
		"bolt:data/meta.db":                        "bolt:data/meta.db",
		"bolt:///var/lib/meta.db":                  "bolt:///var/lib/meta.db",
		"mem:":                                     "mem:",
		"postgres://host/db":                       "postgres://host/db",
		"postgres://user:secret@host/db":           "postgres://xxxxx@host/db",
		"postgres://secret@host/db":                "postgres://xxxxx@host/db",
		"postgres://user:se@cr/et?#@host/db":       "postgres://xxxxx@host/db",
		"postgres://user:sec%ret@host":             "postgres://xxxxx@host",
		"postgres:///db?user=u&password=secret&x":  "postgres:///db?user=xxxxx&password=xxxxx&xxxxx",
		"postgres://h/db?password=se=cret&sslmode": "postgres://h/db?password=xxxxx&xxxxx",
		"user:secret@host":                         "user:xxxxx@host",
		"secret":                                   "xxxxx",
		"host=h password=secret":                   "xxxxx",
		"postgres:host=h password=secret":          "postgres:xxxxx",
		"postgres://host:secret/db":                "postgres://host:xxxxx/db",
		"postgres://host:5432/db":                  "postgres://host:5432/db",
		"postgres://[::1]/db":                      "postgres://[::1]/db",
	} {
		require.Equal(t, want, kv.Redact(url))
		require.NotContains(t, kv.Redact(url), "secret")
	}
}

func TestOpenMarksANewStoreOnce(t *testing.T) {
	inner := mem.New()
	c := kvtest.Counting(inner)
	engines := kv.Engines{"mem": opening(c)}
	_, err := kv.Open(t.Context(), "mem:", engines, kv.OpenOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"Get": 1, "SetIf": 1}, c.Counts())
	item, err := inner.Get(t.Context(), []byte("kv-internal-metadata"), []byte("kv/schema/version"))
	require.NoError(t, err)
	require.Equal(t, "1", string(item.Value))

	c.Reset()
	_, err = kv.Open(t.Context(), "mem:", engines, kv.OpenOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"Get": 1}, c.Counts())
}

func TestOpenReadOnlyWritesNothing(t *testing.T) {
	c := kvtest.Counting(mem.New())
	_, err := kv.Open(t.Context(), "mem:", kv.Engines{"mem": opening(c)}, kv.OpenOptions{ReadOnly: true})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"Get": 1}, c.Counts())
}

func TestOpenRefusesASchemaItDoesNotKnow(t *testing.T) {
	for stored, want := range map[string]error{
		"2": kv.ErrSchemaNewer, "10": kv.ErrSchemaNewer,
		"": kv.ErrNotAStore, "0": kv.ErrNotAStore, "-1": kv.ErrNotAStore, "one": kv.ErrNotAStore, "99999999999": kv.ErrNotAStore,
	} {
		s := mem.New()
		require.NoError(t, s.Set(t.Context(), []byte(kv.SchemaPartition), []byte(kv.SchemaKey), []byte(stored)))
		_, err := kv.Open(t.Context(), "mem:", kv.Engines{"mem": opening(s)}, kv.OpenOptions{})
		require.ErrorIs(t, err, want, stored)
		if want == kv.ErrSchemaNewer {
			require.ErrorContains(t, err, "store has version "+stored+", this program knows up to 1")
		}
		require.ErrorIs(t, s.Set(t.Context(), []byte("p"), []byte("k"), []byte("v")), kv.ErrClosed, "left open")
	}
}

// raced is a store that somebody else opens between the look at the version and its writing.
type raced struct {
	kv.Store
	version string
}

func (r *raced) SetIf(ctx context.Context, partition, key, value []byte, p kv.Predicate) error {
	if err := r.Set(ctx, partition, key, []byte(r.version)); err != nil {
		return err
	}
	return r.Store.SetIf(ctx, partition, key, value, p)
}

func TestOpenAtTheSameMomentAsAnother(t *testing.T) {
	_, err := kv.Open(t.Context(), "mem:", kv.Engines{"mem": opening(&raced{mem.New(), "1"})}, kv.OpenOptions{})
	require.NoError(t, err)
	_, err = kv.Open(t.Context(), "mem:", kv.Engines{"mem": opening(&raced{mem.New(), "7"})}, kv.OpenOptions{})
	require.ErrorIs(t, err, kv.ErrSchemaNewer)
	require.True(t, strings.Contains(err.Error(), "version 7"), err)
}
