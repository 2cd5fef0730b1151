// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// Setting is a named document of a repository, of which this package does not know what it means. It is replaced as a whole.
type Setting struct {
	Name     string
	Document []byte
	// Checksum stands for this writing of the document: no other, also of the same bytes, has it.
	Checksum string
}

// GetSetting returns ErrSettingNotFound where there is none.
func (g *Graveler) GetSetting(ctx context.Context, repo RepositoryID, name string) (Setting, error) {
	r, err := g.repository(ctx, repo)
	if err != nil {
		return Setting{}, err
	}
	data, stamp, err := g.refs.GetSetting(ctx, r, name)
	return Setting{Name: name, Document: data, Checksum: checksum(stamp)}, err
}

// PutSetting replaces the document that has the checksum expected; "" means that there must be none. Otherwise it returns
// ErrPreconditionFailed and changes nothing. A name is 1 to 64 lower-case letters, digits and dashes; a document has at most 16
// MiB. The documents branch-protection, retention and metadata are not for PutSetting: ErrInvalidName.
func (g *Graveler) PutSetting(ctx context.Context, repo RepositoryID, name string, data []byte, expected string) (Setting, error) {
	stamp, err := g.changeSetting(ctx, repo, name, expected, func(r *Repository, stamp Stamp) (Stamp, error) {
		return g.refs.PutSetting(ctx, r, name, data, stamp)
	})
	if err != nil {
		return Setting{}, err
	}
	return Setting{Name: name, Document: data, Checksum: checksum(stamp)}, nil
}

// RemoveSetting removes the document that has the checksum expected, else it returns ErrPreconditionFailed.
func (g *Graveler) RemoveSetting(ctx context.Context, repo RepositoryID, name, expected string) error {
	_, err := g.changeSetting(ctx, repo, name, expected, func(r *Repository, stamp Stamp) (Stamp, error) {
		return nil, g.refs.RemoveSetting(ctx, r, name, stamp)
	})
	return err
}

func (g *Graveler) changeSetting(ctx context.Context, repo RepositoryID, name, expected string, change func(r *Repository, stamp Stamp) (Stamp, error)) (Stamp, error) {
	r, err := g.writable(ctx, repo)
	if err != nil {
		return nil, err
	}
	if name == protectionSetting || name == retentionSetting || name == metadataSetting {
		return nil, fmt.Errorf("setting %s of %s: %w: it has operations of its own", name, repo, ErrInvalidName)
	}
	_, stamp, err := g.refs.GetSetting(ctx, r, name)
	if err != nil && !errors.Is(err, ErrSettingNotFound) {
		return nil, err
	}
	if checksum(stamp) == expected {
		stamp, err = change(r, stamp)
		if !errors.Is(err, ErrChanged) {
			return stamp, err
		}
	}
	return nil, fmt.Errorf("setting %s of %s: %w: it has changed", name, repo, ErrPreconditionFailed)
}

// checksum names a stored record; "" is that of none.
func checksum(s Stamp) string {
	if s == nil {
		return ""
	}
	sum := sha256.Sum256(s)
	return hex.EncodeToString(sum[:16])
}

// updateSetting replaces a document by what change makes of it (nil: there is none), and does so again where another was quicker.
func (g *Graveler) updateSetting(ctx context.Context, r *Repository, name string, change func(old []byte) ([]byte, error)) error {
	for {
		old, stamp, err := g.refs.GetSetting(ctx, r, name)
		if err != nil && !errors.Is(err, ErrSettingNotFound) {
			return err
		}
		data, err := change(old)
		if err != nil {
			return err
		}
		if _, err := g.refs.PutSetting(ctx, r, name, data, stamp); !errors.Is(err, ErrChanged) {
			return err
		}
	}
}
