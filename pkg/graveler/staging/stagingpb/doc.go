// SPDX-License-Identifier: Apache-2.0

// Package stagingpb holds the generated message in which package staging stores its entries. The
// rules for changing it stand in staging.proto.
package stagingpb
