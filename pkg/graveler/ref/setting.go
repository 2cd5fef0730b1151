// SPDX-License-Identifier: Apache-2.0

package ref

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"regexp"

	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref/refpb"
)

// MaxSettingBytes is the largest document that PutSetting takes.
const MaxSettingBytes = 16 << 20

// A document is its head record, which holds it compressed or, where that is more than a value can
// be, names a set of chunks. Replacing it is one conditional write of the head, after the chunks of
// the new set are there.
//
// When may chunks go? Each write of a head raises its version by one, removals included: a removed
// document leaves a small head behind, so versions never start again. A set of version v can only
// become the head's while the head has version v-1. So once a head of version v is stored, every
// other set of version v or less is dead for good, and sets of a later version are somebody's work.

var settingName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// GetSetting implements [graveler.Settings]. A document in chunks costs one more read for each.
func (s *Store) GetSetting(ctx context.Context, repo *graveler.Repository, name string) ([]byte, graveler.Stamp, error) {
	data, stamp, err := s.getSetting(ctx, repo, name)
	return data, stamp, wrap(err, "get setting %s of %s", name, repo.ID)
}

func (s *Store) getSetting(ctx context.Context, repo *graveler.Repository, name string) ([]byte, graveler.Stamp, error) {
	if err := checkSettingName(name); err != nil {
		return nil, nil, err
	}
	var failed error
	var last graveler.Stamp
	for {
		head, err := s.settingHead(ctx, repo, name)
		if err != nil {
			return nil, nil, err
		}
		if head.message.Removed {
			return nil, nil, graveler.ErrSettingNotFound
		}
		if bytes.Equal(head.stamp, last) {
			return nil, nil, failed // nobody replaced it meanwhile: it is damaged
		}
		data, err := s.document(ctx, repo, head)
		if err == nil {
			return data, head.stamp, nil
		}
		if !errors.Is(err, graveler.ErrCorrupt) {
			return nil, nil, err
		}
		last, failed = head.stamp, err
	}
}

// PutSetting implements [graveler.Settings]. Names are 1 to 64 lower-case letters, digits and dashes
// and begin with a letter, else [graveler.ErrInvalidName]; documents are at most [MaxSettingBytes].
// It writes the head, a record for each chunk before that, and afterwards looks for chunks that no
// reader needs any more. The document may be stored although removing those failed.
func (s *Store) PutSetting(ctx context.Context, repo *graveler.Repository, name string, data []byte, stamp graveler.Stamp) (graveler.Stamp, error) {
	stamp, err := s.putSetting(ctx, repo, name, data, stamp)
	return stamp, wrap(err, "put setting %s of %s", name, repo.ID)
}

func (s *Store) putSetting(ctx context.Context, repo *graveler.Repository, name string, data []byte, stamp graveler.Stamp) (graveler.Stamp, error) {
	if len(data) > MaxSettingBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", graveler.ErrTooLarge, len(data), MaxSettingBytes)
	}
	head, err := s.settingToReplace(ctx, repo, name, stamp)
	if err != nil {
		return nil, err
	}
	fillSetting(head.message, data)
	return s.replaceSetting(ctx, repo, name, head)
}

// RemoveSetting implements [graveler.Settings]. It costs what PutSetting costs.
func (s *Store) RemoveSetting(ctx context.Context, repo *graveler.Repository, name string, stamp graveler.Stamp) error {
	return wrap(s.removeSetting(ctx, repo, name, stamp), "remove setting %s of %s", name, repo.ID)
}

func (s *Store) removeSetting(ctx context.Context, repo *graveler.Repository, name string, stamp graveler.Stamp) error {
	head, err := s.settingToReplace(ctx, repo, name, stamp)
	if err != nil || stamp == nil {
		return err
	}
	clearSetting(head.message)
	_, err = s.replaceSetting(ctx, repo, name, head)
	return err
}

// settingHead is a head record and its stored form.
type settingHead struct {
	message *refpb.SettingData
	stamp   graveler.Stamp
}

func (s *Store) settingHead(ctx context.Context, repo *graveler.Repository, name string) (settingHead, error) {
	return get(ctx, s, locateSetting(repo, name), graveler.ErrSettingNotFound, decodeSetting)
}

// settingToReplace is the head that a write with this stamp starts from. To a caller without a stamp
// a removed document is none.
func (s *Store) settingToReplace(ctx context.Context, repo *graveler.Repository, name string, stamp graveler.Stamp) (settingHead, error) {
	if err := checkSettingName(name); err != nil {
		return settingHead{}, err
	}
	if stamp != nil {
		m := &refpb.SettingData{}
		return settingHead{m, stamp}, overStamp(stamp, m)
	}
	head, err := s.settingHead(ctx, repo, name)
	switch {
	case errors.Is(err, graveler.ErrSettingNotFound):
		return settingHead{message: &refpb.SettingData{}}, nil
	case err != nil:
		return settingHead{}, err
	case !head.message.Removed:
		return settingHead{}, graveler.ErrChanged
	default:
		return head, nil
	}
}

// replaceSetting stores the new contents of head as the next version.
func (s *Store) replaceSetting(ctx context.Context, repo *graveler.Repository, name string, head settingHead) (graveler.Stamp, error) {
	m := head.message
	m.Name = name
	m.Version++
	m.Nonce = rand.Text()
	var chunks [][]byte
	if limit := s.kv.Limits().ValueBytes; proto.Size(m) > limit {
		chunks = splitSetting(m, limit)
	}
	if err := s.putChunks(ctx, repo, m, chunks); err != nil {
		return nil, err
	}
	stamp, err := s.put(ctx, locateSetting(repo, name), m, head.stamp)
	if errors.Is(err, graveler.ErrChanged) && len(chunks) > 0 {
		// After any other error the head may still come to be this one.
		return nil, errors.Join(err, s.removeChunks(ctx, repo, chunkSet(m), func(string) bool { return true }))
	}
	if err != nil {
		return nil, err
	}
	return stamp, s.removeDeadChunks(ctx, repo, m)
}

// ScanSettings implements [graveler.Settings].
func (s *Store) ScanSettings(ctx context.Context, repo *graveler.Repository) iter.Seq2[string, error] {
	heads := scan(ctx, s, "settings of "+string(repo.ID), repo.Partition(), settingsPrefix, "", decodeSetting)
	return func(yield func(string, error) bool) {
		for head, err := range heads {
			if err != nil {
				yield("", err)
				return
			}
			if !head.message.Removed && !yield(head.message.Name, nil) {
				return
			}
		}
	}
}

func locateSetting(repo *graveler.Repository, name string) location {
	return locate(repo.Partition(), settingsPrefix+name)
}

func decodeSetting(at location, value []byte) (settingHead, error) {
	m := &refpb.SettingData{}
	err := at.decode(value, m, func() string { return settingsPrefix + m.Name })
	return settingHead{m, value}, err
}

func checkSettingName(name string) error {
	if !settingName.MatchString(name) {
		return fmt.Errorf("%w: setting %q must match %s", graveler.ErrInvalidName, name, settingName)
	}
	return nil
}
