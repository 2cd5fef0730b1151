// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// SyncRate appends 4 KiB to a new file of a directory and syncs it, again and again for a while, and returns how often it did so in a second.
func SyncRate(ctx context.Context, dir string, window time.Duration) (rate float64, err error) {
	path := filepath.Join(dir, "syncs")
	f, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	buffer := make([]byte, 4096)
	began, n := time.Now(), 0
	for ; n == 0 || time.Since(began) < window; n++ {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := f.Write(buffer); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("sync %s: %w", path, err)
		}
	}
	return float64(n) / time.Since(began).Seconds(), nil
}

// WriteFile writes so many bytes to a new file of a directory, one after the other, and syncs it once.
func WriteFile(ctx context.Context, dir string, bytes int64) (err error) {
	path := filepath.Join(dir, "sequential")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(path)) }()
	buffer := make([]byte, 1<<20)
	for i := range buffer {
		buffer[i] = byte(i * 7)
	}
	for left := bytes; left > 0; left -= int64(len(buffer)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := f.Write(buffer[:min(left, int64(len(buffer)))]); err != nil {
			return err
		}
	}
	return f.Sync()
}
