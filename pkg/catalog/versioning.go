// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Versioning says what a bucket does with what is overwritten or deleted.
type Versioning string

const (
	// VersioningOff: it goes. A bucket is made so, and never is so again once versioning was enabled.
	VersioningOff Versioning = ""
	// VersioningEnabled: it is kept, and each put makes a version with an ID of its own.
	VersioningEnabled Versioning = "Enabled"
	// VersioningSuspended: the versions that were made while it was enabled are kept, but a put makes the null version, of which
	// there is one at most.
	VersioningSuspended Versioning = "Suspended"
)

func (v Versioning) check() error {
	switch v {
	case VersioningOff, VersioningEnabled, VersioningSuspended:
		return nil
	}
	return fmt.Errorf("%w: versioning %q is none of Enabled, Suspended", MalformedXML, v)
}

// Versioning returns the versioning of a bucket.
func (c *Catalog) Versioning(ctx context.Context, repo graveler.RepositoryID) (Versioning, error) {
	s, err := c.settings(ctx, repo)
	if err != nil {
		return VersioningOff, fmt.Errorf("versioning of %s: %w", repo, err)
	}
	return s.Versioning, nil
}

// SetVersioning enables or suspends versioning, for all branches. When it returns nil no process makes a change by the old
// setting any more; after an error some may, until it is repeated. Object lock needs versioning: suspending it is
// InvalidBucketState then. It costs a write for every branch.
func (c *Catalog) SetVersioning(ctx context.Context, repo graveler.RepositoryID, v Versioning) error {
	err := v.check()
	if v == VersioningOff {
		err = fmt.Errorf("%w: versioning can be suspended, not turned off", MalformedXML)
	}
	if err == nil {
		err = c.changeSettings(ctx, repo, func(s *settings) error {
			if v == VersioningSuspended && s.ObjectLock != nil {
				return fmt.Errorf("%w: object lock needs versioning, which thus cannot be suspended", InvalidBucketState)
			}
			s.Versioning = v
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("set versioning of %s: %w", repo, err)
	}
	return nil
}
