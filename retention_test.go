// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"context"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
)

// lateFiles are files on disk that are stamped by a clock which a test sets: their own times count from then on.
type lateFiles struct {
	block.Storage
	now func() time.Time

	mu  sync.Mutex
	put map[string]time.Time
}

// stamp gives a file the present time, one that has a time already only if it is to be new.
func (s *lateFiles) stamp(name string, again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.put[name]; again || !there {
		s.put[name] = s.now()
	}
}

func (s *lateFiles) at(info block.Info) block.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	info.ModTime = s.put[info.Name]
	return info
}

func (s *lateFiles) Put(ctx context.Context, name string, data []byte) error {
	s.stamp(name, false)
	return s.Storage.Put(ctx, name, data)
}

func (s *lateFiles) Refresh(ctx context.Context, name string) error {
	s.stamp(name, true)
	return s.Storage.Refresh(ctx, name)
}

func (s *lateFiles) Stat(ctx context.Context, name string) (block.Info, error) {
	info, err := s.Storage.Stat(ctx, name)
	return s.at(info), err
}

func (s *lateFiles) List(ctx context.Context, prefix string) iter.Seq2[block.Info, error] {
	return func(yield func(block.Info, error) bool) {
		for info, err := range s.Storage.List(ctx, prefix) {
			info = s.at(info)
			if !yield(info, err) {
				return
			}
		}
	}
}

// On an engine and files on disk, over three weeks of daily commits and runs: what the rule keeps is there, the rest goes, and
// the store is in order every day.
func TestRetentionOnDisk(t *testing.T) {
	ctx := t.Context()
	files, err := local.OpenDir(t.TempDir(), block.OpenOptions{})
	require.NoError(t, err)
	var ahead time.Duration
	now := func() time.Time { return time.Now().Add(ahead) }
	s := open(t, moraine.Options{
		Store: "bolt:" + t.TempDir() + "/meta.db", BlockStorage: &lateFiles{Storage: files, now: now, put: map[string]time.Time{}}, Now: now,
	})
	_, err = s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.NoError(t, s.SetRetention(ctx, "lake", []graveler.RetentionRule{{Pattern: "*", Days: 7}}))
	var commits []graveler.CommitID
	released := map[string]bool{}
	for day := range 21 {
		today := time.Now().Add(ahead).Format(time.RFC3339)
		require.NoError(t, s.Set(ctx, "lake", "main", graveler.Key("today"), graveler.Value{Identity: []byte(today), Data: []byte(today)}))
		require.NoError(t, s.Set(ctx, "lake", "main", graveler.Key("at/"+today), graveler.Value{Identity: []byte("at " + today), Data: []byte("kept")}))
		c, err := s.Commit(ctx, "lake", "main", graveler.CommitParams{Message: today})
		require.NoError(t, err)
		commits = append(commits, c.Commit.ID)
		if day == 2 {
			_, err := s.CreateTag(ctx, "lake", "third", "main")
			require.NoError(t, err)
		}
		_, err = s.Retain(ctx, "lake", graveler.RetainParams{Release: func(e graveler.Entry) error {
			released[string(e.Value.Identity)] = true
			return nil
		}})
		require.NoError(t, err)
		for f, err := range s.Check(ctx, fsck.Options{}, nil) {
			require.NoError(t, err)
			require.NotEqual(t, fsck.Damage, f.Severity, "day %d: %+v", day, f)
		}
		ahead += 24*time.Hour + time.Minute
	}
	for day, id := range commits {
		_, err := s.Get(ctx, "lake", string(id), graveler.Key("today"))
		switch {
		case day == 2 || day >= 21-7-1:
			require.NoError(t, err, "day %d", day)
		case day < 21-7-3:
			require.ErrorIs(t, err, graveler.ErrExpired, "day %d", day)
		}
	}
	require.GreaterOrEqual(t, len(released), 21-7-5, "the values of 'today' that were in nothing but expired commits")
	require.LessOrEqual(t, len(released), 21-7)
	entries := 0
	for _, err := range s.List(ctx, "lake", "main", graveler.ListOptions{Prefix: graveler.Key("at/")}) {
		require.NoError(t, err)
		entries++
	}
	require.Equal(t, 21, entries)
}
