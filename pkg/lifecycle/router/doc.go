// SPDX-License-Identifier: Apache-2.0

// Package router finds the lifecycle actions that an entry of a branch matches. It reads and remembers nothing.
package router
