// SPDX-License-Identifier: Apache-2.0

// Package dispatch carries out what lifecycle rules ask for. What is due comes as batches of items to a [Dispatcher], which says
// of each item what came of it.
//
// [Mover] is the dispatcher of a bucket: it makes one move of a branch's head of all batches of the branch. An embedder may have
// another one, which does anything it likes. [Retrier] stands before either: it tries again where that may help, and holds what a
// dispatcher answers to its contract.
package dispatch
