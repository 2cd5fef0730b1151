// SPDX-License-Identifier: Apache-2.0

// Package metalog reads the branch logs of a store as a change feed: which entries came, changed and went, on which branch, when, and by which move.
//
// A branch log has every move of the branch's head, with the commits that were its head before and after; so the changes of a
// move are the difference of two trees. A [Reader] makes them a stream: [Reader.Events] gives every change in the order in which
// it happened, [Reader.Net] only what is left of it at the end, and [Reader.TreeAt] the whole as it was at an instant. What is
// uncommitted is in none of them.
//
// # Sources
//
// A [Source] is one branch, by its UID: a branch that is deleted and made again under the same name is another source.
// [Reader.Sources] finds those of a name. The log of a branch outlives it, so the events of one that is deleted are there until
// retention removes them.
//
// # Windows
//
// A window (after, until] has the moves later than after and not later than until; instants are nanoseconds since the Unix epoch.
// What it says is complete: if retention has removed moves that may be in it, the answer is graveler.ErrLogTruncated, a
// [graveler.LogTruncatedError] that names the earliest instant from which the log can be read; if a move is missing otherwise,
// graveler.ErrCorrupt. It is never a silent part. Each source's record is read once, when the iteration begins, and decides what
// is in the window: what moves later is not, whatever until says.
//
// # Reading on
//
// Two windows that meet, (a, b] and (b, c], repeat nothing. They miss nothing only if no move can come in at or before b when the
// first has been read, and the clock cannot promise that: machines' clocks may be minutes apart, and a move gets its time before
// it is decided whether it takes place. But times strictly increase along a branch. So whoever follows branches keeps a position
// for each source, the time of the last of its moves that he has taken in full, and reads on from there, without an end:
//
//	for i := range sources {
//		sources[i].After = positions[sources[i].UID]
//	}
//	for e, err := range reader.Events(ctx, sources, 0, math.MaxInt64) {
//		if err != nil {
//			return err // the positions of sources whose last move was not taken in full stay behind it
//		}
//		…
//	}
//
// The events of one move have one time; a reader that stops among them must set its position before that move, and will see all
// of it again. Between sources the order of events is that of their moves' times, as far as the clocks of those who made them
// agree.
package metalog
