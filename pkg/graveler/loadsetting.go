// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ProtectionSetting returns the setting that holds protection rules, for Loading.PutSetting. What BranchProtection would not take
// back is ErrInvalidValue or ErrTooLarge.
func ProtectionSetting(rules []ProtectionRule) (Setting, error) {
	document, err := encodeProtection(rules)
	return Setting{Name: protectionSetting, Document: document}, err
}

// MetadataSetting returns the setting that holds the metadata of a repository, for Loading.PutSetting.
func MetadataSetting(m map[string]string) (Setting, error) {
	if err := validateMetadata(m); err != nil {
		return Setting{}, err
	}
	document, err := json.Marshal(m)
	return Setting{Name: metadataSetting, Document: document}, err
}

// PutSetting makes a setting.
func (l *Loading) PutSetting(ctx context.Context, s Setting) error {
	if err := l.alive(ctx); err != nil {
		return err
	}
	_, err := l.g.refs.PutSetting(ctx, l.repo, s.Name, s.Document, nil)
	if l.resumed && errors.Is(err, ErrChanged) {
		err = l.sameSetting(ctx, s)
	}
	return err
}

// sameSetting returns ErrExists unless the setting is there that was to be made.
func (l *Loading) sameSetting(ctx context.Context, s Setting) error {
	stored, _, err := l.g.refs.GetSetting(ctx, l.repo, s.Name)
	if err == nil && !bytes.Equal(stored, s.Document) {
		err = fmt.Errorf("setting %s: %w", s.Name, ErrExists)
	}
	return err
}
