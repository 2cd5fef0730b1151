// SPDX-License-Identifier: Apache-2.0

package block

import (
	"fmt"
	"strings"
)

// Bounds on names, which hold for every engine.
const (
	MaxNameBytes    = 512
	MaxSegmentBytes = 255
)

// CheckName returns [ErrInvalidName] with the rule that a name breaks.
func CheckName(name string) error {
	if rule := brokenRule(name); rule != "" {
		return fmt.Errorf("%w %q: %s", ErrInvalidName, name, rule)
	}
	return nil
}

// CheckPrefix returns [ErrInvalidName] for what cannot be the beginning of a name. One more letter
// makes a name of a beginning that ends in a slash or in dots.
func CheckPrefix(prefix string) error {
	if prefix == "" || brokenRule(prefix+"a") == "" {
		return nil
	}
	if rule := brokenRule(prefix); rule != "" {
		return fmt.Errorf("%w: no name starts with %q: %s", ErrInvalidName, prefix, rule)
	}
	return nil
}

func brokenRule(name string) string {
	if len(name) > MaxNameBytes {
		return fmt.Sprintf("%d bytes, at most %d", len(name), MaxNameBytes)
	}
	for segment := range strings.SplitSeq(name, "/") {
		switch {
		case segment == "":
			return "a segment is empty"
		case segment == "." || segment == "..":
			return `a segment is "." or ".."`
		case len(segment) > MaxSegmentBytes:
			return fmt.Sprintf("a segment of %d bytes, at most %d", len(segment), MaxSegmentBytes)
		}
		for _, c := range []byte(segment) {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-') {
				return "only a-z, 0-9, dot, underscore, hyphen and slash may occur"
			}
		}
	}
	return ""
}

// CheckRange says whether length bytes from offset on lie within a file of the given size:
// nil, [ErrInvalidRange] or [ErrShort].
func CheckRange(size, offset, length int64) error {
	if offset < 0 || length < 0 {
		return fmt.Errorf("%w: offset %d, length %d", ErrInvalidRange, offset, length)
	}
	if offset > size || length > size-offset {
		return fmt.Errorf("%w: offset %d, length %d, size %d", ErrShort, offset, length, size)
	}
	return nil
}
