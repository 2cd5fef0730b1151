// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// maxUID is more than the UID of anything has, in bytes.
const maxUID = 128

func checkShard(shard int) error {
	if shard < 0 || shard >= lifecycle.Shards {
		return fmt.Errorf("shard %d is not in [0,%d)", shard, lifecycle.Shards)
	}
	return nil
}

// checkUID keeps keys unambiguous and readable.
func checkUID(what, uid string) error {
	switch {
	case uid == "":
		return fmt.Errorf("%s UID is missing", what)
	case len(uid) > maxUID || strings.Contains(uid, "/") || !utf8.ValidString(uid):
		return fmt.Errorf("%s UID %q is none", what, uid)
	}
	return nil
}

func checkSource(repositoryUID, branchUID string) error {
	return cmp.Or(checkUID("repository", repositoryUID), checkUID("branch", branchUID))
}

func checkTime(what string, t int64) error {
	if t < 0 {
		return fmt.Errorf("%s %d is negative", what, t)
	}
	return nil
}

// hash reads the 32 bytes of a hash.
func hash(what string, b []byte) (h [32]byte, err error) {
	if len(b) != len(h) {
		return h, fmt.Errorf("%s has %d bytes, expected %d", what, len(b), len(h))
	}
	copy(h[:], b)
	return h, nil
}

// idBytes is the stored form of a tree's or commit's ID: the bytes that its digits stand for, or none.
func idBytes(what, id string) ([]byte, error) {
	if id == "" {
		return nil, nil
	}
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != 32 || hex.EncodeToString(b) != id {
		return nil, fmt.Errorf("%s %q is not 64 hexadecimal digits", what, id)
	}
	return b, nil
}

func idDigits(what string, b []byte) (string, error) {
	if len(b) == 0 {
		return "", nil
	}
	if len(b) != 32 {
		return "", fmt.Errorf("%s has %d bytes, expected 32", what, len(b))
	}
	return hex.EncodeToString(b), nil
}
