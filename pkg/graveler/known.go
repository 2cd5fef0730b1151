// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"sync"
	"time"

	"github.com/maypok86/otter/v2"
)

// repositoryTrust is how long a read of a commit by its ID relies on a repository's record without reading it again: so much
// later, at most, it notices that another process has deleted the repository.
const repositoryTrust = time.Second

// knownRepositories remembers the records of active repositories as this process last read them. It is safe for concurrent use.
//
// A record is put in its place by when its reading began, and not at all if the repository was forgotten meanwhile. So what this
// process has deleted does not come back by a read that was under way, and a record never gives way to an older one.
type knownRepositories struct {
	records *otter.Cache[RepositoryID, knownRepository]

	mu      sync.Mutex // held by those who change records
	forgets uint64
}

type knownRepository struct {
	*Repository
	read time.Time // when the reading of it began
}

// repositoryReading is a reading under way of the record of a repository.
type repositoryReading struct {
	began   time.Time
	forgets uint64
}

func newKnownRepositories() *knownRepositories {
	return &knownRepositories{records: newCache[RepositoryID, knownRepository]()}
}

// begin is called before a record is read.
func (k *knownRepositories) begin() repositoryReading {
	k.mu.Lock()
	defer k.mu.Unlock()
	return repositoryReading{began: time.Now(), forgets: k.forgets}
}

// remember keeps what a reading brought.
func (k *knownRepositories) remember(r *Repository, by repositoryReading) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if by.forgets != k.forgets {
		return
	}
	if now, ok := k.records.GetIfPresent(r.ID); !ok || now.read.Before(by.began) {
		k.records.Set(r.ID, knownRepository{r, by.began})
	}
}

// forget is called when a repository turns out not to be active, or to have changed.
func (k *knownRepositories) forget(id RepositoryID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgets++
	k.records.Invalidate(id)
}

// last returns the record as last read: a hint.
func (k *knownRepositories) last(id RepositoryID) (*Repository, bool) {
	r, ok := k.records.GetIfPresent(id)
	return r.Repository, ok
}

// trusted returns the record if it was read a moment ago.
func (k *knownRepositories) trusted(id RepositoryID) (*Repository, bool) {
	r, ok := k.records.GetIfPresent(id)
	return r.Repository, ok && time.Since(r.read) < repositoryTrust
}

// knownCommit returns a commit that this process has read before, nil where it has not, or must first make sure that the repository is still there.
// A commit never changes, so what it shows needs no other proof.
func (g *Graveler) knownCommit(id RepositoryID, ref string) (*Repository, *Commit) {
	if !isCommitID(ref) {
		return nil, nil
	}
	repo, ok := g.repositories.trusted(id)
	if !ok {
		return nil, nil
	}
	c, ok := g.commits.GetIfPresent(commitKey{repo.Partition(), CommitID(ref)})
	if !ok {
		return nil, nil
	}
	return repo, c
}
