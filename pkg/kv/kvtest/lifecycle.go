// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/kv"
)

func lifecycle(t *testing.T, h Harness) {
	h.check(t, "a context that has ended stops every call, or the call is complete", endedContext)
	h.check(t, "a context that ends during writes leaves no lie", contextEndsMeanwhile)
	h.check(t, "every call after close says closed", useAfterClose)
	h.check(t, "close waits for what has begun", closeMeanwhile)
	h.check(t, "a store opened again has everything", reopen)
	h.check(t, "a store opened read-only refuses every write", readOnly)
	h.check(t, "the schema version is written and checked", schema)
}

func endedContext(t *testing.T, h Harness) {
	s := h.open(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
		require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
		for name, err := range everyCall(ctx, s, part, []byte("k"), []byte("v"), kv.Present) {
			if err != nil {
				require.ErrorIs(t, err, want, name)
			}
		}
		err := s.Set(ctx, part, []byte("once"), []byte("v"))
		if err == nil {
			requireValue(t, s, part, []byte("once"), "v")
		}
	}
}

// contextEndsMeanwhile cancels while many are writing. Whoever was told nil must find the value.
func contextEndsMeanwhile(t *testing.T, h Harness) {
	s := h.open(t)
	const writers = 16
	acknowledged := make([]int, writers)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var g errgroup.Group
	for w := range writers {
		g.Go(func() error {
			for n := 1; ; n++ {
				if w == 0 && n == 20 {
					cancel()
				}
				if err := s.Set(ctx, part, []byte{byte(w)}, []byte{byte(n), byte(n >> 8), byte(n >> 16)}); err != nil {
					return err
				}
				acknowledged[w] = n
			}
		})
	}
	require.ErrorIs(t, g.Wait(), context.Canceled)
	for w, n := range acknowledged {
		if n == 0 {
			continue
		}
		item, err := s.Get(t.Context(), part, []byte{byte(w)})
		require.NoError(t, err)
		stored := int(item.Value[0]) | int(item.Value[1])<<8 | int(item.Value[2])<<16
		require.GreaterOrEqual(t, stored, n)
		require.LessOrEqual(t, stored, n+1)
	}
}

func useAfterClose(t *testing.T, h Harness) {
	s := h.open(t)
	require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
	limits := s.Limits()
	require.NoError(t, s.Close())
	for name, err := range everyCall(t.Context(), s, part, []byte("k"), []byte("v"), kv.Present) {
		require.ErrorIs(t, err, kv.ErrClosed, name)
	}
	require.Equal(t, limits, s.Limits())
	require.NoError(t, s.Close())
}

func closeMeanwhile(t *testing.T, h Harness) {
	url := h.NewURL(t)
	s := h.openURL(t, url, kv.OpenOptions{})
	const writers = 8
	acknowledged := make([]int, writers)
	var g errgroup.Group
	begun := make(chan struct{}, writers)
	for w := range writers {
		g.Go(func() error {
			for n := 1; ; n++ {
				if err := s.Set(context.Background(), part, []byte{byte(w)}, []byte(strings.Repeat("x", n))); err != nil {
					return err
				}
				acknowledged[w] = n
				if n == 1 {
					begun <- struct{}{}
				}
				if _, err := s.Get(context.Background(), part, []byte{byte(w)}); err != nil {
					return err
				}
			}
		})
	}
	for range writers {
		<-begun
	}
	require.NoError(t, s.Close())
	require.ErrorIs(t, g.Wait(), kv.ErrClosed)
	if !h.Durable {
		return
	}
	s = h.openURL(t, url, kv.OpenOptions{})
	for w, n := range acknowledged {
		item, err := s.Get(t.Context(), part, []byte{byte(w)})
		require.NoError(t, err)
		require.Len(t, item.Value, n)
	}
}

func reopen(t *testing.T, h Harness) {
	if !h.Durable {
		return
	}
	url := h.NewURL(t)
	other := []byte("other\x00\xff")
	s := h.openURL(t, url, kv.OpenOptions{})
	keys := fill(t, s, part, 1000)
	require.NoError(t, s.Set(t.Context(), other, []byte("\x00"), []byte{}))
	require.NoError(t, s.Delete(t.Context(), part, []byte(keys[500])))
	item, err := s.Get(t.Context(), part, []byte(keys[0]))
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = h.openURL(t, url, kv.OpenOptions{})
	got, _ := scanAll(t, s, part, kv.ScanOptions{})
	require.Equal(t, append(append([]string{}, keys[:500]...), keys[501:]...), got)
	requireValue(t, s, other, []byte("\x00"), "")
	require.NoError(t, s.SetIf(t.Context(), part, []byte(keys[0]), []byte("new"), item.Predicate))
	require.NoError(t, kv.DropPartition(t.Context(), s, part))
	require.NoError(t, s.Close())

	s = h.openURL(t, url, kv.OpenOptions{})
	got, _ = scanAll(t, s, part, kv.ScanOptions{})
	require.Empty(t, got)
	requireValue(t, s, other, []byte("\x00"), "")
}

func readOnly(t *testing.T, h Harness) {
	url := h.NewURL(t)
	if h.Durable {
		s := h.openURL(t, url, kv.OpenOptions{})
		require.NoError(t, s.Set(t.Context(), part, []byte("k"), []byte("v")))
		require.NoError(t, s.Close())
	}
	s := h.openURL(t, url, kv.OpenOptions{ReadOnly: true})
	for name, err := range everyWrite(t.Context(), s, part, []byte("k"), []byte("w"), kv.Present) {
		if name == "DropPartition" && !h.Durable && err == nil {
			continue // without the capability, dropping what is empty writes nothing
		}
		require.ErrorIs(t, err, kv.ErrReadOnly, name)
	}
	keys, _ := scanAll(t, s, part, kv.ScanOptions{})
	if h.Durable {
		requireValue(t, s, part, []byte("k"), "v")
		require.Equal(t, []string{"k"}, keys)
	} else {
		requireMissing(t, s, part, []byte("k"))
		require.Empty(t, keys)
	}
	require.NoError(t, s.Close())
	for name, err := range everyCall(t.Context(), s, part, []byte("k"), []byte("w"), kv.Present) {
		require.ErrorIs(t, err, kv.ErrClosed, name)
	}
}

func schema(t *testing.T, h Harness) {
	url := h.NewURL(t)
	scheme, _, _ := strings.Cut(url, ":")
	engines := kv.Engines{scheme: h.Open}
	s, err := kv.Open(t.Context(), url, engines, kv.OpenOptions{})
	require.NoError(t, err)
	partition, key := []byte(kv.SchemaPartition), []byte(kv.SchemaKey)
	requireValue(t, s, partition, key, "1")
	require.NoError(t, s.Set(t.Context(), partition, key, []byte("999")))
	require.NoError(t, s.Close())
	if !h.Durable {
		return
	}
	for _, o := range []kv.OpenOptions{{}, {ReadOnly: true}} {
		_, err = kv.Open(t.Context(), url, engines, o)
		require.ErrorIs(t, err, kv.ErrSchemaNewer)
		require.ErrorContains(t, err, "999")
	}
}
