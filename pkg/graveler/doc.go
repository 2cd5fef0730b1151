// SPDX-License-Identifier: Apache-2.0

// Package graveler is the versioned store: repositories, branches, commits, tags and staged entries.
package graveler
