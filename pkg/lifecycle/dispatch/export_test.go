// SPDX-License-Identifier: Apache-2.0

package dispatch

// MergeRuns is mergeRuns of pairs, which are compared by their first parts.
func MergeRuns(items [][2]int) [][2]int {
	return mergeRuns(items, func(a, b [2]int) int { return a[0] - b[0] })
}
