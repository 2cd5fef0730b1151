// SPDX-License-Identifier: Apache-2.0

// Package fsck checks a store: whether its records decode and agree with each other, and whether its files are there and are what
// they were when they were written.
//
// [Checker.Check] streams what it finds. A [Finding] is damage, or a note of something that is in order but may be of interest: a
// deletion that was cut off, files that no tree refers to. Nothing is ever changed. One damaged record or file does not keep the
// rest from being checked; an error ends a check only where the key/value store does not answer.
//
// check.go goes through the store, repository.go through the records of one repository. What is looked at is a matter of one file
// each: branch.go, commit.go (tags too), log.go and, for trees and their files, tree.go. reach.go tells what has to be whole from
// what is on its way out.
//
// # While the store is in use
//
// A check takes no lock, and what it reads at different moments need not fit together: a branch may have moved, retention may
// have taken a commit, a repository may have been deleted in between. So whatever looks wrong is looked at twice, everything read
// anew, and is reported only if it is found both times, word for word; and damage in a repository only if the repository is still
// there afterwards. That this raises no false alarm rests on what the writers promise: nothing goes before the last record that
// leads to it has gone (a commit while a branch, a tag or a log leads to it, one that was carried over never; moves of a log
// before its start was recorded; a tree before its [graveler.Expiration]), and what has gone does not come back. What is written
// while a check runs may not be checked.
//
// # Memory
//
// A check remembers, of the repository that it is in, which commits, files and logs there are: up to 100 bytes each, as much
// again for each commit while it finds out which are reached, and as much for each staging token of the whole store; and up to
// 5,000 findings until it knows whether they are damage. Files that are checked are held in memory, as many at a time as
// [Options] says, each at most a few MiB.
package fsck
