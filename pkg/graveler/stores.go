// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"iter"
	"time"
)

// Refs is what this package asks of the store of records. Package ref implements it on a key/value store.
//
// Reads return copies and are linearizable: a read that starts after a write returned sees it or something newer. A Put or Remove that carries a
// Stamp lands only if the record still has it (nil: only if there is none) and otherwise returns ErrChanged. Any error other than ErrChanged and bad
// input means that the outcome is unknown.
type Refs interface {
	Repositories
	Branches
	Commits
	Tags
	Moves
	Pins
	Expirations
	Settings
	Cleanups
	Clock
}

// Repositories are kept by name.
type Repositories interface {
	// GetRepository returns ErrRepositoryNotFound where there is none.
	GetRepository(ctx context.Context, id RepositoryID) (*Repository, error)
	// PutRepository writes r conditionally on r.Stamp and returns the stamp of what it wrote.
	PutRepository(ctx context.Context, r *Repository) (Stamp, error)
	// RemoveRepository removes the record conditionally on r.Stamp.
	RemoveRepository(ctx context.Context, r *Repository) error
	// ScanRepositories yields the records whose names are from or greater, by name.
	ScanRepositories(ctx context.Context, from RepositoryID) iter.Seq2[*Repository, error]
}

// Branches are kept per repository, by name.
type Branches interface {
	// GetBranch returns ErrBranchNotFound where there is none. A record in state BranchDeleted is returned like any other.
	GetBranch(ctx context.Context, repo *Repository, id BranchID) (*Branch, error)
	// PutBranch writes b conditionally on b.Stamp and returns the stamp of what it wrote.
	PutBranch(ctx context.Context, repo *Repository, b *Branch) (Stamp, error)
	// PublishBranch is PutBranch for a record that must not be there before others are: whoever finds it finds these too. On
	// ErrChanged, and where the outcome is unknown, any of them may have been written all the same.
	PublishBranch(ctx context.Context, repo *Repository, b *Branch, before Preceding) (Stamp, error)
	// RemoveBranch removes the record conditionally on b.Stamp.
	RemoveBranch(ctx context.Context, repo *Repository, b *Branch) error
	ScanBranches(ctx context.Context, repo *Repository, from BranchID) iter.Seq2[*Branch, error]
}

// Preceding are records that must be there before a branch record is. To write them twice is harmless.
type Preceding struct {
	Commit   *Commit // nil: none
	Move     *Move   // of the log of the branch itself; nil: none
	Cleanups []Cleanup
}

// Commits are immutable, so writing one twice is harmless.
type Commits interface {
	// GetCommit returns ErrCommitNotFound where there is none.
	GetCommit(ctx context.Context, repo *Repository, id CommitID) (*Commit, error)
	PutCommit(ctx context.Context, repo *Repository, c *Commit) error
	ScanCommits(ctx context.Context, repo *Repository, from CommitID) iter.Seq2[*Commit, error]
}

// Tags are kept per repository, by name.
type Tags interface {
	// GetTag returns ErrTagNotFound where there is none.
	GetTag(ctx context.Context, repo *Repository, id TagID) (*Tag, error)
	// CreateTag returns ErrExists where the name is taken.
	CreateTag(ctx context.Context, repo *Repository, t *Tag) error
	// RemoveTag removes the record conditionally on t.Stamp.
	RemoveTag(ctx context.Context, repo *Repository, t *Tag) error
	ScanTags(ctx context.Context, repo *Repository, from TagID) iter.Seq2[*Tag, error]
}

