// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

func history(tables bool) lakegen.Params {
	return lakegen.Params{Seed: 11, Repositories: 1, Commits: 20, Tables: tables}
}

// flip changes a byte in the middle of a file.
func flip(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(file, data, 0o644))
}

func TestARangeFileThatIsMissingOrDamagedStopsARun(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, file string)
		is    error
	}{
		"missing":   {func(t *testing.T, file string) { require.NoError(t, os.Remove(file)) }, lakefs.ErrMissing},
		"truncated": {func(t *testing.T, file string) { require.NoError(t, os.Truncate(file, 100)) }, lakefs.ErrDamaged},
		"altered":   {flip, lakefs.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, history(false))
			r := l.repository("alpha-repo")
			lost := l.aRange(t, r)
			sound, err := os.ReadFile(l.file(r, lost))
			require.NoError(t, err)
			c.spoil(t, l.file(r, lost))

			_, err = l.migration(t).Run(t.Context())
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, "repository alpha-repo: tree of commit ")
			require.ErrorContains(t, err, lost)

			// It goes on without, and says so.
			m := l.migration(t)
			m.AllowMissing = true
			report, err := m.Run(t.Context())
			require.NoError(t, err)
			require.Len(t, report.Lost, 1)
			require.Equal(t, lost, report.Lost[0].File)
			status, err := l.migration(t).Status(t.Context())
			require.NoError(t, err)
			require.Equal(t, report.Lost, status.Repositories[0].Lost)
			v := l.verify(t)
			require.NoError(t, v.Err(), "all but what is lost is there")
			require.Equal(t, report.Lost, v.Repositories[0].Lost)
			checkSound(t, l.sides)

			// What is lost is lost to every commit that had it, and nothing else.
			g := l.migration(t).Graveler
			for _, commit := range r.Commits {
				var want, got []string
				for key := range l.withoutRange(t, r, commit, lost, sound) {
					want = append(want, key)
				}
				for _, e := range collect(t, g.List(t.Context(), "alpha-repo", commit.ID, graveler.ListOptions{})) {
					got = append(got, string(e.Key))
				}
				require.ElementsMatch(t, want, got)
			}
		})
	}
}

// withoutRange is the keys of a commit without those that it has from a range.
func (l *lake) withoutRange(t *testing.T, r *lakegen.Repository, c *lakegen.Commit, lost string, sound []byte) map[string]bool {
	t.Helper()
	dir := t.TempDir()
	storage, err := local.OpenDir(dir, block.OpenOptions{})
	require.NoError(t, err)
	files := lakefs.NewFiles(storage, "copy")
	defer func() { require.NoError(t, files.Close()) }()
	put := func(id string, data []byte) {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "_lakefs"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "_lakefs", id), data, 0o644))
	}
	keys := map[string]bool{}
	for _, record := range c.Tree {
		keys[string(record.Key)] = true
	}
	if c.Metarange == "" {
		return keys
	}
	metarange, err := os.ReadFile(l.file(r, c.Metarange))
	require.NoError(t, err)
	put(c.Metarange, metarange)
	put(lost, sound)
	ranges, err := files.Metarange(t.Context(), c.Metarange)
	require.NoError(t, err)
	for _, part := range ranges {
		if part.ID != lost {
			continue
		}
		records, err := files.Range(t.Context(), part)
		require.NoError(t, err)
		for _, record := range records {
			delete(keys, string(record.Key))
		}
	}
	return keys
}

func TestWhatWasLeftOutIsCarriedOverWhenItIsThereAgain(t *testing.T) {
	l := newLake(t, history(true))
	r := l.repository("alpha-repo")
	lost := l.file(r, l.aRange(t, r))
	data, err := os.ReadFile(lost)
	require.NoError(t, err)
	require.NoError(t, os.Remove(lost))

	// A run that is cut off after it has left it out.
	ctx, cancel := context.WithCancel(t.Context())
	m := l.migration(t)
	m.AllowMissing = true
	m.Workers = 1
	m.Progress = func(p migrate.Progress) {
		if p.Rows >= 15 {
			cancel()
		}
	}
	_, err = m.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
	status, err := l.migration(t).Status(t.Context())
	require.NoError(t, err)
	require.Len(t, status.Repositories[0].Lost, 1)

	require.NoError(t, os.WriteFile(lost, data, 0o644))
	report := l.run(t)
	require.Empty(t, report.Lost)
	require.Equal(t, 1, report.Restarted)
	require.NoError(t, l.verify(t).Err())
	checkLake(t, l)
}

