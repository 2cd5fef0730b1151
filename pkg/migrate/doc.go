// SPDX-License-Identifier: Apache-2.0

// Package migrate moves graveler metadata from PostgreSQL to the key/value store, and whole repositories from one store to another.
//
// [Migration] reads one snapshot of a database (source.go), which parallel readers share. The rows may be laid out as tables
// (tables.go) or as lakeFS's keys and values (keyvalue.go); both give the same (layout.go, rows.go). Of each repository it makes
// one sequence of items (origin.go): settings, tags, commits by ID, and branch by branch its log and what is staged on it, with
// generations, log times and logs worked out from the graph of its commits (history.go). Plan looks at all of it before anything
// is written (plan.go, planchecks.go, planfiles.go). Run writes the sequences into repositories that nobody sees before they are
// whole (run.go, copying.go), and notes how far it has come (records.go, treerecords.go). Verify reads the sequences of both
// sides side by side (target.go, verify.go, comparing.go).
//
// Trees of another format ([TreeFormat]), such as lakeFS's (lakefstrees.go), are converted before the items come that name them
// (convert.go): in the order of generations, each by how its list of ranges differs from that of its commit's main parent
// (treesteps.go), so that a range is read once, and what did not change is not looked at. That difference becomes changes of the
// parent's tree in the target (treechanges.go). Verify goes the same way, and compares entries (verifytrees.go).
//
// [Copy] goes from any store to any other by dumps. [Diagnose] and [DiagnoseSource] count what is on either side.
//
// Memory is bounded but for the graph of the commits of the repositories that are under way, about 300 bytes a commit, with 200
// more for each tree that is converted, and the names and staging tokens of branches.
package migrate