// Moves are the branch logs: of each branch every move but the newest, which is in the branch record.
type Moves interface {
	// PutMove writes one move; writing it twice is harmless.
	PutMove(ctx context.Context, repo *Repository, branchUID string, m Move) error
	// ScanMoves yields the moves with from <= Time <= through, oldest first.
	ScanMoves(ctx context.Context, repo *Repository, branchUID string, from, through int64) iter.Seq2[Move, error]
	// PutLogName records that the name had a branch with this UID.
	PutLogName(ctx context.Context, repo *Repository, branch BranchID, branchUID string) error
	// ScanLogNames yields the logs that the name has had, oldest first; where branch is "", those of all names, by name.
	ScanLogNames(ctx context.Context, repo *Repository, branch BranchID) iter.Seq2[LogName, error]
	// RemoveLogName takes back what PutLogName recorded, and the start of the log. It may be repeated.
	RemoveLogName(ctx context.Context, repo *Repository, name LogName) error
	// RemoveMove removes the move at a time. It may be repeated.
	RemoveMove(ctx context.Context, repo *Repository, branchUID string, at int64) error
	// LogStart is the time before which moves may have been removed; 0 where none was.
	LogStart(ctx context.Context, repo *Repository, branchUID string) (int64, error)
	// PutLogStart sets the start of a log that nobody else knows of yet.
	PutLogStart(ctx context.Context, repo *Repository, branchUID string, at int64) error
	// LogBounds are zero where no start was ever recorded.
	LogBounds(ctx context.Context, repo *Repository, branchUID string) (LogBounds, error)
	// PutLogBounds writes b conditionally on b.Stamp.
	PutLogBounds(ctx context.Context, repo *Repository, branchUID string, b LogBounds) error
}

// LogBounds say how far back a log reaches. Both times only grow, but for an Intent that is taken back to Start.
type LogBounds struct {
	Start int64 // moves before it may have been removed
	// Intent is what somebody is about to make the start, once he has looked for pins; Start, where nobody is.
	Intent int64
	Stamp  Stamp
}

// LogName says that a branch name had the branch with a UID, whose moves are its log.
type LogName struct {
	Branch BranchID
	UID    string
}

// Pins are trees and log moves that somebody outside the version history relies on, by owner.
type Pins interface {
	// PutPin writes the pin of an owner, in the place of the one before.
	PutPin(ctx context.Context, repo *Repository, p Pin) error
	// RemovePin may be repeated.
	RemovePin(ctx context.Context, repo *Repository, owner string) error
	ScanPins(ctx context.Context, repo *Repository) iter.Seq2[Pin, error]
}

// Pin keeps trees, and of some logs the moves from a time on (by branch UID, nanoseconds since the epoch), from being removed by retention.
type Pin struct {
	Owner string
	Trees []MetaRangeID
	Logs  map[string]int64
}

// Expirations are the commits whose trees retention is taking away, or has taken.
type Expirations interface {
	// PutExpiration writes e conditionally on e.Stamp.
	PutExpiration(ctx context.Context, repo *Repository, e Expiration) error
	// GetExpiration returns ErrNotFound where the commit has none.
	GetExpiration(ctx context.Context, repo *Repository, id CommitID) (Expiration, error)
	// RemoveExpiration removes the record conditionally on e.Stamp.
	RemoveExpiration(ctx context.Context, repo *Repository, e Expiration) error
	ScanExpirations(ctx context.Context, repo *Repository) iter.Seq2[Expiration, error]
}

// Expiration says since when (nanoseconds since the epoch) a commit has expired: nobody may look at its tree any more, whose
// files may have gone. Where Pending is set it says since when nothing has been found that keeps the tree, which is there, and
// expires unless somebody comes to rely on it first.
type Expiration struct {
	Commit  CommitID
	At      int64
	Pending bool
	Stamp   Stamp
}

// Settings are named documents of a repository, each replaced as a whole.
type Settings interface {
	// GetSetting returns ErrSettingNotFound where there is none.
	GetSetting(ctx context.Context, repo *Repository, name string) ([]byte, Stamp, error)
	// PutSetting writes data conditionally on the stamp and returns the new one.
	PutSetting(ctx context.Context, repo *Repository, name string, data []byte, s Stamp) (Stamp, error)
	// RemoveSetting removes the document conditionally on the stamp.
	RemoveSetting(ctx context.Context, repo *Repository, name string, s Stamp) error
	// ScanSettings yields the names of the documents, in order.
	ScanSettings(ctx context.Context, repo *Repository) iter.Seq2[string, error]
}

// Cleanups are the partitions that are to be dropped once nothing refers to them.
type Cleanups interface {
	// PutCleanup registers c.Partition; a registration that exists is replaced.
	PutCleanup(ctx context.Context, c Cleanup) error
	RemoveCleanup(ctx context.Context, partition string) error
	ScanCleanups(ctx context.Context) iter.Seq2[Cleanup, error]
	// DropPartition removes everything in a partition. It may be repeated.
	DropPartition(ctx context.Context, partition string) error
}

