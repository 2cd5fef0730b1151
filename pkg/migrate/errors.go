// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

var (
	// ErrUnknownSchema: the tables are of a version that this program does not know.
	ErrUnknownSchema = errors.New("unknown version of the tables")
	// ErrDirtySchema: a change of the tables was cut off.
	ErrDirtySchema = errors.New("the tables are marked dirty: a change of their schema was cut off")
	// ErrMissingTable: the database lacks a table that is to be read.
	ErrMissingTable = errors.New("missing table")
	// ErrInvalidRow: a row that cannot be carried over. What is wrong, and with which row, is a RowError.
	ErrInvalidRow = errors.New("cannot be migrated")
	// ErrForeignTrees: the files of a repository are not Moraine's own, and nobody at hand reads their format.
	ErrForeignTrees = errors.New("metaranges in a foreign format, for which there is no reader")
	// ErrMissingTree: a file that a commit of the tables refers to is not where Moraine's own files would be.
	ErrMissingTree = errors.New("missing range file")
	// ErrTargetTaken: the target holds what this migration did not bring there.
	ErrTargetTaken = errors.New("the target holds other data")
	// ErrRunning: another process is at this migration, or copies into this store.
	ErrRunning = errors.New("another process is running this migration, or copy")
	// ErrNotMigrated: the target holds no migration, or not of this source.
	ErrNotMigrated = errors.New("nothing was migrated here from this source")
	// ErrDiffers: the two sides do not hold the same.
	ErrDiffers = errors.New("the sides differ")
	// ErrNotCutOver: files are to be taken over from tables that may still be written.
	ErrNotCutOver = errors.New("its files cannot be taken over before the tables are cut over")
	// ErrSealed: a branch has uncommitted changes that this program's SQL store has sealed, so that its token alone does not say
	// what the branch shows.
	ErrSealed = errors.New("sealed uncommitted changes: commit or reset them first, or carry the store over with 'moraine copy'")
	// ErrSharedNamespace: two repositories of lakeFS have one storage namespace, so that nobody could tell whose the objects in it are.
	ErrSharedNamespace = errors.New("two repositories have one storage namespace")
	// ErrConverted: files of lakeFS were to be taken over.
	ErrConverted = errors.New("files of lakeFS are converted, and cannot be taken over")
	// ErrNoLakeFS: a database that is named as one of lakeFS has nothing of it.
	ErrNoLakeFS = errors.New("the database has neither the table kv, with the schema version that lakeFS notes in it, nor the tables that lakeFS had before")
	// ErrNoFiles: a repository of lakeFS has trees, and no file is where its files are looked for.
	ErrNoFiles = errors.New("there is no file of the repository")
	// ErrInvalidBlocks: what names the place of the files of lakeFS is no URL that can be opened.
	ErrInvalidBlocks = errors.New("invalid place of range files (--from-blocks)")
	// ErrNoCutover: a database that lakeFS keeps cannot be cut over.
	ErrNoCutover = errors.New("lakeFS does not know the marker of a cutover, and goes on writing: stop it, or take its right to write in the database away")
	// ErrUnreachable: the server that has the source cannot be reached, or lets nobody in.
	ErrUnreachable = errors.New("no connection to PostgreSQL")
	// ErrInvalidSource: what names the source is no URL of a PostgreSQL database.
	ErrInvalidSource = errors.New("invalid URL of a PostgreSQL database")
)

// RowError says which row of the source cannot be carried over, and why. It matches ErrInvalidRow, and Reason.
type RowError struct {
	Table      string
	Repository string
	Key        string
	Reason     error
}

func (e *RowError) Error() string {
	var b strings.Builder
	b.WriteString(e.Table)
	if e.Repository != "" {
		fmt.Fprintf(&b, ", repository %s", quoted(e.Repository))
	}
	if e.Key != "" {
		fmt.Fprintf(&b, ", %s", quoted(e.Key))
	}
	fmt.Fprintf(&b, ": %v", e.Reason)
	return b.String()
}

// Unwrap lets a row error match ErrInvalidRow and its reason.
func (e *RowError) Unwrap() []error { return []error{ErrInvalidRow, e.Reason} }

// quoted shows any text on one line, shortened.
func quoted(s string) string {
	const most = 200
	dots := ""
	if len(s) > most {
		s, dots = s[:most], "…"
	}
	q := strconv.Quote(s)
	return q[1:len(q)-1] + dots
}
