// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// metadataSetting is the setting that holds a repository's metadata.
const metadataSetting = "metadata"

// RepositoryMetadata returns what users have noted about a repository.
func (g *Graveler) RepositoryMetadata(ctx context.Context, repo RepositoryID) (map[string]string, error) {
	r, err := g.repository(ctx, repo)
	if err != nil {
		return nil, err
	}
	data, _, err := g.refs.GetSetting(ctx, r, metadataSetting)
	if err != nil && !errors.Is(err, ErrSettingNotFound) {
		return nil, err
	}
	return decodeMetadata(data)
}

// UpdateRepositoryMetadata replaces the metadata of a repository by what change makes of a copy of it, which is called again
// where others change it at the same time. It must be UTF-8 and is at most MaxMetadataBytes.
func (g *Graveler) UpdateRepositoryMetadata(ctx context.Context, repo RepositoryID, change func(map[string]string) (map[string]string, error)) error {
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	err = g.updateSetting(ctx, r, metadataSetting, func(old []byte) ([]byte, error) {
		m, err := decodeMetadata(old)
		if err == nil {
			m, err = change(m)
		}
		if err == nil {
			err = validateMetadata(m)
		}
		if err != nil {
			return nil, err
		}
		return json.Marshal(m)
	})
	if err != nil {
		return fmt.Errorf("metadata of %s: %w", repo, err)
	}
	return nil
}

func decodeMetadata(data []byte) (map[string]string, error) {
	m := map[string]string{}
	if data == nil {
		return m, nil
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("setting %s: %w: %w", metadataSetting, ErrCorrupt, err)
	}
	return m, nil
}

func validateMetadata(m map[string]string) error {
	const perPair = 16 // what a pair takes in a record besides its text
	size := 0
	for k, v := range m {
		if size += len(k) + len(v) + perPair; !utf8.ValidString(k) || !utf8.ValidString(v) {
			return fmt.Errorf("%w: metadata must be UTF-8", ErrInvalidValue)
		}
	}
	if size > MaxMetadataBytes {
		return fmt.Errorf("%w: metadata of %d bytes, at most %d are allowed", ErrTooLarge, size, MaxMetadataBytes)
	}
	return nil
}