func TestAMetarangeThatIsMissingIsAnEmptyTree(t *testing.T) {
	l := newLake(t, history(false))
	r := l.repository("alpha-repo")
	commit := r.Commit(r.Branches[0].Commit)
	for _, b := range r.Branches {
		if c := r.Commit(b.Commit); len(c.Tree) > 0 {
			commit = c
		}
	}
	require.NoError(t, os.Remove(l.file(r, commit.Metarange)))
	_, err := l.migration(t).Run(t.Context())
	require.ErrorIs(t, err, lakefs.ErrMissing)
	require.ErrorContains(t, err, commit.ID)

	m := l.migration(t)
	m.AllowMissing = true
	report, err := m.Run(t.Context())
	require.NoError(t, err)
	require.Equal(t, commit.Metarange, report.Lost[0].File)
	require.NoError(t, l.verify(t).Err())
	require.Empty(t, collect(t, l.migration(t).Graveler.List(t.Context(), "alpha-repo", commit.ID, graveler.ListOptions{})))
	checkSound(t, l.sides)
}

func TestADeploymentMayHaveLostEveryTreeThatItShows(t *testing.T) {
	l := newLake(t, history(true))
	r := l.repository("alpha-repo")
	var shown []string
	for _, b := range r.Branches {
		shown = append(shown, r.Commit(b.Commit).Metarange)
	}
	for _, tag := range r.Tags {
		shown = append(shown, r.Commit(tag.Commit).Metarange)
	}
	slices.Sort(shown)
	for _, id := range slices.Compact(shown) {
		if id != "" {
			require.NoError(t, os.Remove(l.file(r, id)))
		}
	}
	m := l.migration(t)
	m.AllowMissing = true
	report, err := m.Run(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, report.Lost)
	require.NoError(t, l.verify(t).Err())
}

func TestWhereNothingIsFoundEverythingIsNotLost(t *testing.T) {
	l := newLake(t, history(false))
	m := l.migration(t)
	dir := t.TempDir()
	m.SourceBlocks, m.AllowMissing = "file:"+dir, true
	_, err := m.Run(t.Context())
	require.ErrorIs(t, err, lakefs.ErrMissing)
	require.ErrorIs(t, err, migrate.ErrNoFiles)
	require.ErrorIs(t, err, migrate.ErrInvalidRow)
	require.ErrorContains(t, err, strings.TrimSuffix(strings.Replace(l.file(l.repository("alpha-repo"), ""), l.dir, "file:"+dir, 1), "/"))
	m.SourceBlocks += "/nowhere"
	_, err = m.Run(t.Context())
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestFilesThatAreCollectedMeanwhileStopARunThatGoesOnLater(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 11, Repositories: 1, Commits: 40})
	r := l.repository("alpha-repo")
	dir := l.file(r, "")
	m := l.migration(t)
	m.Workers = 1
	m.Progress = func(p migrate.Progress) {
		if p.Rows == 3 {
			require.NoError(t, os.Rename(dir, dir+"-collected"))
		}
	}
	_, err := m.Run(t.Context())
	require.ErrorIs(t, err, lakefs.ErrMissing)
	require.Regexp(t, "range .*/_lakefs/[0-9a-f]{64}: ", err.Error())
	_, err = l.migration(t).Graveler.GetRepository(t.Context(), "alpha-repo")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound, "nothing partial is visible")

	require.NoError(t, os.Rename(dir+"-collected", dir))
	report := l.run(t)
	require.Zero(t, report.Restarted)
	require.NoError(t, l.verify(t).Err())
	checkLake(t, l)
}

