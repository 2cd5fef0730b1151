// SPDX-License-Identifier: Apache-2.0

package fsck

import "github.com/moraine-store/moraine/pkg/graveler"

// Severity tells what has to be repaired from what is only worth knowing.
type Severity string

const (
	Damage Severity = "damage"
	Note   Severity = "note"
)

// Kind says what is the matter. The names do not change.
type Kind string

// Damage.
const (
	// BadRecord does not decode, or is not the one that its key names.
	BadRecord Kind = "bad-record"
	// BadBranch contradicts itself, or lists a staging token that is not its own.
	BadBranch Kind = "bad-branch"
	// MissingBranch is the default branch of its repository.
	MissingBranch Kind = "missing-branch"
	// BadCommit is not what its ID or its parents say.
	BadCommit Kind = "bad-commit"
	// MissingCommit is referred to by a branch, a commit or a log.
	MissingCommit Kind = "missing-commit"
	// DanglingTag names a commit that does not exist.
	DanglingTag Kind = "dangling-tag"
	// BadLog lacks moves, or has some that do not follow each other.
	BadLog Kind = "bad-log"
	// BadSetting cannot be put together from its chunks.
	BadSetting Kind = "bad-setting"
	// BadTree is referred to by a name that no tree has.
	BadTree Kind = "bad-tree"
	// BadFile is not what it was when it was written.
	BadFile Kind = "bad-file"
	// MissingFile is one that a tree refers to.
	MissingFile Kind = "missing-file"
	// UnreadableFile could not be read: what is in it is not known. Where File is "", it was the namespace that could not be
	// listed, and none of its files was checked.
	UnreadableFile Kind = "unreadable-file"
)

// Notes.
const (
	// Unfinished is a creation or a deletion that is under way or was cut off; Maintain sees to it.
	Unfinished Kind = "unfinished"
	// Unverified are commits whose IDs follow a rule that this program does not know.
	Unverified Kind = "unverified"
	// OrphanFiles are those that no tree refers to which was looked at: left by operations that were cut off, folded away, taken
	// by retention and not removed yet, or about to be referred to.
	OrphanFiles Kind = "orphan-files"
	// ForeignFiles in a namespace are not of any tree.
	ForeignFiles Kind = "foreign-files"
	// ForeignRecords stand under keys that this program does not know.
	ForeignRecords Kind = "foreign-records"
)

// Finding is one thing that a check has found. It can be compared.
type Finding struct {
	Kind     Kind
	Severity Severity
	// Where it is, as far as that applies. Of what refers to something missing or damaged and what is missing or damaged both are set.
	Repository graveler.RepositoryID
	Branch     graveler.BranchID
	Tag        graveler.TagID
	Commit     graveler.CommitID
	File       string // ID of a range or metarange
	// Partition and Key are set for a record that does not decode, and for foreign ones (of which they name the first).
	Partition, Key string
	// Count and Bytes sum up what is not listed one by one.
	Count, Bytes int64
	// What says it in words, on one line unless there are line breaks in what it quotes.
	What string
}

// Counts says what was checked, and with what result.
type Counts struct {
	Repositories int
	Branches     int
	Tags         int
	Commits      int
	// ExpiredCommits are those whose trees retention has taken, or may take: their files were not looked for.
	ExpiredCommits int
	// UnreachedCommits are those that no branch, tag or log leads to, and that were not carried (see graveler.Commit.Carried):
	// neither their parents nor their files were looked for.
	UnreachedCommits int
	Moves            int // of branch logs, those in the branches' records included
	StagedEntries    int
	Files            int // of trees, each once; with Options.Quick most of them were only looked for
	FileBytes        int64
	// PartitionsWaiting are registered to be dropped by Maintain. They are not counted where repositories are named.
	PartitionsWaiting int

	Damages, Notes int // findings
}
