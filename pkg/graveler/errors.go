// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"errors"
	"fmt"
)

// Not found. Each of the others matches ErrNotFound too.
var (
	ErrNotFound           = errors.New("not found")
	ErrRepositoryNotFound = fmt.Errorf("repository %w", ErrNotFound)
	ErrBranchNotFound     = fmt.Errorf("branch %w", ErrNotFound)
	ErrTagNotFound        = fmt.Errorf("tag %w", ErrNotFound)
	ErrCommitNotFound     = fmt.Errorf("commit %w", ErrNotFound)
	ErrRefNotFound        = fmt.Errorf("ref %w", ErrNotFound)
	ErrEntryNotFound      = fmt.Errorf("entry %w", ErrNotFound)
	ErrSettingNotFound    = fmt.Errorf("setting %w", ErrNotFound)
	// ErrRepositoryInDeletion: the repository is being deleted, or a creation that was cut off is being undone.
	ErrRepositoryInDeletion = errors.New("repository is being deleted")
)

// Bad input, reported before anything is written.
var (
	ErrInvalidName  = errors.New("invalid name")
	ErrInvalidRef   = errors.New("invalid ref expression")
	ErrInvalidValue = errors.New("invalid value")
	ErrTooLarge     = errors.New("too large")
	// ErrAmbiguousRef: a commit prefix that several commits share.
	ErrAmbiguousRef = errors.New("ambiguous commit prefix")
)

// Conflicts: the state of the store forbids what was asked for.
var (
	ErrExists             = errors.New("exists already")
	ErrPreconditionFailed = errors.New("precondition failed")
	ErrNoChanges          = errors.New("nothing to commit")
	ErrDirtyBranch        = errors.New("branch has uncommitted changes")
	ErrReadOnly           = errors.New("read-only")
	// ErrProtected: a protection rule forbids it on the branch.
	ErrProtected = errors.New("branch is protected")
	// ErrNamespaceTaken: the files that a repository was to take over belong to another one.
	ErrNamespaceTaken = errors.New("its files belong to another repository")
	// ErrDefaultBranch: the default branch of a repository cannot be deleted.
	ErrDefaultBranch = errors.New("is the default branch")
	// ErrRefused wraps what a hook returned.
	ErrRefused = errors.New("refused by hook")
)

// Outcomes that stores report to this package.
var (
	// ErrChanged: a record no longer has the form that the write was conditional on; nothing was written.
	ErrChanged = errors.New("record changed")
	// ErrFenceFailed: the branch record that a staged write was fenced with is not the current one; nothing was written.
	ErrFenceFailed = errors.New("branch record changed")
	// ErrSwept: files that a tree was built on were removed meanwhile. Nothing refers to the tree yet; whoever wants it builds it again.
	ErrSwept = errors.New("files it was built on were removed meanwhile")
)

var (
	// ErrClockSkew: this machine's clock is too far from those that wrote to the store before.
	ErrClockSkew = errors.New("clock skew")
	ErrClosed    = errors.New("closed")
	// ErrCorrupt: stored data contradicts itself: a missing commit that is referred to, a record that does not decode, a gap in a branch log.
	ErrCorrupt = errors.New("corrupt data")
	// ErrInvalidTree: what names a tree holds no ID of one. It is ErrCorrupt, since nobody types such IDs.
	ErrInvalidTree = fmt.Errorf("%w: not the ID of a tree", ErrCorrupt)
)
