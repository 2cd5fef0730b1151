// SPDX-License-Identifier: Apache-2.0

// Package lakegen makes deployments of lakeFS for tests: range and metarange files, and the rows of its kv table or of the tables
// it had before, in the formats of v1.84 and v0.80.
//
// [Random] makes up a small deployment in memory, with all that years of use leave behind; it knows what every commit holds, so
// that a test can compare. WriteFiles, WriteKV and WriteTables put it where lakeFS would have it. [Large] writes one repository
// of any size as it goes. [TreeWriter] writes single trees.
//
// The same parameters give the same deployment.
package lakegen
