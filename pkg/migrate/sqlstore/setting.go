// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"iter"
	"regexp"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
)

// settingName is the rule that package ref has too.
var settingName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

func checkSettingName(name string) error {
	if !settingName.MatchString(name) {
		return fmt.Errorf("%w: setting %q must match %s", graveler.ErrInvalidName, name, settingName)
	}
	return nil
}

// document is a row of moraine_settings. Its stamp is drawn anew with each write, so that one that was removed and made again is another.
type document struct {
	stamp string
	data  []byte
}

// GetSetting implements [graveler.Settings].
func (s *Store) GetSetting(ctx context.Context, repo *graveler.Repository, name string) ([]byte, graveler.Stamp, error) {
	d, err := document{}, checkSettingName(name)
	if err == nil {
		d, err = row(ctx, s, query{"SELECT stamp, document FROM {settings} AS m WHERE partition = $1 AND name = $2", []any{repo.Partition(), name}}, graveler.ErrSettingNotFound,
			func(row pgx.CollectableRow) (d document, err error) {
				err = row.Scan(&d.stamp, &d.data)
				return d, err
			})
	}
	if err != nil {
		return nil, nil, wrap(err, "get setting %s of %s", name, repo.ID)
	}
	return d.data, graveler.Stamp(d.stamp), nil
}

// PutSetting implements [graveler.Settings]. Names are 1 to 64 lower-case letters, digits and dashes and begin with a letter,
// else graveler.ErrInvalidName; documents are at most [ref.MaxSettingBytes].
func (s *Store) PutSetting(ctx context.Context, repo *graveler.Repository, name string, data []byte, stamp graveler.Stamp) (graveler.Stamp, error) {
	next, err := s.putSetting(ctx, repo, name, data, stamp)
	return next, wrap(err, "put setting %s of %s", name, repo.ID)
}

func (s *Store) putSetting(ctx context.Context, repo *graveler.Repository, name string, data []byte, stamp graveler.Stamp) (graveler.Stamp, error) {
	if err := checkSettingName(name); err != nil {
		return nil, err
	}
	if len(data) > ref.MaxSettingBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", graveler.ErrTooLarge, len(data), ref.MaxSettingBytes)
	}
	if data == nil {
		data = []byte{} // nil would be null
	}
	next, err := rand.Text(), error(nil)
	if stamp == nil {
		err = s.conditionally(ctx, "INSERT INTO moraine_settings (partition, name, stamp, document) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING", repo.Partition(), name, next, data)
	} else {
		err = s.conditionally(ctx, "UPDATE moraine_settings SET stamp = $3, document = $4 WHERE partition = $1 AND name = $2 AND stamp = $5", repo.Partition(), name, next, data, stampText(stamp))
	}
	if err != nil {
		return nil, err
	}
	return graveler.Stamp(next), nil
}

// RemoveSetting implements [graveler.Settings].
func (s *Store) RemoveSetting(ctx context.Context, repo *graveler.Repository, name string, stamp graveler.Stamp) error {
	err := checkSettingName(name)
	switch {
	case err != nil:
	case stamp == nil:
		err = s.requireNone(func() error { _, _, err := s.GetSetting(ctx, repo, name); return err })
	default:
		err = s.conditionally(ctx, "DELETE FROM moraine_settings WHERE partition = $1 AND name = $2 AND stamp = $3", repo.Partition(), name, stampText(stamp))
	}
	return wrap(err, "remove setting %s of %s", name, repo.ID)
}

// ScanSettings implements [graveler.Settings].
func (s *Store) ScanSettings(ctx context.Context, repo *graveler.Repository) iter.Seq2[string, error] {
	return pages("settings of "+string(repo.ID), func(last *string) ([]string, error) {
		behind := ""
		if last != nil {
			behind = *last
		}
		return rows(ctx, s, query{"SELECT name FROM {settings} AS m WHERE partition = $1 AND name > $2 ORDER BY name LIMIT $3", []any{repo.Partition(), behind, pageRows}}, pgx.RowTo[string])
	})
}
