// SPDX-License-Identifier: Apache-2.0

// Package walker reads the trees of buckets key by key: a [Tree] shows the objects of a key together, wherever their entries are,
// with what only its siblings tell of an object. An [Evaluator] says which of them are due.
package walker
