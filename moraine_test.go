// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	kvmem "github.com/moraine-store/moraine/pkg/kv/mem"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		if err := victim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(checkpointerDir); dir != "" {
		if err := checkpointer(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(importerDir); dir != "" {
		if err := importer(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if role := os.Getenv(workerRole); role != "" {
		if err := worker(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// onDisk names a store below dir.
func onDisk(dir string) moraine.Options {
	return moraine.Options{Store: "bolt:" + filepath.Join(dir, "meta.db"), Blocks: "file:" + filepath.Join(dir, "blocks")}
}

func open(t *testing.T, o moraine.Options) *moraine.Store {
	t.Helper()
	s, err := moraine.Open(context.Background(), o)
	require.NoError(t, err)
	return s
}

func entryValue(text string) graveler.Value {
	return graveler.Value{Identity: []byte("identity of " + text), Data: []byte(text)}
}

// Sixteen goroutines stage while another commits fifty times. After reopening every acknowledged write is there, and so is every commit.
func TestAcknowledgedWritesAreThereAfterReopening(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, onDisk(dir))
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)

	staging, stop := context.WithCancel(ctx)
	var group errgroup.Group
	var mu sync.Mutex
	acknowledged := map[string]string{}
	for w := range 16 {
		group.Go(func() error {
			for i := 0; staging.Err() == nil; i++ {
				k, text := fmt.Sprintf("w%02d/%d", w, i%50), fmt.Sprint(i)
				if err := s.Set(ctx, "lake", "main", graveler.Key(k), entryValue(text)); err != nil {
					return err
				}
				mu.Lock()
				acknowledged[k] = text
				mu.Unlock()
			}
			return nil
		})
	}
	var commits []graveler.CommitID
	for len(commits) < 50 {
		res, err := s.Commit(ctx, "lake", "main", graveler.CommitParams{Message: fmt.Sprint(len(commits))})
		if errors.Is(err, graveler.ErrNoChanges) {
			continue
		}
		require.NoError(t, err)
		commits = append(commits, res.Commit.ID)
	}
	stop()
	require.NoError(t, group.Wait())
	require.NoError(t, s.Close())

	s = open(t, onDisk(dir))
	defer func() { require.NoError(t, s.Close()) }()
	requireEntries(t, s, acknowledged)
	n := len(commits)
	for c, err := range s.Log(ctx, "lake", "main", graveler.LogOptions{}) {
		require.NoError(t, err)
		if n--; n >= 0 {
			require.Equal(t, commits[n], c.ID)
		}
	}
	require.Equal(t, -1, n, "fifty commits and the first")
}

func requireEntries(t *testing.T, s *moraine.Store, expected map[string]string) {
	t.Helper()
	found := map[string]string{}
	for e, err := range s.List(context.Background(), "lake", "main", graveler.ListOptions{}) {
		require.NoError(t, err)
		found[string(e.Key)] = string(e.Value.Data)
	}
	require.Equal(t, expected, found)
}

func TestASecondOpenOfTheSameFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, onDisk(dir))
	_, err := moraine.Open(context.Background(), onDisk(dir))
	require.ErrorIs(t, err, kv.ErrLocked)
	require.NoError(t, s.Close())
	require.NoError(t, open(t, onDisk(dir)).Close())
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	for name, o := range map[string]moraine.Options{
		"no store":   {Blocks: "mem:"},
		"no blocks":  {Store: "mem:"},
		"two stores": {Store: "mem:", KV: kvmem.New(), Blocks: "mem:"},
	} {
		_, err := moraine.Open(ctx, o)
		require.Error(t, err, name)
	}
	_, err := moraine.Open(ctx, moraine.Options{Store: "nosql:x", Blocks: "mem:"})
	require.ErrorIs(t, err, kv.ErrUnknownEngine)
	_, err = moraine.Open(ctx, moraine.Options{Store: "mem:", Blocks: "tape:x"})
	require.ErrorIs(t, err, block.ErrUnknownEngine)
}

func TestReadOnlyStoresRefuseWritesAndShareTheFile(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	o := onDisk(dir)
	s := open(t, o)
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.NoError(t, s.Set(ctx, "lake", "main", graveler.Key("a"), entryValue("1")))
	_, err = s.Commit(ctx, "lake", "main", graveler.CommitParams{})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	o.ReadOnly = true
	first, second := open(t, o), open(t, o)
	for _, s := range []*moraine.Store{first, second} {
		requireEntries(t, s, map[string]string{"a": "1"})
		require.ErrorIs(t, s.Set(ctx, "lake", "main", graveler.Key("b"), entryValue("2")), kv.ErrReadOnly)
		require.NoError(t, s.Close())
	}
	o = onDisk(filepath.Join(dir, "nowhere"))
	o.ReadOnly = true
	_, err = moraine.Open(ctx, o)
	require.Error(t, err)
	require.NoDirExists(t, filepath.Join(dir, "nowhere"))
}

// A repository's own namespace is a folder below the URL it was given, and goes with the repository.
func TestNamespacesOfTheirOwn(t *testing.T) {
	ctx := context.Background()
	elsewhere := t.TempDir()
	s := open(t, onDisk(t.TempDir()))
	defer func() { require.NoError(t, s.Close()) }()
	r, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{Namespace: "file:" + elsewhere})
	require.NoError(t, err)
	require.Equal(t, "file:"+elsewhere+"/"+r.Partition(), r.Namespace)
	require.NoError(t, s.Set(ctx, "lake", "main", graveler.Key("a"), entryValue("1")))
	_, err = s.Commit(ctx, "lake", "main", graveler.CommitParams{})
	require.NoError(t, err)
	files := func() (n int) {
		require.NoError(t, filepath.WalkDir(elsewhere, func(_ string, d os.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				n++
			}
			return err
		}))
		return n
	}
	require.Equal(t, 2, files(), "a range and a metarange")
	_, err = s.CreateRepository(ctx, "lake2", graveler.CreateRepositoryParams{Namespace: "file:" + elsewhere + "/"})
	require.NoError(t, err)
	require.NoError(t, s.DeleteRepository(ctx, "lake2"))
	require.Equal(t, 2, files(), "those of the other")
	require.NoError(t, s.DeleteRepository(ctx, "lake"))
	require.Zero(t, files())

	_, err = s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{Namespace: "tape:x"})
	require.ErrorIs(t, err, block.ErrUnknownEngine)
	_, err = s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{Namespace: "../outside"})
	require.ErrorIs(t, err, block.ErrInvalidName)
	_, err = s.GetRepository(ctx, "lake")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
}
