// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"slices"
	"time"
)

// Names and identifiers. Repository, branch and tag names are checked by names.go before they reach a store; the others are produced by this package.
type (
	RepositoryID string
	BranchID     string
	TagID        string
	// CommitID is 64 hexadecimal digits, a hash of every field of the commit (commitid.go).
	CommitID string
	// MetaRangeID names a tree: the root metarange of a commit or of a base. It is a pure function of the tree's contents. ""
	// means no tree where one is optional.
	MetaRangeID string
	// StagingToken names the partition that holds the entries staged under it.
	StagingToken string
	// Stamp is the stored form of a record as it was read, opaque to this package. A write that carries it lands only if the
	// record still has that form. nil means: no record.
	Stamp []byte
	// Key is the name of an entry, any bytes.
	Key []byte
)

// Value is what an entry holds. Identity is never empty and changes when, and only when, the entry changes; Data is opaque to this package.
type Value struct {
	Identity []byte
	Data     []byte
}

// Clone returns a copy that shares no memory with v; nil stays nil.
func (v *Value) Clone() *Value {
	if v == nil {
		return nil
	}
	return &Value{Identity: bytes.Clone(v.Identity), Data: bytes.Clone(v.Data)}
}

// size returns the number of bytes in v.
func (v *Value) size() int {
	if v == nil {
		return 0
	}
	return len(v.Identity) + len(v.Data)
}

// Same reports whether both are absent or both have one identity.
func (v *Value) Same(o *Value) bool {
	if v == nil || o == nil {
		return v == o
	}
	return bytes.Equal(v.Identity, o.Identity)
}

// Entry is a key with its value. In a stream of changes a nil Value is a tombstone: the key is to be absent.
type Entry struct {
	Key   Key
	Value *Value
}

// Clone returns a copy that shares no memory with e.
func (e Entry) Clone() Entry { return Entry{Key: bytes.Clone(e.Key), Value: e.Value.Clone()} }

// Diff is one key on which two maps differ: Left is nil where the key was added, Right is nil where it was removed, and otherwise
// the identities differ.
type Diff struct {
	Key         Key
	Left, Right *Value
}

// Clone returns a copy that shares no memory with d.
func (d Diff) Clone() Diff {
	return Diff{Key: bytes.Clone(d.Key), Left: d.Left.Clone(), Right: d.Right.Clone()}
}

// RepositoryState is where a repository is in its life.
type RepositoryState int

const (
	RepositoryCreating RepositoryState = iota + 1
	RepositoryActive
	RepositoryInDeletion
)

// Repository is the record of a repository.
type Repository struct {
	ID RepositoryID
	// UID tells this repository from earlier ones of the same name.
	UID           string
	Namespace     string // where its range files are: a URL, or a path below the store's block storage
	DefaultBranch BranchID
	CreatedAt     time.Time
	State         RepositoryState
	ReadOnly      bool
	// Adopting: while the repository was not yet active, the files in Namespace were there already; they stay if its creation is undone.
	Adopting bool
	Nonce    string // new with each write of the record
	Stamp    Stamp
}

// Partition names the partition that holds the repository's records.
func (r *Repository) Partition() string { return string(r.ID) + "-" + r.UID }

// BranchState is where a branch is in its life.
type BranchState int

const (
	BranchLive BranchState = iota + 1
	BranchDeleted
)

// Branch is the record of a branch. What a reader of the branch sees, newest first: the entries staged under Token; Items, newest first;
// then the tree Base if there is one, else the head's tree.
type Branch struct {
	ID  BranchID
	UID string // tells this branch from earlier ones of the same name, and names its log
	// State is BranchDeleted between the decision to delete and the removal of the record.
	State BranchState
	Head  CommitID
	Token StagingToken
	// ItemCounter is the number of the newest item that was ever added; numbers are never reused.
	ItemCounter uint64
	Items       []Item // the sealed list, newest first
	Base        MetaRangeID
	Hidden      bool // left out of listings
	// Protected are the actions that the repository's protection rules forbid on the branch, and ReadOnly is what the repository's record says: the
	// record that every write of the branch is conditional on carries them, so that none gets past them.
	Protected Actions
	ReadOnly  bool
	LastMove  Move
	Nonce     string // new with each write of the record
	Stamp     Stamp
}

// Clone returns a copy that shares no memory with b.
func (b *Branch) Clone() *Branch {
	c := *b
	c.Items = slices.Clone(b.Items)
	for i := range c.Items {
		c.Items[i].Prefix = bytes.Clone(c.Items[i].Prefix)
	}
	c.Stamp = bytes.Clone(b.Stamp)
	return &c
}

// Item is an element of the sealed list: a sealed token, or, where Token is empty, a deleted prefix, which hides everything older
// below Prefix (the empty prefix hides all).
type Item struct {
	Number uint64
	Token  StagingToken
	Prefix Key
}

// Op says what moved the head of a branch.
type Op int

// The numbers are stored; they never change.
const (
	OpCreate Op = iota + 1
	OpCommit
	OpMerge
	OpRevert
	OpCherryPick
	OpImport
	OpReset
	OpLifecycle
	OpMigrate
	OpDelete
)

// Move is one entry of a branch log: a change of the branch's head. Times are nanoseconds since the Unix epoch and strictly increase along a branch.
type Move struct {
	Time     int64
	Previous int64 // Time of the move before, 0 for the first
	Op       Op
	Old, New CommitID // Old is "" for the first, New is "" for a delete
	// CommittedThrough is the number of the newest item that the new head's tree includes, where Op is OpCommit and the commit was of everything.
	CommittedThrough uint64
	Actor            string
}

// Commit is an immutable record of a tree and where it came from.
type Commit struct {
	ID        CommitID
	Version   int // the rule by which ID was computed; see also Carried
	Committer string
	Message   string
	Tree      MetaRangeID
	CreatedAt time.Time // may be given by the caller
	Parents   []CommitID
	Metadata  map[string]string
	// Generation is 1 + the largest of the parents', 1 for the first commit.
	Generation int64
	// LogTime is nanoseconds since the epoch, strictly larger than every parent's, and never given by the caller.
	LogTime int64
	// Nonce makes commits that agree in all else differ; of one that was carried it is the Digest.
	Nonce string
}

// Clone returns a copy that shares no memory with c.
func (c *Commit) Clone() *Commit {
	d := *c
	d.Parents = slices.Clone(c.Parents)
	if c.Metadata != nil {
		d.Metadata = make(map[string]string, len(c.Metadata))
		for k, v := range c.Metadata {
			d.Metadata[k] = v
		}
	}
	return &d
}

// Tag is a name for a commit.
type Tag struct {
	ID     TagID
	Commit CommitID
	Stamp  Stamp
}
