// SPDX-License-Identifier: Apache-2.0

package stest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
)

const (
	setting         = "lifecycle"
	maxSettingBytes = 16 << 20
)

// Document returns n bytes that do not compress, different for each seed.
func Document(seed uint64, n int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	data := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(data) // never fails
	return data
}

func settingsOfAnySizeComeBack(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	for _, size := range []int{0, 1, 1000, 256 << 10, 1 << 20, maxSettingBytes} {
		for _, data := range [][]byte{Document(uint64(size), size), make([]byte, size)} {
			stamp, err := refs.PutSetting(ctx, repo, setting, data, nil)
			require.NoError(t, err)
			got, read, err := refs.GetSetting(ctx, repo, setting)
			require.NoError(t, err)
			require.Equal(t, stamp, read)
			require.True(t, bytes.Equal(data, got), "another document")
			require.NoError(t, refs.RemoveSetting(ctx, repo, setting, stamp))
		}
	}
}

func settingsAreListedByName(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	require.Empty(t, Collect(t, refs.ScanSettings(ctx, repo)))
	for _, name := range []string{"b", "c", "a"} {
		stamp, err := refs.PutSetting(ctx, repo, name, Document(1, 700<<10), nil)
		require.NoError(t, err)
		if name == "c" {
			require.NoError(t, refs.RemoveSetting(ctx, repo, name, stamp))
		}
	}
	require.Equal(t, []string{"a", "b"}, Collect(t, refs.ScanSettings(ctx, repo)))
}

func badSettingsAreRefused(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	for _, name := range []string{"", "Lifecycle", "1st", "-a", "a/b", "a b", "a\n", strings.Repeat("a", 65)} {
		_, err := refs.PutSetting(ctx, repo, name, nil, nil)
		require.ErrorIs(t, err, graveler.ErrInvalidName)
		_, _, err = refs.GetSetting(ctx, repo, name)
		require.ErrorIs(t, err, graveler.ErrInvalidName)
		require.ErrorIs(t, refs.RemoveSetting(ctx, repo, name, nil), graveler.ErrInvalidName)
	}
	_, err := refs.PutSetting(ctx, repo, setting, make([]byte, maxSettingBytes+1), nil)
	require.ErrorIs(t, err, graveler.ErrTooLarge)
	require.Empty(t, Collect(t, refs.ScanSettings(ctx, repo)))
}

func concurrentWritersSeeWholeDocuments(t *testing.T, refs graveler.Refs) {
	ctx, repo := t.Context(), Repository(t, refs)
	sized := func(seed uint64) []byte {
		return binary.LittleEndian.AppendUint64(Document(seed, int(seed%3)*(300<<10)), seed)
	}
	_, err := refs.PutSetting(ctx, repo, setting, sized(0), nil)
	require.NoError(t, err)

	const writers, each = 3, 6
	var running sync.WaitGroup
	for range writers {
		running.Go(func() {
			for done := 0; done < each; {
				data, stamp, err := refs.GetSetting(ctx, repo, setting)
				if err != nil {
					t.Errorf("get: %v", err)
					return
				}
				seed := binary.LittleEndian.Uint64(data[len(data)-8:])
				if !bytes.Equal(data, sized(seed)) {
					t.Errorf("document %d is not whole", seed)
				}
				_, err = refs.PutSetting(ctx, repo, setting, sized(seed+1), stamp)
				switch {
				case err == nil:
					done++
				case !errors.Is(err, graveler.ErrChanged):
					t.Errorf("put: %v", err)
					return
				}
			}
		})
	}
	running.Wait()
	data, _, err := refs.GetSetting(ctx, repo, setting)
	require.NoError(t, err)
	require.Equal(t, sized(writers*each), data, "every write counted once")
}
