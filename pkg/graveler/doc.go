// SPDX-License-Identifier: Apache-2.0

// Package graveler is the versioned store: repositories, branches, commits, tags and staged entries.
//
// It owns the types (model.go), the errors (errors.go) and the interfaces of the stores that it works on (stores.go): records and
// staged entries on anything that can compare and set one key, trees of committed entries on anything that keeps files. What it
// adds is how they work together:
//
//   - move.go changes branch records: seal, publish, compaction. moveBranch is the one way in which a record changes, and its comment states the rules.
//   - stage.go writes entries under a branch's staging token, so that a commit holds exactly what was acknowledged before it sealed the token; transact.go reads and writes several in one step.
//   - view.go and merged.go show a branch as one map, from the newest write down to the head's tree; read.go reads it so that nothing acknowledged is missed, whatever commits or is cleaned up meanwhile.
//   - commit.go, branch.go, repository.go, tag.go, refs.go, log.go, diff.go, import.go, changetree.go, branchlog.go and movelog.go are the operations, listing.go and ancestry.go the ways to find branches, tags and commits, protection.go what
//     is forbidden; maintain.go finishes what was cut off and drops what nothing lists.
//
// A [Graveler] is safe for concurrent use by many goroutines, and many processes may work on the same stores. Correctness rests
// on the stores' compare-and-set alone; what a process remembers is a hint, which every operation verifies. Results are copies:
// nobody can change a record that others share.
//
// Where an operation's error is not one of those that errors.go lists as not found, bad input or conflict, its outcome may be
// unknown: it may have taken place. Repeating it is safe.
package graveler