// Cleanup is the registration of a partition to drop.
type Cleanup struct {
	Partition string
	// Registered is nanoseconds since the epoch.
	Registered int64
	// RepositoryID and RepositoryUID say to which repository the partition belongs, Branch to which branch. For the partition of a repository itself
	// Branch is "", and Namespace is where its files are; "" if they stay.
	RepositoryID  RepositoryID
	RepositoryUID string
	Branch        BranchID
	Namespace     string
}

// Clock keeps the newest time that any process has used.
type Clock interface {
	// Watermark returns nanoseconds since the epoch, 0 where no process has used any time yet.
	Watermark(ctx context.Context) (int64, error)
	// AdvanceWatermark makes the watermark at least t.
	AdvanceWatermark(ctx context.Context, t int64) error
	// ResetWatermark makes the watermark t, whatever it was.
	ResetWatermark(ctx context.Context, t int64) error
}

// Staging is what this package asks of the store of staged entries. Package staging implements it on a key/value store.
type Staging interface {
	// Get returns what is staged for key under token; a zero Staged where nothing is.
	Get(ctx context.Context, token StagingToken, key Key) (Staged, error)
	// Scan iterates over what is staged under token, from the first key >= from that starts with prefix. Tombstones have a nil Value.
	Scan(ctx context.Context, token StagingToken, from, prefix Key) (Iterator[Entry], error)
	// Apply writes all or none. With a fence it writes only while the fence's branch record is the stored one, else it returns
	// ErrFenceFailed; a failed condition of a write is ErrChanged. No key may stand twice.
	Apply(ctx context.Context, fence *Fence, token StagingToken, writes []StagedWrite) error
	Limits() StagingLimits
}

// Staged is what a token holds for a key: a value, or a tombstone (nil Value) where Stamp is not nil.
type Staged struct {
	Value *Value
	Stamp Stamp // nil: nothing is staged
}

// StagedWrite stages one entry; a nil Value stages a tombstone. If Conditional, it lands only while what is staged for the key has the stamp If.
type StagedWrite struct {
	Key         Key
	Value       *Value
	Conditional bool
	If          Stamp
	// Check, of a conditional write, leaves the key as it is: only the condition counts. It holds at the instant at which the others land.
	Check bool
}

// Size is at least what a store needs for the write, in bytes; StagingLimits counts it.
func (w StagedWrite) Size() int {
	size := 2*len(w.Key) + 64
	switch {
	case w.Check:
		size += len(w.If)
	case w.Value != nil:
		size += len(w.Value.Identity) + len(w.Value.Data)
	}
	return size
}

// Fence is the branch record, as read, that a staged write relies on.
type Fence struct {
	Repository *Repository
	Branch     *Branch
}

// StagingLimits says how much one Apply can take, as a number of writes and as the sum of their sizes, and whether a fence costs
// next to nothing (else plain writes use the re-check protocol).
type StagingLimits struct {
	Writes, Bytes int
	CheapFences   bool
}

// Trees is what this package asks of the store of committed entries. Package committed implements it on block storage.
//
// ns is the namespace of the repository. A tree that these return is complete and durable. A missing, truncated or altered file
// is an error that names it.
type Trees interface {
	TreeFiles
	// EmptyTree is the ID of the tree without entries; it needs no file.
	EmptyTree() MetaRangeID
	// CheckNamespace makes sure that ns can hold files.
	CheckNamespace(ctx context.Context, ns string) error
	// Get returns ErrEntryNotFound where the tree does not have the key.
	Get(ctx context.Context, ns string, tree MetaRangeID, key Key) (*Value, error)
	// Scan iterates over the entries by key. It opens nothing until the first call of Next.
	Scan(ctx context.Context, ns string, tree MetaRangeID) Iterator[Entry]
	// Apply returns the tree with changes (by strictly ascending key; nil Value removes) applied. Changes that change nothing are
	// allowed. It does not close changes. Where files that it was built on have been removed meanwhile, it returns ErrSwept.
	Apply(ctx context.Context, ns string, tree MetaRangeID, changes Iterator[Entry]) (MetaRangeID, error)
	// Drop removes every file of the namespace. It may be repeated.
	Drop(ctx context.Context, ns string) error
	// Diff iterates over the keys on which two trees differ, by key.
	Diff(ctx context.Context, ns string, left, right MetaRangeID) Iterator[Diff]
}

