// SPDX-License-Identifier: Apache-2.0

// Package measure has the instruments of the benchmarks.
//
// A [Recorder] takes the latencies of a load and divides them into phases and short intervals. [Store] and [Storage] count what
// goes through an engine and a block storage. [Memory] samples the anonymous memory of the process. [Alternate] measures things
// in turn, so that what the machine does besides hits all of them alike. machine.go says what all this runs on.
package measure
