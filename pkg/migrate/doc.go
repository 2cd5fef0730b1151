// SPDX-License-Identifier: Apache-2.0

// Package migrate moves graveler metadata from PostgreSQL tables to the key/value store, and whole repositories from one store to another.
//
// [Migration] reads one snapshot of the tables (source.go, rows.go), which parallel readers share. Of each repository it makes one sequence of items (origin.go): tags, commits by ID, and branch by branch its log and what is
// staged on it, with generations, log times and logs worked out from the graph of its commits (history.go). Plan looks at all of it before anything is written (plan.go, planchecks.go). Run writes the sequences into
// repositories that nobody sees before they are whole (run.go, copying.go), and notes how far it has come (records.go). Verify reads the sequences of both sides side by side (target.go, verify.go).
//
// [Copy] goes from any store to any other by dumps. [Diagnose] and [DiagnoseSource] count what is on either side.
//
// Memory is bounded but for the graph of the commits of the repositories that are under way, about 300 bytes a commit, and the names of branches.
package migrate
