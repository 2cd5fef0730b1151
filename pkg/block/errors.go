// SPDX-License-Identifier: Apache-2.0

package block

import "errors"

// What a call found.
var (
	// ErrNotFound is returned for a file that does not exist.
	ErrNotFound = errors.New("file not found")

	// ErrShort is returned for a range that reaches beyond the end of its file.
	ErrShort = errors.New("file is shorter than the range asked for")
)

// Input that no engine accepts. Nothing was touched when one of these is returned.
var (
	// ErrInvalidName is returned for a name, or the beginning of one, that breaks the rules for names.
	ErrInvalidName = errors.New("invalid file name")

	// ErrInvalidRange is returned for a negative offset or length.
	ErrInvalidRange = errors.New("invalid range")
)

// The state of a storage.
var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("block storage is closed")

	// ErrReadOnly is returned by every changing call to a storage that was opened read-only.
	ErrReadOnly = errors.New("block storage is read-only")
)

// Why a storage could not be opened.
var (
	// ErrUnknownEngine is returned for a URL whose scheme names none of the engines at hand.
	ErrUnknownEngine = errors.New("unknown block storage engine")

	// ErrInvalidURL is returned for a URL that its engine cannot make sense of.
	ErrInvalidURL = errors.New("invalid block storage URL")
)
