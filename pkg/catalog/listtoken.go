// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
)

// tokenForm is the first byte of a continuation token: tokens of another form are refused.
const tokenForm = 1

// continuationToken returns a token for the results behind one: form, result and a checksum of both, in base64.
func continuationToken(last string) string {
	token := append([]byte{tokenForm}, last...)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(token, crc32.ChecksumIEEE(token)))
}

func parseContinuationToken(token string) (last string, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err == nil && len(raw) > 4 {
		body := raw[:len(raw)-4]
		if body[0] == tokenForm && binary.BigEndian.Uint32(raw[len(body):]) == crc32.ChecksumIEEE(body) && len(body) > 1 {
			return string(body[1:]), nil
		}
	}
	return "", fmt.Errorf("%w: the continuation token %q is not one that was returned", InvalidArgument, token)
}

// EncodeKey encodes a key, prefix, delimiter or marker for a response with encoding-type=url, since XML cannot hold all that they
// may: each byte but letters, digits and - _ . * / is % and two hexadecimal digits. A space is %20, which decoders of paths and
// of queries alike understand, where S3 writes +.
func EncodeKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-_.*/", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
