// SPDX-License-Identifier: Apache-2.0

// Package dailyrun applies the lifecycle rules of all repositories in one bounded pass: [Run] freezes the time, finds what is due
// since the positions of the pass before, has it dispatched, saves the positions and ends.
//
// # What is due
//
// For an action with a delay of D days, an object is due exactly when the tree of the branch as of D days ago (rounded as the
// calendar rounds) has it, and the head has it still with the same content and as the rule wants it. A lane is one delay of one
// source branch, and keeps how far it has come: the horizon, which is the tree of D days ago, and the head up to which the log
// was read. A step of a lane goes from there to the present horizon and head. Its candidates are the entries that came between
// the two horizons, and those that moves of the branch have put since the last step; everything else had its turn. So a pass
// costs what changed and what fell due.
//
// What has no delay, and what depends on the other versions of a key, is looked at again for every key that a move has touched:
// that is the lane of delay 0. It also takes over what the branch log does not go back far enough for. From time to time a walk
// looks at every key for what comes due without a move.
//
// # Restarts
//
// A lane that is new, or whose rules have changed, starts cold: it looks at all that the horizon has. A pass may be cut off
// anywhere. What it has done and not saved is done again by the next one, which changes nothing, since every removal compares
// identities.
package dailyrun
