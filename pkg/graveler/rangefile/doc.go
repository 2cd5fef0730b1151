// SPDX-License-Identifier: Apache-2.0

// Package rangefile is the file format of committed trees: a range holds entries, a metarange holds
// the children of an inner node. Both are sorted sequences of records and share every byte of the
// format; docs/formats.md specifies it.
//
// A [Builder] collects records and turns them into the [ID] and the bytes of a file. [Open] reads the
// footer and the index of a file over ranged reads, [File.Read] one block of it, and an [Iter] walks
// or searches the records, fetching blocks through a function of its user, who may so cache them.
// A [Child] is the record that stands for a file in the metarange above it.
//
// What it promises:
//
//   - An ID depends on the records alone, not on blocks or compression.
//   - Files of every version that was ever released stay readable.
//   - Every byte of a file is covered by a checksum, or by the magic and version that are compared. What does
//     not check out is [ErrCorrupt], [ErrForeign] or [ErrVersion], with the file and the offset.
//   - No file, however crafted, makes the reader panic, or allocate more than the size of the file for its
//     index and [MaxBlock] for a block.
//
// Files and blocks are immutable and safe for concurrent use; a Builder and an Iter belong to one
// goroutine.
package rangefile
