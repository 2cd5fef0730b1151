// SPDX-License-Identifier: Apache-2.0

package rangefile

import (
	"errors"
	"fmt"
)

// What can be wrong with a file.
var (
	// ErrCorrupt: a checksum does not match, or the parts of the file contradict each other.
	ErrCorrupt = errors.New("corrupt range file")
	// ErrForeign: the bytes do not end as a range file does. It is another kind of file, or was cut short.
	ErrForeign = errors.New("not a range file, or a truncated one")
	// ErrVersion: the file is of a version that this code does not know.
	ErrVersion = errors.New("unknown version of range file")
)

// ErrRecord: a record cannot be stored: out of order, an empty key, or larger than the format allows.
var ErrRecord = errors.New("invalid record")

// corrupt describes damage found in the named file at an offset.
func corrupt(name string, offset int64, format string, args ...any) error {
	return fmt.Errorf("%s at offset %d: %s: %w", name, offset, fmt.Sprintf(format, args...), ErrCorrupt)
}
