// SPDX-License-Identifier: Apache-2.0

// Package result is what a run of the benchmarks leaves behind: a [Document], which is one JSON object, and what is made of it for people.
//
// A document has a [Run] per workload, variant and engine. What a run is about are its metrics: named figures with one sample per
// repetition, of which people see median and range. Phases say how long operations took while a load was going on, series how
// that developed, counts what was asked of the engine and of block storage. table.go shows documents as text and as Markdown,
// compare.go compares two of them.
//
// Fields keep their names and meaning as long as [Schema] stays the same. Times of day are in UTC; durations are in seconds,
// sizes in bytes, wherever a unit is not named.
package result