// TreeFiles are the files of trees one by one, for those who check, copy and remove them.
type TreeFiles interface {
	// Walk visits the files of a tree, each before those below it; a file is only read where visit says to enter it.
	Walk(ctx context.Context, ns string, tree MetaRangeID, visit func(TreeFile) (enter bool, err error)) error
	// ListFiles yields every file of a namespace, also those that are not of a tree.
	ListFiles(ctx context.Context, ns string) iter.Seq2[StoredFile, error]
	// CheckFile reads a file and checks all of it, its ID included. What is missing or not as it was written is ErrCorrupt.
	CheckFile(ctx context.Context, ns string, f TreeFile) error
	// ScanFile yields the entries in one file: those of a range, none of a metarange. They are valid until the next step.
	ScanFile(ctx context.Context, ns, id string) iter.Seq2[Entry, error]
	// CopyTree makes a tree of one namespace one of another, durably. It copies nothing of a file, nor of those below it, for which visit says no.
	CopyTree(ctx context.Context, from, to string, tree MetaRangeID, visit func(TreeFile) (copy bool, err error)) error
	// FileTime is the present time by the clock that stamps the files of a namespace, which need not be that of this machine.
	FileTime(ctx context.Context, ns string) (time.Time, error)
	// RemoveFiles removes those of the files that were last put or refreshed before a time, and keeps the others. It is safe
	// beside builders in any process: a build that relied on one of them is either before it, so that the file stays, or returns
	// ErrSwept. The caller knows that nothing refers to the files, and that before is at least FileGrace ago by FileTime (else it
	// is ErrInvalidValue, and nothing is removed). What was removed is returned with an error too; IDs that have no file are
	// skipped.
	RemoveFiles(ctx context.Context, ns string, ids []string, before time.Time) (removed []string, err error)
}

// FileGrace is how long the files of trees are kept that nothing refers to. A tree must be referred to within half of it from the
// moment at which building it began, since it may rely on files that were there before; later it must be built again. It is a
// constant, not an option: processes with different ones would remove the files of each other's trees.
const FileGrace = 24 * time.Hour

// TreeFile is a file as the tree above it describes it.
type TreeFile struct {
	ID string
	// Root: it is the metarange that the tree is named by. Nothing above describes it, and only ID is set.
	Root bool
	// Level is 0 for a range, and more for the metaranges above.
	Level       int
	First, Last Key
	Entries     uint64 // below it
	Bytes       uint64 // of keys, identities and data of these
}

// Equal reports whether two descriptions agree.
func (f TreeFile) Equal(o TreeFile) bool {
	return f.ID == o.ID && f.Root == o.Root && f.Level == o.Level && bytes.Equal(f.First, o.First) && bytes.Equal(f.Last, o.Last) && f.Entries == o.Entries && f.Bytes == o.Bytes
}

// StoredFile is a file that is in a namespace.
type StoredFile struct {
	Name    string
	ID      string // "": it is no file of a tree
	Size    int64  // bytes
	ModTime time.Time
	// Sweep: it is one that RemoveFiles and FileTime have beside those of the trees, for a while.
	Sweep bool
}

// Iterator walks a sorted sequence. It is used by one goroutine at a time and must be closed.
//
// What Item returns must not be modified and is valid until the next call of any other method; clone what is kept.
type Iterator[T any] interface {
	// Next goes to the next item, the first at the start; false at the end or on an error.
	Next() bool
	// SeekGE makes the next call of Next go to the first item whose key is >= key, forward or backward.
	SeekGE(key Key)
	Item() T
	// Err is the error that ended the iteration, nil at a proper end. A caller that sees Next return false must look at it.
	Err() error
	// Close releases everything. It returns Err's error too, so that it is not lost where only Close is looked at. It may be repeated.
	Close() error
}
