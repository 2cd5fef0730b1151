// SPDX-License-Identifier: Apache-2.0

// Package dumppb holds the generated messages of which a dump consists. What they mean, and the rules
// for changing them, stand in dump.proto.
package dumppb
