// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/moraine-store/moraine/benchmarks"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/cutover"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

const (
	exitFailed   = 1
	exitUsage    = 2
	exitNotFound = 3
	exitConflict = 4
)

// exitCodes says what an error is to whoever called the command. The first that matches counts, so that damage does not pass for
// what is merely not found.
func exitCodes() []struct {
	err  error
	code int
} {
	return []struct {
		err  error
		code int
	}{
		// What is wrong in a pass is not the fault of the command line either.
		{errBlocked, exitConflict},
		{errPass, exitFailed},
		{walker.ErrNoObject, exitConflict},
		{dailyrun.ErrLeftOut, exitConflict},

		// Rows that cannot be carried over are not the fault of the command line, whatever the rule is that they break.
		{migrate.ErrInvalidRow, exitFailed},
		{migrate.ErrUnknownSchema, exitFailed},
		{migrate.ErrDirtySchema, exitFailed},
		{migrate.ErrNoLakeFS, exitFailed},
		{migrate.ErrMissingTable, exitFailed},
		{migrate.ErrForeignTrees, exitFailed},
		{migrate.ErrMissingTree, exitFailed},
		{migrate.ErrUnreachable, exitFailed},
		{migrate.ErrDiffers, exitFailed},
		{migrate.ErrInvalidSource, exitUsage},
		{migrate.ErrInvalidBlocks, exitUsage},
		{migrate.ErrNoCutover, exitUsage},
		{lakefs.ErrNamespace, exitFailed},
		{migrate.ErrNoFiles, exitFailed},
		{lakefs.ErrMissing, exitFailed},
		{lakefs.ErrIntact, exitFailed},
		{lakefs.ErrDamaged, exitFailed},
		{lakefs.ErrUnknownVersion, exitFailed},
		{lakefs.ErrInvalidRecord, exitFailed},
		{migrate.ErrNotMigrated, exitNotFound},
		{migrate.ErrTargetTaken, exitConflict},
		{migrate.ErrRunning, exitConflict},
		{migrate.ErrSharedNamespace, exitFailed},
		{migrate.ErrConverted, exitUsage},
		{migrate.ErrNotCutOver, exitConflict},
		{migrate.ErrSealed, exitConflict},
		{cutover.ErrCutOver, exitConflict},
		{cutover.ErrNotCutOver, exitConflict},
		{cutover.ErrTakenOver, exitConflict},

		{dump.ErrInvalid, exitFailed},
		{graveler.ErrInvalidTree, exitFailed},
		{graveler.ErrCorrupt, exitFailed},
		{graveler.ErrClockSkew, exitFailed},
		{graveler.ErrClosed, exitFailed},
		{graveler.ErrChanged, exitFailed},
		{graveler.ErrFenceFailed, exitFailed},
		{graveler.ErrSwept, exitFailed},

		{catalog.InternalError, exitFailed},
		{catalog.ServiceUnavailable, exitFailed},
		{catalog.BadDigest, exitUsage},
		{catalog.EntityTooLarge, exitUsage},
		{catalog.EntityTooSmall, exitUsage},
		{catalog.InvalidArgument, exitUsage},
		{catalog.InvalidBucketName, exitUsage},
		{catalog.InvalidPart, exitUsage},
		{catalog.InvalidPartOrder, exitUsage},
		{catalog.InvalidRequest, exitUsage},
		{catalog.InvalidTag, exitUsage},
		{catalog.KeyTooLongError, exitUsage},
		{catalog.MalformedXML, exitUsage},
		{catalog.MetadataTooLarge, exitUsage},
		{catalog.NotImplemented, exitUsage},
		{catalog.NoSuchBucket, exitNotFound},
		{catalog.NoSuchKey, exitNotFound},
		{catalog.NoSuchObjectLockConfiguration, exitNotFound},
		{catalog.NoSuchUpload, exitNotFound},
		{catalog.NoSuchVersion, exitNotFound},
		{catalog.ObjectLockConfigurationNotFoundError, exitNotFound},
		{catalog.AccessDenied, exitConflict},
		{catalog.BucketAlreadyExists, exitConflict},
		{catalog.BucketNotEmpty, exitConflict},
		{catalog.InvalidBucketState, exitConflict},
		{catalog.MethodNotAllowed, exitConflict},
		{catalog.NotModified, exitConflict},
		{catalog.OperationAborted, exitConflict},
		{catalog.PreconditionFailed, exitConflict},

		{graveler.ErrInvalidName, exitUsage},
		{graveler.ErrInvalidRef, exitUsage},
		{graveler.ErrInvalidValue, exitUsage},
		{graveler.ErrTooLarge, exitUsage},
		{graveler.ErrAmbiguousRef, exitUsage},

		{graveler.ErrRepositoryInDeletion, exitNotFound},
		{graveler.ErrRepositoryNotFound, exitNotFound},
		{graveler.ErrBranchNotFound, exitNotFound},
		{graveler.ErrTagNotFound, exitNotFound},
		{graveler.ErrCommitNotFound, exitNotFound},
		{graveler.ErrRefNotFound, exitNotFound},
		{graveler.ErrEntryNotFound, exitNotFound},
		{graveler.ErrSettingNotFound, exitNotFound},
		{graveler.ErrNotFound, exitNotFound},
		{graveler.ErrLogTruncated, exitNotFound},
		{graveler.ErrExpired, exitNotFound},

		{graveler.ErrExists, exitConflict},
		{graveler.ErrPreconditionFailed, exitConflict},
		{graveler.ErrConflict, exitConflict},
		{graveler.ErrNoChanges, exitConflict},
		{graveler.ErrDirtyBranch, exitConflict},
		{graveler.ErrReadOnly, exitConflict},
		{graveler.ErrProtected, exitConflict},
		{graveler.ErrDefaultBranch, exitConflict},
		{graveler.ErrNamespaceTaken, exitConflict},
		{graveler.ErrRefused, exitConflict},

		{kv.ErrLocked, exitFailed},
		{kv.ErrSchemaNewer, exitFailed},
		{kv.ErrNotAStore, exitFailed},
		{kv.ErrClosed, exitFailed},
		{kv.ErrPredicateFailed, exitFailed},
		{kv.ErrFenceFailed, exitFailed},
		{kv.ErrUnknownEngine, exitUsage},
		{kv.ErrInvalidURL, exitUsage},
		{kv.ErrMissingPartition, exitUsage},
		{kv.ErrMissingKey, exitUsage},
		{kv.ErrMissingValue, exitUsage},
		{kv.ErrMissingPredicate, exitUsage},
		{kv.ErrUnexpectedPredicate, exitUsage},
		{kv.ErrTooLarge, exitUsage},
		{kv.ErrDuplicateKey, exitUsage},
		{kv.ErrNotFound, exitNotFound},
		{kv.ErrReadOnly, exitConflict},

		{block.ErrNotFound, exitFailed}, // a file that a tree refers to
		{block.ErrShort, exitFailed},
		{block.ErrInvalidRange, exitFailed},
		{block.ErrClosed, exitFailed},
		{block.ErrUnknownEngine, exitUsage},
		{block.ErrInvalidURL, exitUsage},
		{block.ErrInvalidName, exitUsage},
		{block.ErrReadOnly, exitConflict},

		{benchmarks.ErrConfig, exitUsage},
		{benchmarks.ErrWrong, exitFailed},
	}
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if usage := (usageError{}); errors.As(err, &usage) {
		return exitUsage
	}
	for _, row := range exitCodes() {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return exitFailed
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// hinted is an error with something to do about it, which hints does not know.
type hinted struct {
	error
	hint string
}

func (e hinted) Unwrap() error { return e.error }

// hints says what to do about an error. The first that matches counts.
func hints() []struct {
	err  error
	hint string
} {
	return []struct {
		err  error
		hint string
	}{
		{context.Canceled, "interrupted"},
		{migrate.ErrForeignTrees, "check --blocks, which must be the one that the source uses; the trees of lakeFS are read from lakefs+postgres://"},
		{migrate.ErrMissingTree, "check --blocks, which must be the one that the source uses; the trees of lakeFS are read from lakefs+postgres://"},
		{migrate.ErrNoLakeFS, "check which database --from names"},
		{migrate.ErrMissingTable, "what lakeFS keeps otherwise is named lakefs+postgres://; a database that is a Moraine store itself is for 'moraine copy'"},
		{migrate.ErrDirtySchema, "have the program that keeps the tables finish that, or restore them from a backup"},
		{migrate.ErrUnknownSchema, "have the program that keeps the tables bring them to that version first"},
		{lakefs.ErrUnknownVersion, "use a later version of moraine"},
		{migrate.ErrUnreachable, "check that the server runs, and host, port, user, password and database of --from"},
		{migrate.ErrConverted, "leave --in-place away"},
		{migrate.ErrNoFiles, "check --from-blocks, and copy the files again; if they are gone for good: --allow-missing --all-lost REPO"},
		{lakefs.ErrMissing, "check --from-blocks, and copy the files again; --allow-missing goes on without it, and its entries are lost then"},
		{lakefs.ErrIntact, "no copy of it is another: report it"},
		{lakefs.ErrDamaged, "copy it again, or get it from a backup; --allow-missing goes on without it, and its entries are lost then"},
		{migrate.ErrTargetTaken, "name an empty store"},
		{migrate.ErrNotCutOver, "run 'moraine migrate cutover' first, or leave --in-place away"},
		{migrate.ErrRunning, "wait until that has ended"},
		{migrate.ErrNotMigrated, "'moraine migrate run' does that"},
		{dailyrun.ErrNoConfiguration, "'moraine lifecycle set' gives it rules"},
		{cursor.ErrMalformed, "'moraine lifecycle forget' lets that shard start afresh"},
		{errPass, "'moraine lifecycle status' shows what is in the way"},
		{walker.ErrNoObject, "it is in the way of lifecycle passes: write it anew or remove it, and commit"},
		{migrate.ErrInvalidSource, "such as postgres://user@host/database, for lakeFS lakefs+postgres://user@host/database"},
		{cutover.ErrNotCutOver, "'moraine migrate cutover' does that"},
		{cutover.ErrTakenOver, "go on with that store"},
		{cutover.ErrCutOver, "'moraine migrate cutover --back' makes them writable again"},
		{graveler.ErrCorrupt, "restore it from a backup, or check --blocks"},
		{graveler.ErrExists, "choose another name"},
		{graveler.ErrNoChanges, "use --allow-empty to commit anyway"},
		{graveler.ErrDirtyBranch, "commit them, or use --force to lose them"},
		{graveler.ErrProtected, "'moraine branch protect REPO' lists the rules"},
		{graveler.ErrClockSkew, "'moraine clock' shows both times"},
		{graveler.ErrNamespaceTaken, "without --in-place they are copied"},
		{graveler.ErrDefaultBranch, "delete the repository instead, or leave it"},
		{graveler.ErrRepositoryInDeletion, "'moraine clean' finishes the deletion"},
		{graveler.ErrRepositoryNotFound, "'moraine repo list' shows what there is"},
		{graveler.ErrRefNotFound, "see 'moraine branch list REPO', 'moraine tag list REPO' and 'moraine log REPO/REF'"},
		{graveler.ErrBranchNotFound, "'moraine branch list REPO' shows what there is"},
		{graveler.ErrTagNotFound, "'moraine tag list REPO' shows what there is"},
		{graveler.ErrAmbiguousRef, "give more digits"},
		{graveler.ErrLogTruncated, "begin there, or later"},
		{graveler.ErrExpired, "'moraine retention get REPO' shows how long they are kept"},
		{graveler.ErrSwept, "run it again"},
		{syscall.ENOSPC, "make room on the disk and run it again"},
		{kv.ErrSchemaNewer, "use the version of moraine that wrote it, or a later one"},
	}
}

// describe puts an error on one line, with a hint where there is one.
func describe(err error) string {
	text := shorten(oneLine(err.Error()))
	if own := (hinted{}); errors.As(err, &own) {
		return text + " (" + own.hint + ")"
	}
	for _, row := range hints() {
		if errors.Is(err, row.err) {
			return text + " (" + row.hint + ")"
		}
	}
	return text
}

// longWord is what is hardly a path any more, but may be a key.
var longWord = regexp.MustCompile(`\S{400,}`)

// shorten leaves out the middle of long words.
func shorten(text string) string {
	return longWord.ReplaceAllStringFunc(text, func(word string) string {
		const head, tail = 128, 64
		letters := []rune(word)
		return string(letters[:head]) + "…" + string(letters[len(letters)-tail:])
	})
}

// oneLine joins the lines of a text, those that are the same once, and escapes what a terminal should not see.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = escapeControls(strings.TrimSpace(line)); line != "" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}
