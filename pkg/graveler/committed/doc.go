// SPDX-License-Identifier: Apache-2.0

// Package committed keeps the entries of commits as immutable trees of sorted files on block storage. It implements
// graveler.Trees.
//
// The leaves of a tree are ranges, which hold entries; inner nodes are metaranges, which hold for each child its ID, its
// first and last key, and how much is below. Files are in the format of package rangefile, named by a hash of what they
// hold: "ab/ab12…", the first two digits of the ID as a directory.
//
// # Canonical shape
//
// A tree is a pure function of its entries, so equal maps have equal IDs whatever edits led to them, and what two trees
// share is found by comparing IDs. Each level is a sequence of records, cut into nodes by a [splitter], which looks
// at the record's key and size and at the size since the last cut only. Two more rules bound the height: a metarange
// below the root has at least two children, so there is no cut after the first child of a node, and a last child that
// would be alone joins the node before it; and levels end where one node remains, which must be a metarange.
//
// # How the pieces fit
//
// A [Store] reads files through two caches (files.go, node.go, leaf.go). A cursor walks the nodes of one level of a
// tree. Scan and Diff are built on these. Apply runs one editor per level: it takes the edits of the level below,
// rewrites the nodes they fall into, goes on until a cut coincides with an old one, and hands the nodes that were
// replaced as edits to the level above. A fresh write is an Apply to the empty tree. The writer behind the
// editors builds and puts files in parallel.
//
// # What it promises
//
// A tree that Apply returns is complete and durable. Damage to a file, its absence included, is an error that
// matches graveler.ErrCorrupt and names namespace, file and, within a file, the offset; it is never the end of an iteration. No goroutine outlives
// the call or the iterator that started it.
package committed