// A byte of anything, on either side.
func TestVerifyFindsAByteOfLakeFS(t *testing.T) {
	l := newLake(t, history(false))
	l.onDisk(t)
	l.run(t)
	require.NoError(t, l.verify(t).Err())
	r := l.repository("alpha-repo")

	branch := r.Branches[slices.IndexFunc(r.Branches, func(b *lakegen.Branch) bool {
		return slices.ContainsFunc(b.Staged[b.Token], func(s lakefs.Staged) bool { return !s.Tombstone })
	})]
	staged := branch.Staged[branch.Token]
	row := staged[slices.IndexFunc(staged, func(s lakefs.Staged) bool { return !s.Tombstone })]
	const change = "UPDATE kv SET value = set_byte(value, $3, get_byte(value, $3) # 1) WHERE partition_key = $1 AND key = $2"
	within := len(row.Key) + 10 // the identity, which is behind the key
	l.exec(t, change, []byte(branch.Token), row.Key, within)
	require.ErrorContains(t, l.verify(t).Err(), branch.ID+":"+quotedKey(row.Key)+": its identity differs")
	l.exec(t, change, []byte(branch.Token), row.Key, within)
	require.NoError(t, l.verify(t).Err())

	commit := r.Commits[3].Commit
	putCommit := func(c lakefs.Commit) {
		record, err := proto.Marshal(lakegen.CommitData(c))
		require.NoError(t, err)
		require.NoError(t, lakegen.PutKV(t.Context(), l.conn, r.Partition(), "commits/"+c.ID, record))
	}
	other := commit
	other.Message += "!"
	putCommit(other)
	require.ErrorContains(t, l.verify(t).Err(), "commits, "+commit.ID+": its fields differ")
	putCommit(commit)
	require.NoError(t, l.verify(t).Err())

	file := l.file(r, l.aRange(t, r))
	flip(t, file)
	require.ErrorContains(t, l.verify(t).Err(), filepath.Base(file))
	flip(t, file)
	require.NoError(t, l.verify(t).Err())

	var ranges []string
	require.NoError(t, filepath.WalkDir(l.blocks, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && len(d.Name()) == 64 {
			ranges = append(ranges, path)
		}
		return err
	}))
	require.NotEmpty(t, ranges)
	for _, file := range ranges {
		flip(t, file)
		l.onDisk(t)
		require.ErrorContains(t, l.verify(t).Err(), filepath.Base(file))
		flip(t, file)
	}
	l.onDisk(t)
	require.NoError(t, l.verify(t).Err())
}

// quotedKey is a key as errors show it.
func quotedKey(key []byte) string { return strings.Trim(strconv.Quote(string(key)), `"`) }

func TestVerifyFindsWhatIsSetOtherwise(t *testing.T) {
	l := newLake(t, history(false))
	l.run(t)
	g, r := l.migration(t).Graveler, l.repository("alpha-repo")
	require.NoError(t, g.SetReadOnly(t.Context(), "alpha-repo", !r.ReadOnly))
	require.ErrorContains(t, l.verify(t).Err(), "it is read-only: "+strconv.FormatBool(r.ReadOnly))
	require.NoError(t, g.SetReadOnly(t.Context(), "alpha-repo", r.ReadOnly))
	require.NoError(t, l.verify(t).Err())

	require.NoError(t, g.SetReadOnly(t.Context(), "bare", false))
	require.NoError(t, g.UpdateRepositoryMetadata(t.Context(), "bare", func(map[string]string) (map[string]string, error) {
		return map[string]string{"team": "another"}, nil
	}))
	var found []string
	for _, r := range l.verify(t).Repositories {
		for _, d := range r.First {
			found = append(found, d.String())
		}
	}
	require.Contains(t, strings.Join(found, "\n"), "repository bare, settings, metadata: ")
}

func TestVerifyFindsATreeThatIsNotThatOfTheSource(t *testing.T) {
	l := newLake(t, history(true))
	l.run(t)
	r := l.repository("alpha-repo")
	head := headWithEntries(r)
	lists := map[string]bool{}
	for i, c := range r.Commits { // the commit has the metarange of another
		if c.Metarange != r.Commit(head).Metarange && len(c.Tree) > 0 && !lists[c.Metarange] {
			lists[c.Metarange] = true
			l.exec(t, "UPDATE graveler_commits SET meta_range_id = $1 WHERE id = $2", c.Metarange, head)
			require.ErrorContains(t, l.verify(t).Err(), "commits, "+head+": its fields differ", "commit %d", i)
		}
	}
	require.NotEmpty(t, lists)
}
