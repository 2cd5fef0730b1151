// SPDX-License-Identifier: Apache-2.0

// Package explore runs small concurrent programs on a key/value store or a block storage in every order, or in orders drawn by a
// seed, with crashes and unknown outcomes anywhere.
//
// The programs' goroutines, the actors, run in a bubble of testing/synctest on a [Store] or [Blocks], which park every call.
// Whenever nothing else can run, the [Scheduler] picks one of the parked calls and what is to become of it: it is carried out, or
// fails before or after it was, or is carried out later, when its caller has long been told that it failed; or its process ends
// there and then. What to pick is asked of a [Chooser]: a [Walk] goes through all possibilities, one run after another; a [Draw]
// picks by a seed. The same picks give the same run.
//
// Waits inside the code under test must be of channels or condition variables that were made in the bubble, or the scheduler does not see them.
package explore
