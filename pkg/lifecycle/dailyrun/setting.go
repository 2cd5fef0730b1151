// SPDX-License-Identifier: Apache-2.0

package dailyrun

import (
	"context"
	"errors"
	"fmt"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// settingName is the setting of a repository that holds its configuration, as JSON.
const settingName = "lifecycle"

// Settings is what the configurations of repositories are kept in; *graveler.Graveler has it.
type Settings interface {
	GetSetting(ctx context.Context, repo graveler.RepositoryID, name string) (graveler.Setting, error)
	PutSetting(ctx context.Context, repo graveler.RepositoryID, name string, data []byte, expected string) (graveler.Setting, error)
	RemoveSetting(ctx context.Context, repo graveler.RepositoryID, name, expected string) error
}

// ErrNoConfiguration: the repository has no lifecycle configuration.
var ErrNoConfiguration = fmt.Errorf("lifecycle configuration: %w", graveler.ErrSettingNotFound)

// GetConfiguration returns the lifecycle configuration of a repository, ErrNoConfiguration where there is none. One that cannot
// be read is graveler.ErrCorrupt.
func GetConfiguration(ctx context.Context, s Settings, repo graveler.RepositoryID) (lifecycle.Configuration, error) {
	c, _, err := configuration(ctx, s, repo)
	if err != nil {
		return lifecycle.Configuration{}, fmt.Errorf("repository %s: %w", repo, err)
	}
	return c, nil
}

func configuration(ctx context.Context, s Settings, repo graveler.RepositoryID) (lifecycle.Configuration, graveler.Setting, error) {
	stored, err := s.GetSetting(ctx, repo, settingName)
	if errors.Is(err, graveler.ErrSettingNotFound) {
		err = ErrNoConfiguration
	}
	if err != nil {
		return lifecycle.Configuration{}, graveler.Setting{}, err
	}
	c, err := lifecycle.ParseJSON(stored.Document)
	if err != nil {
		err = fmt.Errorf("%w: setting %s: %w", graveler.ErrCorrupt, settingName, err)
	}
	return c, stored, err
}

// SetConfiguration replaces the lifecycle configuration of a repository. One that is not valid is a *lifecycle.ConfigError, and nothing is stored.
func SetConfiguration(ctx context.Context, s Settings, repo graveler.RepositoryID, c lifecycle.Configuration) error {
	document, err := c.JSON()
	if err != nil {
		return err
	}
	return changeSetting(ctx, s, repo, func(checksum string) error {
		_, err := s.PutSetting(ctx, repo, settingName, document, checksum)
		return err
	})
}

// RemoveConfiguration removes the lifecycle configuration of a repository, if it has one.
func RemoveConfiguration(ctx context.Context, s Settings, repo graveler.RepositoryID) error {
	return changeSetting(ctx, s, repo, func(checksum string) error {
		if checksum == "" {
			return nil
		}
		return s.RemoveSetting(ctx, repo, settingName, checksum)
	})
}

// changeSetting calls change with the checksum of the setting as it is, "" for none, until nobody else has changed it meanwhile.
func changeSetting(ctx context.Context, s Settings, repo graveler.RepositoryID, change func(checksum string) error) error {
	for {
		stored, err := s.GetSetting(ctx, repo, settingName)
		if errors.Is(err, graveler.ErrSettingNotFound) {
			err = nil
		}
		if err == nil {
			err = change(stored.Checksum)
		}
		if errors.Is(err, graveler.ErrPreconditionFailed) {
			continue
		}
		if err != nil {
			return fmt.Errorf("lifecycle configuration of %s: %w", repo, err)
		}
		return nil
	}
}
