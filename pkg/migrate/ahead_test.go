// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"errors"
	"iter"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/migrate"
)

// numbers yields n keys, and then an error if there is one. It notes that it has ended.
func numbers(n int, err error, ended *bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		defer func() { *ended = true }()
		for i := range n {
			if !yield(strconv.Itoa(i), nil) {
				return
			}
		}
		if err != nil {
			yield("", err)
		}
	}
}

func TestWhatIsMadeAheadComesInOrderAndEndsWithTheLoop(t *testing.T) {
	broken := errors.New("broken")
	for _, n := range []int{0, 1, 255, 256, 257, 5000} {
		for _, end := range []error{nil, broken} {
			ended, i, failed := false, 0, error(nil)
			for key, err := range migrate.Ahead(numbers(n, end, &ended)) {
				if failed = err; err == nil {
					require.Equal(t, strconv.Itoa(i), key)
					i++
				}
			}
			require.Equal(t, n, i)
			require.Equal(t, end, failed)
			require.True(t, ended)
		}
	}
	for _, stop := range []int{0, 1, 255, 256, 700, 4999} {
		ended, i := false, 0
		for range migrate.Ahead(numbers(5000, broken, &ended)) {
			if i == stop {
				break
			}
			i++
			runtime.Gosched()
		}
		require.True(t, ended, "the one who makes them has ended")
	}
}
