// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/cache"
	"github.com/moraine-store/moraine/pkg/block/mem"
)

// slow is a storage whose Get, having read the file, waits until it is told to go on.
type slow struct {
	block.Storage
	gets int // read when all goroutines wait
	goOn chan struct{}
	ends int  // of contexts
	deaf bool // notices the end of a context only when it goes on
}

func (s *slow) Get(ctx context.Context, name string) ([]byte, error) {
	s.gets++
	data, err := s.Storage.Get(ctx, name)
	if s.deaf {
		<-s.goOn
		return data, errors.Join(err, ctx.Err())
	}
	select {
	case <-s.goOn:
		return data, err
	case <-ctx.Done():
		s.ends++
		return nil, ctx.Err()
	}
}

// bubble runs a test in which synctest.Wait waits until every goroutine is at rest, and which fails if
// one is left behind.
func bubble(t *testing.T, run func(t *testing.T, s *slow, c *cache.Cache)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{Storage: mem.New(), goOn: make(chan struct{})}
		require.NoError(t, s.Put(t.Context(), "a", []byte("data")))
		c, err := cache.New(s, dir, roomy)
		require.NoError(t, err)
		run(t, s, c)
		require.NoError(t, c.Close())
	})
}

// get starts a read and returns a function that waits for its answer.
func get(ctx context.Context, c *cache.Cache) func() (string, error) {
	var data []byte
	var g errgroup.Group
	g.Go(func() (err error) {
		data, err = c.Get(ctx, "a")
		return err
	})
	synctest.Wait()
	return func() (string, error) {
		err := g.Wait()
		return string(data), err
	}
}

func TestOneFetchServesAllWhoWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *slow, c *cache.Cache) {
		var waiting []func() (string, error)
		for range 8 {
			waiting = append(waiting, get(t.Context(), c))
		}
		close(s.goOn)
		for _, wait := range waiting {
			data, err := wait()
			require.NoError(t, err)
			require.Equal(t, "data", data)
		}
		require.Equal(t, 1, s.gets)
	})
}

func TestOneWhoGivesUpDoesNotFailTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *slow, c *cache.Cache) {
		impatient, cancel := context.WithCancel(t.Context())
		first, second := get(impatient, c), get(t.Context(), c)
		cancel()
		_, err := first()
		require.ErrorIs(t, err, context.Canceled)
		close(s.goOn)
		data, err := second()
		require.NoError(t, err)
		require.Equal(t, "data", data)
		require.Equal(t, 1, s.gets)
	})
}

func TestAFetchThatNobodyWaitsForIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, s *slow, c *cache.Cache) {
		ctx, cancel := context.WithCancel(t.Context())
		first, second := get(ctx, c), get(ctx, c)
		cancel()
		for _, wait := range []func() (string, error){first, second} {
			_, err := wait()
			require.ErrorIs(t, err, context.Canceled)
		}
		synctest.Wait()
		require.Equal(t, 1, s.ends)

		third := get(t.Context(), c)
		close(s.goOn)
		data, err := third()
		require.NoError(t, err)
		require.Equal(t, "data", data)
		require.Equal(t, 2, s.gets)
	})
}

func TestANewcomerDoesNotInheritACancellation(t *testing.T) {
	bubble(t, func(t *testing.T, s *slow, c *cache.Cache) {
		s.deaf = true
		ctx, cancel := context.WithCancel(t.Context())
		first := get(ctx, c)
		cancel()
		_, err := first()
		require.ErrorIs(t, err, context.Canceled)
		second := get(t.Context(), c)
		close(s.goOn)
		data, err := second()
		require.NoError(t, err)
		require.Equal(t, "data", data)
		require.Equal(t, 2, s.gets)
	})
}

func TestCloseEndsFetchesAndWaitsForThem(t *testing.T) {
	bubble(t, func(t *testing.T, s *slow, c *cache.Cache) {
		wait := get(t.Context(), c)
		require.NoError(t, c.Close())
		require.Equal(t, 1, s.ends)
		_, err := wait()
		require.ErrorIs(t, err, block.ErrClosed)
	})
}

// A fetch may have read a file before it was deleted or replaced. That must not come back.
func TestAFetchDoesNotBringBackWhatIsGone(t *testing.T) {
	bubble(t, func(t *testing.T, s *slow, c *cache.Cache) {
		first := get(t.Context(), c)
		require.NoError(t, c.Delete(t.Context(), "a"))
		_, err := c.Get(t.Context(), "a")
		require.ErrorIs(t, err, block.ErrNotFound)
		s.goOn <- struct{}{}
		_, err = first()
		require.NoError(t, err, "it began before the deletion")
		synctest.Wait()
		require.Zero(t, c.Stats().Files)
		_, err = c.Get(t.Context(), "a")
		require.ErrorIs(t, err, block.ErrNotFound)
	})
	bubble(t, func(t *testing.T, s *slow, c *cache.Cache) {
		first := get(t.Context(), c)
		require.NoError(t, c.Put(t.Context(), "a", []byte("more data")))
		second := get(t.Context(), c)
		close(s.goOn)
		_, err := first()
		require.NoError(t, err)
		data, err := second()
		require.NoError(t, err)
		require.Equal(t, "more data", data)
		synctest.Wait()
		data, err = get(t.Context(), c)()
		require.NoError(t, err)
		require.Equal(t, "more data", data)
		require.Equal(t, cache.Stats{Hits: 1, Fetches: 2, Files: 1, Bytes: 13}, c.Stats())
	})
}

// lying is a storage that delivers less than it states.
type lying struct{ block.Storage }

func (s lying) Get(ctx context.Context, name string) ([]byte, error) {
	data, err := s.Storage.Get(ctx, name)
	return data[:len(data)-1], err
}

func TestAFileOfTheWrongSizeIsAnErrorAndNotKept(t *testing.T) {
	c := open(t, lying{mem.New()}, t.TempDir(), roomy)
	require.NoError(t, c.Put(t.Context(), "a", []byte("data")))
	for range 2 {
		_, err := c.GetRange(t.Context(), "a", 0, 1)
		require.ErrorContains(t, err, "get a: fetched 3 bytes of a file of 4")
	}
	require.Zero(t, c.Stats())
}
