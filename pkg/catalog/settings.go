// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// settingName is the setting of a repository that holds the settings of the bucket.
const settingName = "bucket"

// settings are what a bucket does with the versions of its objects.
//
// A change must not act on settings that have been replaced: one that did not know yet that versions are kept would destroy one.
// So whoever replaces them writes the record of every branch afterwards, and says so in the document until that is done. A
// transaction that takes place on a record thus knows that the settings that were read after the record was first seen are the
// settings still; and who reads a document of which the records do not know yet, sees to that first. So a change asks for the
// settings once per record, not every time.
type settings struct {
	Versioning Versioning        `json:"versioning,omitempty"`
	ObjectLock *ObjectLockConfig `json:"objectLock,omitempty"`
	// Unsettled: the records of the branches have not all been written since the document was.
	Unsettled bool `json:"unsettled,omitempty"`

	checksum string
}

// settings returns the settings of a bucket, which all changes know.
func (c *Catalog) settings(ctx context.Context, repo graveler.RepositoryID) (settings, error) {
	for {
		s, err := c.readSettings(ctx, repo)
		if err != nil || !s.Unsettled {
			return s, err
		}
		err = c.settle(ctx, repo, s)
		if errors.Is(err, graveler.ErrReadOnly) { // nothing can be changed, by any settings
			return s, nil
		}
		if err != nil {
			return settings{}, err
		}
	}
}

func (c *Catalog) readSettings(ctx context.Context, repo graveler.RepositoryID) (settings, error) {
	stored, err := c.store.GetSetting(ctx, repo, settingName)
	if errors.Is(err, graveler.ErrSettingNotFound) {
		return settings{}, nil
	}
	if err != nil {
		return settings{}, err
	}
	return parseSettings(repo, stored)
}

func parseSettings(repo graveler.RepositoryID, stored graveler.Setting) (settings, error) {
	s, err := decodeSettings(stored.Document)
	if err != nil {
		return settings{}, fmt.Errorf("setting %s of %s: %w: %w", settingName, repo, graveler.ErrCorrupt, err)
	}
	s.checksum = stored.Checksum
	return s, nil
}

// decodeSettings refuses what it does not understand: to overlook a setting would be to act against it.
func decodeSettings(document []byte) (s settings, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return settings{}, err
	}
	if err := s.Versioning.check(); err != nil {
		return settings{}, err
	}
	if s.ObjectLock != nil {
		err = s.ObjectLock.check()
	}
	return s, err
}

// settle makes the records of all branches new ones, so that every change of before fails, and writes down that this is done.
// Another may be doing the same.
func (c *Catalog) settle(ctx context.Context, repo graveler.RepositoryID, s settings) error {
	same := func(rules []graveler.ProtectionRule) ([]graveler.ProtectionRule, error) { return rules, nil }
	if err := c.store.ProtectBranches(ctx, repo, same); err != nil {
		return err
	}
	s.Unsettled = false
	err := c.putSettings(ctx, repo, s)
	if errors.Is(err, graveler.ErrPreconditionFailed) {
		return nil
	}
	return err
}

func (c *Catalog) putSettings(ctx context.Context, repo graveler.RepositoryID, s settings) error {
	document, err := json.Marshal(s)
	if err != nil {
		return err
	}
	_, err = c.store.PutSetting(ctx, repo, settingName, document, s.checksum)
	return err
}

// changeSettings replaces the settings of a bucket by what change makes of them.
func (c *Catalog) changeSettings(ctx context.Context, repo graveler.RepositoryID, change func(s *settings) error) error {
	for {
		s, err := c.settings(ctx, repo)
		if err == nil {
			err = change(&s)
		}
		if err != nil {
			return err
		}
		s.Unsettled = true
		err = c.putSettings(ctx, repo, s)
		if errors.Is(err, graveler.ErrPreconditionFailed) {
			continue
		}
		if err == nil {
			_, err = c.settings(ctx, repo) // settles them
		}
		return err
	}
}

// known is what a process remembers of buckets. It is safe for concurrent use.
type known struct {
	mu       sync.Mutex
	branches map[branchName]knownSettings
	defaults map[graveler.RepositoryID]knownDefault
}

// knownSettings are settings that were read after a record of a branch was seen.
type knownSettings struct {
	record   string
	settings settings
}

// knownDefault is the default branch of a repository, and when the reading of it began.
type knownDefault struct {
	branch graveler.BranchID
	read   time.Time
}

const (
	// defaultTrust is how long a default branch is relied on without reading the repository's record again.
	defaultTrust = time.Second
	// maxKnown bounds the memory; what is known beyond it is forgotten, all at once.
	maxKnown = 10_000
)

// settingsFor returns the settings that hold when the transaction takes place.
func (c *Catalog) settingsFor(ctx context.Context, on branchName, tx *graveler.Transaction) (settings, error) {
	c.known.mu.Lock()
	k, ok := c.known.branches[on]
	c.known.mu.Unlock()
	if ok && k.record == tx.Record() {
		return k.settings, nil
	}
	s, err := c.settings(ctx, on.repository)
	if err != nil {
		return settings{}, err
	}
	c.known.mu.Lock()
	defer c.known.mu.Unlock()
	if len(c.known.branches) >= maxKnown {
		clear(c.known.branches)
	}
	c.known.branches[on] = knownSettings{tx.Record(), s}
	return s, nil
}

func (k *known) defaultOf(repo graveler.RepositoryID) (graveler.BranchID, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	d, ok := k.defaults[repo]
	return d.branch, ok && time.Since(d.read) < defaultTrust
}

func (k *known) setDefault(repo graveler.RepositoryID, d knownDefault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.defaults) >= maxKnown {
		clear(k.defaults)
	}
	k.defaults[repo] = d
}

func (k *known) forgetDefault(repo graveler.RepositoryID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.defaults, repo)
}
