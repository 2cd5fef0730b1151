// SPDX-License-Identifier: Apache-2.0

// Package lakefs reads what lakeFS wrote: its kv table in PostgreSQL, and the range and metarange files of committed trees. It
// writes nothing and creates nothing.
//
// [Files] gives the ranges of a metarange and the records of a range, each file proven by its ID before anything of it is handed
// out. [KV] gives the rows of the kv table as they are: repositories, branches, tags, commits, staged entries, settings. [Value]
// makes a catalog.Object of a record. The older tables, which lakeFS had before its kv table, are those of package sqlstore.
//
// The formats are those of lakeFS v0.80 and v1.84.
//
// What does not fit them is an error that says where it is: a file by its name, a row by its partition and key. Nothing is left
// out because it is not understood: a field that a message should not have is an error too, since it could be the one that
// matters.
package lakefs
