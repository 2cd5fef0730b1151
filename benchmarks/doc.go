// SPDX-License-Identifier: Apache-2.0

// Package benchmarks measures the store on any engine, and compares it with what limits it: the raw engine, the disk, other files
// of sorted records. README.md shows what came out and how to run it; the command is 'moraine bench'.
//
// [Run] runs workloads, each on every engine and in a new store, and returns a document (package result), which [judge] compares
// with the targets (targets.go). A [Workload] is a file of its own:
//
//   - kv.go and stagedwrites.go: durable writes to the engine, and to a branch.
//   - longcommit.go: one long commit while writers keep staging on the same branch.
//   - commitsize.go, smallcommits.go, onechange.go, concurrentcommits.go (with process.go): commits of all sizes, and many at once.
//   - list.go, pointget.go, merge.go, import.go: what the names say.
//
// The rest is what they share. A [bench] is an open store with counters before its engine and its block storage (bench.go;
// place.go says where it is), in which a workload makes its repositories (repositories.go), and the record of what it measures
// (record.go). entries.go makes the entries, load.go lets workers write and read them. What is compared is measured in turn
// (package measure), references among them (package reference); package chart draws the plots.
//
// # Results are checked
//
// Every run compares what the store holds at its end with what it acknowledged, key by key and value by value, and, where there
// is a commit, the ID of its tree with that of a fresh tree of the same entries (check.go). A run in which anything is missing,
// wrong or too much ends with [ErrWrong], and its figures count for nothing.
package benchmarks
