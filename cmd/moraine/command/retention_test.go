// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// leaveFiles makes files that no commit has, old enough to be removed, whose only entry is of an object at an address.
func (s *shell) leaveFiles(address string) {
	s.Helper()
	s.ok("put", "lake/main:k", "--address", address)
	s.ok("compact", "lake/main")
	s.ok("put", "lake/main:k", "--address", address+"-kept")
	s.ok("commit", "lake/main", "-m", address)
	old := time.Now().Add(-72 * time.Hour)
	require.NoError(s, filepath.WalkDir(filepath.Join(s.dir, "store", "blocks"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(path, old, old)
	}))
}

// removable says how many files a run would remove.
func (s *shell) removable() float64 {
	s.Helper()
	return s.objects("retention", "run", "lake", "--dry-run")[0]["files_removed"].(float64)
}

// A run whose list of what goes cannot be written removes nothing.
func TestNothingGoesUnlessItsReleaseIsWritten(t *testing.T) {
	s := newLake(t)
	s.leaveFiles("s3://b/gone")
	there := s.removable()
	require.NotZero(t, there)
	s.fails(exitUsage, "retention", "run", "lake", "--released", "")
	s.fails(exitFailed, "retention", "run", "lake", "--released", s.dir)
	s.fails(exitFailed, "retention", "run", "lake", "--released", filepath.Join(s.dir, "none", "gone.jsonl"))
	if _, err := os.Stat("/dev/full"); err == nil {
		s.fails(exitFailed, "retention", "run", "lake", "--released", "/dev/full")
	}
	require.Equal(t, there, s.removable())
}

// A line that an earlier run could not complete takes none of the next one's with it.
func TestReleasedEntriesFollowALineThatWasCutOff(t *testing.T) {
	s := newLake(t)
	list := filepath.Join(s.dir, "gone.jsonl")
	s.leaveFiles("s3://b/1")
	s.ok("retention", "run", "lake", "--released", list)
	whole, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(whole), "\n"))
	require.NoError(t, os.WriteFile(list, append(whole, `{"key":"k","ident`...), 0o600))
	s.leaveFiles("s3://b/2")
	s.ok("retention", "run", "lake", "--released", list)
	s.leaveFiles("s3://b/3")
	s.ok("retention", "run", "lake", "--released", list)

	text, err := os.ReadFile(list)
	require.NoError(t, err)
	var addresses []string
	for line := range strings.Lines(string(text)) {
		var o map[string]any
		if json.Unmarshal([]byte(line), &o) == nil {
			addresses = append(addresses, o["physical_address"].(string))
		}
	}
	require.Equal(t, []string{"s3://b/1", "s3://b/2", "s3://b/3"}, addresses)
	require.Zero(t, s.removable())
}

func TestALiveBranchIsNoDeletedOne(t *testing.T) {
	s := newLake(t)
	for _, name := range []string{"main", "nosuch"} {
		require.Contains(t, s.fails(exitNotFound, "reflog", "lake/"+name, "--deleted"), "'moraine branch list REPO --deleted' shows what there is")
	}
}
