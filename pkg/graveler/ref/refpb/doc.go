// SPDX-License-Identifier: Apache-2.0

// Package refpb holds the generated messages in which package ref stores its records. The rules for
// changing them stand in ref.proto.
package refpb
