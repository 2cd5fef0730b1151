// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Longest default retention.
const (
	maxRetentionDays  = 36_500
	maxRetentionYears = 100
)

// ObjectLockConfig says whether versions of a bucket's objects can be locked, and how new ones are where nothing else is said.
type ObjectLockConfig struct {
	Enabled bool `json:"enabled"`
	// Mode is that of the retention that a new version gets, for Days or Years, one of which must be 0 then; LockNone: it gets none.
	Mode  LockMode `json:"mode,omitempty"`
	Days  int      `json:"days,omitempty"`
	Years int      `json:"years,omitempty"`
}

func (o ObjectLockConfig) check() error {
	switch {
	case !o.Enabled:
		return fmt.Errorf("%w: object lock cannot be disabled", MalformedXML)
	case o.Mode == LockNone && o.Days == 0 && o.Years == 0:
		return nil
	case o.Mode != LockGovernance && o.Mode != LockCompliance:
		return fmt.Errorf("%w: a default retention needs a mode, GOVERNANCE or COMPLIANCE", MalformedXML)
	case (o.Days == 0) == (o.Years == 0):
		return fmt.Errorf("%w: a default retention needs either days or years", MalformedXML)
	case o.Days < 0 || o.Years < 0:
		return fmt.Errorf("%w: a default retention must be positive", InvalidArgument)
	case o.Days > maxRetentionDays || o.Years > maxRetentionYears:
		return fmt.Errorf("%w: a default retention is at most %d days or %d years", InvalidArgument, maxRetentionDays, maxRetentionYears)
	}
	return nil
}

// lock returns how a version that is made now is locked by default.
func (o ObjectLockConfig) lock(now time.Time) Lock {
	if o.Mode == LockNone {
		return Lock{}
	}
	return Lock{Mode: o.Mode, RetainUntil: now.UTC().AddDate(o.Years, 0, o.Days)}
}

// MarshalJSON gives a mode the name that S3 has for it.
func (m LockMode) MarshalJSON() ([]byte, error) { return json.Marshal(m.String()) }

// UnmarshalJSON refuses names that are none of a mode.
func (m *LockMode) UnmarshalJSON(data []byte) error {
	var name string
	if err := json.Unmarshal(data, &name); err != nil {
		return err
	}
	for _, mode := range []LockMode{LockNone, LockGovernance, LockCompliance} {
		if mode.String() == name {
			*m = mode
			return nil
		}
	}
	return fmt.Errorf("%w: %q is no lock mode", graveler.ErrInvalidValue, name)
}

// ObjectLock returns the object lock configuration of a bucket, ObjectLockConfigurationNotFoundError where it has none.
func (c *Catalog) ObjectLock(ctx context.Context, repo graveler.RepositoryID) (ObjectLockConfig, error) {
	s, err := c.settings(ctx, repo)
	if err == nil && s.ObjectLock == nil {
		err = ObjectLockConfigurationNotFoundError
	}
	if err != nil {
		return ObjectLockConfig{}, fmt.Errorf("object lock of %s: %w", repo, err)
	}
	return *s.ObjectLock, nil
}

// SetObjectLock enables object lock, which cannot be disabled again, or sets the default retention of versions that are made from
// now on. Versioning must be enabled: else it is InvalidBucketState. It costs a write for every branch.
func (c *Catalog) SetObjectLock(ctx context.Context, repo graveler.RepositoryID, config ObjectLockConfig) error {
	err := config.check()
	if err == nil {
		err = c.changeSettings(ctx, repo, func(s *settings) error {
			if s.Versioning != VersioningEnabled {
				return fmt.Errorf("%w: object lock needs versioning to be enabled", InvalidBucketState)
			}
			s.ObjectLock = &config
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("set object lock of %s: %w", repo, err)
	}
	return nil
}
