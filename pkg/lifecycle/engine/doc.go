// SPDX-License-Identifier: Apache-2.0

// Package engine compiles the lifecycle rules of all repositories into snapshots, and snapshots into the views that the parts of a pass work from.
//
// A [Snapshot] never changes. A view of it is a snapshot of its own that holds copies of the compiled actions, so that what one
// view says about an action is not seen in another; the rules behind them are shared. An empty view is nil, and every method of a
// nil *Snapshot answers as an empty one.
package engine
