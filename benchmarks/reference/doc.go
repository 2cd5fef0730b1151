// SPDX-License-Identifier: Apache-2.0

// Package reference is what the benchmarks compare the store with: the same engines and the same disk, used directly and with the same durability.
//
//   - [Bolt] writes to a bbolt file, each write in a transaction that it shares with those that wait at the same moment, or by bbolt's own Batch; it reads with a transaction per read.
//   - [Pebble] writes to a Pebble database with a sync of its log, which Pebble shares among concurrent writes.
//   - [SQL] writes to a table of a PostgreSQL database, one statement and one commit per write.
//   - [Tables] are files of Pebble's sstable format: the same records, cut into files of the same size, with the same compression and the same syncs as the range files of a commit.
//   - [SyncRate] and [WriteFile] are what the disk itself does.
//
// All are safe for concurrent use, except Tables.
package reference
