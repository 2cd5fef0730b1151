// SPDX-License-Identifier: Apache-2.0

// Package catalogpb holds the generated message in which package catalog stores an object. The rules
// for changing it stand in object.proto.
package catalogpb
