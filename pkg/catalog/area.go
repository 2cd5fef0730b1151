// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Area is where a bucket has some kinds of entries. In each of these areas entries are in the order of the objects' keys, and
// those of one key are together; so whoever reads the three side by side has all of one key at a time.
type Area int

const (
	CurrentArea  Area = iota // KindCurrent
	VersionsArea             // KindMarker, KindNull and KindNoncurrent, in this order
	UploadsArea              // KindUpload
)

func (a Area) prefix() string {
	switch a {
	case VersionsArea:
		return versionsArea
	case UploadsArea:
		return uploadsArea
	default:
		return ""
	}
}

// Contains reports whether an entry of that key is in the area.
func (a Area) Contains(key graveler.Key) bool {
	if a == CurrentArea {
		return len(key) > 0 && key[0] != 0
	}
	return strings.HasPrefix(string(key), a.prefix())
}

// After returns a key that all entries in the area are before whose object's key is at most this one, and all others not; "" stands before all.
func (a Area) After(key string) graveler.Key {
	switch {
	case a == CurrentArea && key == "":
		return graveler.Key(afterReserved)
	case a == CurrentArea:
		return graveler.Key(key + "\x00")
	case key == "":
		return graveler.Key(a.prefix())
	default:
		return graveler.Key(a.prefix() + escape(key) + keyEnd + "\xff")
	}
}

// LogicalPart returns the part of an entry's key that begins with the key of the object, as far as that has no zero byte, at
// which it may end or be escaped; nil for an entry that is in none of the areas.
func LogicalPart(key graveler.Key) []byte {
	switch {
	case CurrentArea.Contains(key):
		return key
	case VersionsArea.Contains(key), UploadsArea.Contains(key):
		return key[len(versionsArea):]
	default:
		return nil
	}
}
