// SPDX-License-Identifier: Apache-2.0

package dailyrun

// Chunked returns settings by which so many items are dispatched together; 0: as many as ever.
func Chunked(c Config, items int) Config {
	c.chunk = items
	return c
}
