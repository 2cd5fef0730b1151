// SPDX-License-Identifier: Apache-2.0

// Package dump writes down a repository as lines of JSON, and makes a repository of them again: for backups, for moving a
// repository to another store, and for looking at all of it with other tools.
//
// A dump has every record of a repository: branches with their logs, also those of deleted branches, and with what is uncommitted
// on them; tags, commits, settings, pins, expirations. Range files are not in it: it says where they are. Each line is one
// message of package dumppb; docs/formats.md specifies them and their order.
//
// [Write] reads a repository while others use it (write.go, spool.go). Each branch is dumped as of one instant, with every commit
// that it names. What is uncommitted is dumped as what it comes to, the changes that a reader of the branch sees on top of its
// head, not as tokens and items; so the loaded branch shows the same, and has the same to commit.
//
// [Load] reads a dump (read.go), and lets package graveler make a repository of it that nobody sees before all of it has been
// proven (load.go). Nothing of a dump that was altered, or cut off, is ever seen.
//
// Both work in memory that does not grow with the dump, but for its longest line. A dump of a loaded repository has the same
// lines as the dump that it was loaded from, but for the first, which says which repository it is of, and the checksum in the
// last.
package dump
