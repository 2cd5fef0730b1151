// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// BoltTransactions returns how many write transactions a bbolt file has seen: the largest number in the two pages at its
// beginning, which bbolt writes in turn, one at the end of each transaction. Each costs two syncs.
func BoltTransactions(path string) (int64, error) {
	// See package internal/common of bbolt: after the header of a page follow the magic number, the version, the size of a page,
	// ... and the number of the transaction.
	const pageSizeAt, transactionAt = 16 + 8, 16 + 48
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	first := make([]byte, transactionAt+8)
	second := make([]byte, transactionAt+8)
	_, err = io.ReadFull(f, first)
	if err == nil {
		_, err = f.ReadAt(second, int64(binary.NativeEndian.Uint32(first[pageSizeAt:])))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, fmt.Errorf("read the transactions of %s: %w", path, err)
	}
	return int64(max(binary.NativeEndian.Uint64(first[transactionAt:]), binary.NativeEndian.Uint64(second[transactionAt:]))), nil
}
