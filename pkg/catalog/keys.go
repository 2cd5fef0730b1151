// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Where things are. An object that is current is the entry of its key, so that whoever knows nothing of versions sees the current
// objects and nothing else. All other records have keys that start with a zero byte, which no object's key does:
//
//	00 'v' esc(key) 00 01 'c'              the delete marker that is the current version of the key; there is no entry of the key itself then
//	00 'v' esc(key) 00 01 'n'              the null version, where it is not current
//	00 'v' esc(key) 00 01 'v' version ID   another version that is not current
//	00 'u' esc(key) 00 01 upload ID        a multipart upload that was initiated
//	00 'p' upload ID 00 part number        one of its parts; not below the key, so that listing uploads reads no parts
//
// esc replaces each zero byte by 00 FF, so that these keys are in the order of the objects' keys, whatever bytes those hold, and
// a prefix of a key is a prefix of what stands for it.
const (
	versionsArea = "\x00v"
	uploadsArea  = "\x00u"
	partsArea    = "\x00p"
	keyEnd       = "\x00\x01"

	markerTag  = "c"
	nullTag    = "n"
	versionTag = "v"
)

// afterReserved is greater than every reserved key, and less than every key of an object.
const afterReserved = "\x00\xff"

// NullVersion is the ID of the version of a key that was put while versioning was not enabled. Objects of a bucket that never was
// versioned have the VersionID "" instead, and mean the same.
const NullVersion = "null"

const (
	MaxKeyBytes = 1024
	MaxParts    = 10_000 // of a multipart upload
	// maxZeros bounds the zero bytes in a key, each of which takes a byte more where it is escaped.
	maxZeros = 200
)

// Kind says what an entry of a bucket is.
type Kind int

const (
	KindCurrent    Kind = iota + 1 // an object that is the current version of its key
	KindMarker                     // a delete marker that is the current version of its key
	KindNull                       // a null version that is not current
	KindNoncurrent                 // another version that is not current
	KindUpload                     // a multipart upload
	KindPart                       // a part of one
)

// Place is what the key of an entry says about it.
type Place struct {
	Kind Kind
	// Key is that of the object; "" for a part.
	Key       string
	VersionID string // of KindNull and KindNoncurrent
	UploadID  string // of KindUpload and KindPart
	Part      int    // of KindPart, from 1
}

// ParseKey tells what the entry of a bucket is. A reserved key of any other form is graveler.ErrCorrupt.
//
// An object that is current and a current marker of the same key are there together only after a merge or a reset has put
// together halves of two states: the object is the current version then.
func ParseKey(key graveler.Key) (Place, error) {
	s := string(key)
	p, ok := Place{Kind: KindCurrent, Key: s}, s != ""
	if ok && s[0] == 0 {
		p, ok = parseReserved(s)
	}
	if !ok {
		return Place{}, fmt.Errorf("%w: entry %q is none that a bucket has", graveler.ErrCorrupt, s)
	}
	return p, nil
}

func parseReserved(s string) (Place, bool) {
	if id, ok := strings.CutPrefix(s, partsArea); ok {
		id, number, _ := strings.Cut(id, "\x00")
		n, err := strconv.Atoi(number)
		return Place{Kind: KindPart, UploadID: id, Part: n}, isID(id) && err == nil && n >= 1 && n <= MaxParts && string(partKey(id, n)) == s
	}
	upload := strings.HasPrefix(s, uploadsArea)
	if !upload && !strings.HasPrefix(s, versionsArea) {
		return Place{}, false
	}
	key, rest, ok := unescape(s[len(versionsArea):])
	switch tag := rest; {
	case !ok || checkKey(key) != nil:
		return Place{}, false
	case upload:
		return Place{Kind: KindUpload, Key: key, UploadID: rest}, isID(rest)
	case tag == markerTag:
		return Place{Kind: KindMarker, Key: key}, true
	case tag == nullTag:
		return Place{Kind: KindNull, Key: key, VersionID: NullVersion}, true
	}
	id, ok := strings.CutPrefix(rest, versionTag)
	return Place{Kind: KindNoncurrent, Key: key, VersionID: id}, ok && isVersionID(id)
}

// escape returns what stands for a key, or for a prefix of keys, in reserved keys.
func escape(key string) string { return strings.ReplaceAll(key, "\x00", "\x00\xff") }

