// SPDX-License-Identifier: Apache-2.0

// Package catalogpb holds the generated messages in which package catalog stores objects and multipart uploads. The rules
// for changing it stand in object.proto.
package catalogpb
