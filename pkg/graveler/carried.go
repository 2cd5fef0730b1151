// SPDX-License-Identifier: Apache-2.0

package graveler

import "strconv"

// CarriedVersion marks commits that were carried over from another system together with their IDs, whose rule this program does
// not have: their version is CarriedVersion plus the version that the other system had for them.
const CarriedVersion = 1000

// Carried reports whether a commit came with its ID from another system. What proves that its record is as it came is the digest
// that it was given then, in the place of a nonce.
func (c *Commit) Carried() bool { return c.Version >= CarriedVersion }

// Digest is what the nonce of a carried commit must be: SHA-256, in hexadecimal, of the tag "moraine carried commit" and every
// field as in ComputeID, with the ID and the version in the place of the nonce.
func (c *Commit) Digest() string {
	return c.hash("moraine carried commit", string(c.ID)+" "+strconv.Itoa(c.Version))
}