// unescape splits what follows an area into the key and what comes after its end.
func unescape(s string) (key, rest string, ok bool) {
	var b bytes.Buffer
	for {
		text, after, found := strings.Cut(s, "\x00")
		if !found || after == "" {
			return "", "", false
		}
		b.WriteString(text)
		switch after[0] {
		case 0x01:
			return b.String(), after[1:], true
		case 0xff:
			b.WriteByte(0)
			s = after[1:]
		default:
			return "", "", false
		}
	}
}

// VersionsBelow returns what the keys of all versions that are beside current objects, delete markers among them, have in common
// where their objects' keys start with prefix. Whoever commits, resets or merges the entries with a prefix, which is below this
// layer, takes those with this one along: a version goes from one place to the other, and what takes one half of that can lose
// it.
func VersionsBelow(prefix string) graveler.Key { return graveler.Key(versionsArea + escape(prefix)) }

// VersionsOf is VersionsBelow for a single key.
func VersionsOf(key string) graveler.Key { return versionsOf(key, "") }

// IsPart reports whether an entry's key is that of a part.
func IsPart(key graveler.Key) bool { return bytes.HasPrefix(key, []byte(partsArea)) }

func currentKey(key string) graveler.Key { return graveler.Key(key) }
func markerKey(key string) graveler.Key  { return versionsOf(key, markerTag) }
func nullKey(key string) graveler.Key    { return versionsOf(key, nullTag) }

// versionKey returns the place of a version that is not current.
func versionKey(key, id string) graveler.Key {
	if isNull(id) {
		return nullKey(key)
	}
	return versionsOf(key, versionTag+id)
}

// versionsOf returns the key of what a tag names among the records of a key's versions.
func versionsOf(key, tag string) graveler.Key {
	return graveler.Key(versionsArea + escape(key) + keyEnd + tag)
}

func uploadKey(key, uploadID string) graveler.Key {
	return graveler.Key(uploadsArea + escape(key) + keyEnd + uploadID)
}

// partKey returns the place of a part; partsPrefix(uploadID) is what those of one upload have in common.
func partKey(uploadID string, part int) graveler.Key {
	return graveler.Key(fmt.Sprintf("%s%05d", partsPrefix(uploadID), part))
}

func partsPrefix(uploadID string) string { return partsArea + uploadID + "\x00" }

// checkKey holds the key of an object to the limits.
func checkKey(key string) error {
	switch {
	case key == "":
		return fmt.Errorf("%w: a key must not be empty", InvalidArgument)
	case len(key) > MaxKeyBytes:
		return fmt.Errorf("%w: a key of %d bytes, at most %d are allowed", KeyTooLongError, len(key), MaxKeyBytes)
	case key[0] == 0:
		return fmt.Errorf("%w: a key must not start with a zero byte", InvalidArgument)
	}
	if n := strings.Count(key, "\x00"); n > maxZeros {
		return fmt.Errorf("%w: a key with %d zero bytes, at most %d are allowed", KeyTooLongError, n, maxZeros)
	}
	return nil
}

// IDs are 24 hexadecimal digits: 16 for a time, 8 at random.
const (
	timeDigits = 16
	idDigits   = timeDigits + 8
)

// newVersionID returns an ID for the version of a time, in nanoseconds since the epoch. The later the time, the smaller the ID.
func newVersionID(at int64) string { return newID(math.MaxInt64 - at) }

// newUploadID returns an ID for an upload. The later the time, the greater the ID.
func newUploadID(at int64) string { return newID(at) }

func newID(number int64) string { return fmt.Sprintf("%0*x%08x", timeDigits, number, rand.Uint32()) }

func isID(id string) bool {
	return len(id) == idDigits && strings.Trim(id, "0123456789abcdef") == ""
}

// isVersionID reports whether an ID is one that newVersionID returns.
func isVersionID(id string) bool { return isID(id) && id[0] <= '7' }

// versionTimeOf returns the time that a version ID was made for.
func versionTimeOf(id string) (at int64, ok bool) {
	if !isVersionID(id) {
		return 0, false
	}
	n, err := strconv.ParseInt(id[:timeDigits], 16, 64)
	return math.MaxInt64 - n, err == nil
}

func isNull(id string) bool { return id == "" || id == NullVersion }
