// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// lose removes a file of a repository, and returns what puts it back.
func (l *lake) lose(t *testing.T, r *lakegen.Repository, id string) (back func()) {
	t.Helper()
	file := l.file(r, id)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.Remove(file))
	return func() { require.NoError(t, os.WriteFile(file, data, 0o644)) }
}

// runWithout runs where files may be missing.
func (l *lake) runWithout(t *testing.T) migrate.Report {
	t.Helper()
	m := l.migration(t)
	m.AllowMissing = true
	report, err := m.Run(t.Context())
	require.NoError(t, err)
	return report
}

// differences are those of all repositories, one a line.
func differences(v migrate.Verified) string {
	var lines []string
	for _, r := range v.Repositories {
		for _, d := range r.First {
			lines = append(lines, d.String())
		}
	}
	return strings.Join(lines, "\n")
}

func TestWhatARunHasLeftOutIsLookedForAgainByTheNext(t *testing.T) {
	l, h := emptyLake(t), newHandmade(t)
	missing := h.rangeOf("a", "b")
	h.commit("")
	h.commit(h.metarange(missing))
	h.branch("main", h.commit(h.metarange(missing, h.rangeOf("p", "q"))))
	l.fillLake(t, h.deployment(), false)
	back := l.lose(t, h.Repository, missing.ID)
	ctx, cancel := context.WithCancel(t.Context())
	m := l.migration(t)
	m.AllowMissing = true
	m.Progress = func(p migrate.Progress) {
		if p.Rows >= 1 {
			cancel()
		}
	}
	_, err := m.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)

	back()
	report := l.runWithout(t)
	require.Empty(t, report.Lost, "it is there")
	require.Equal(t, 1, report.Restarted)
	require.Equal(t, []string{"a", "b", "p", "q"}, keysAt(t, l, "handmade", "main"))
	require.NoError(t, l.verify(t).Err())
}

func TestVerifySaysThatALostFileCanBeReadNow(t *testing.T) {
	l, h := emptyLake(t), newHandmade(t)
	lostRange, lostTree := h.rangeOf("a", "b"), h.metarange(h.rangeOf("x"))
	h.commit(lostTree)
	h.branch("main", h.commit(h.metarange(lostRange, h.rangeOf("p", "q"))))
	l.fillLake(t, h.deployment(), true)
	rangeBack, treeBack := l.lose(t, h.Repository, lostRange.ID), l.lose(t, h.Repository, lostTree)
	report := l.runWithout(t)
	require.Len(t, report.Lost, 2)
	require.NoError(t, l.verify(t).Err())
	again := l.run(t)
	require.Equal(t, 1, again.AlreadyThere)
	require.Equal(t, report.Lost, again.Lost, "a run says so, too, of what is there")

	rangeBack()
	require.ErrorContains(t, l.verify(t).Err(), "file "+lostRange.ID+" can be read now")
	treeBack()
	v := l.verify(t)
	require.EqualValues(t, 2, v.Differences)
	require.Contains(t, differences(v), "file "+lostTree+" can be read now")
	for _, k := range v.Repositories[0].Kinds {
		require.Equal(t, k.Kind != migrate.CommittedEntries, k.SourceDigest == k.TargetDigest, k.Kind)
	}

	require.NoError(t, l.migration(t).Graveler.DeleteRepository(t.Context(), "handmade"))
	require.Empty(t, l.run(t).Lost)
	require.NoError(t, l.verify(t).Err())
	require.Equal(t, []string{"a", "b", "p", "q"}, keysAt(t, l, "handmade", "main"))
}

func TestATreeHasNothingOfAParentWhoseMetarangeIsGoneLater(t *testing.T) {
	for layout, tables := range map[string]bool{"tables": true, "key/value": false} {
		t.Run(layout, func(t *testing.T) {
			l, h := emptyLake(t), newHandmade(t)
			kept, gone, missing := h.rangeOf("a", "b"), h.rangeOf("m", "n"), h.rangeOf("p", "q")
			h.commit("")
			parent := h.commit(h.metarange(kept, gone))
			child := h.commit(h.metarange(kept, missing))
			h.branch("main", child)
			l.fillLake(t, h.deployment(), tables)
			l.lose(t, h.Repository, missing.ID)
			_, err := l.migration(t).Run(t.Context())
			require.ErrorIs(t, err, lakefs.ErrMissing)

			back := l.lose(t, h.Repository, parent.Metarange)
			report := l.runWithout(t)
			require.Len(t, report.Lost, 1, "the tree that was made stays")
			require.Equal(t, []string{"a", "b"}, keysAt(t, l, "handmade", child.ID))
			require.Equal(t, []string{"a", "b", "m", "n"}, keysAt(t, l, "handmade", parent.ID))
			v := l.verify(t)
			require.EqualValues(t, 1, v.Differences, differences(v))
			require.Contains(t, differences(v), parent.ID+": the source has its tree no more: ")
			back()
			require.NoError(t, l.verify(t).Err())
		})
	}
}

func TestAFileThatATreeIsMadeOfIsNotLostToOthers(t *testing.T) {
	l, h := emptyLake(t), newHandmade(t)
	shared, missing := h.rangeOf("a", "b"), h.rangeOf("p", "q")
	root := h.commit("")
	h.branch("side", h.commit(h.metarange(shared)))
	h.branch("main", h.commit(h.metarange(shared, missing), h.commit("", root.ID).ID))
	l.fillLake(t, h.deployment(), false)
	l.lose(t, h.Repository, missing.ID)
	_, err := l.migration(t).Run(t.Context())
	require.ErrorIs(t, err, lakefs.ErrMissing)

	back := l.lose(t, h.Repository, shared.ID)
	report := l.runWithout(t)
	require.Len(t, report.Lost, 1)
	require.Equal(t, missing.ID, report.Lost[0].File)
	require.Equal(t, []string{"a", "b"}, keysAt(t, l, "handmade", "main"))
	require.Equal(t, []string{"a", "b"}, keysAt(t, l, "handmade", "side"))
	v := l.verify(t)
	require.Contains(t, differences(v), ":a: the source has it, and what follows up to b, no more: range ")
	require.NotContains(t, differences(v), "only in the target")
	back()
	require.NoError(t, l.verify(t).Err())
}

func TestARangeOfOtherBoundsIsNamedAlsoWhereAnotherTreeHasIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x lakefs.Range) lakefs.Range
		with   bool // another range before
	}{
		"count":                 {func(x lakefs.Range) lakefs.Range { x.Count = 7; return x }, false},
		"first":                 {func(x lakefs.Range) lakefs.Range { x.First = []byte("d"); return x }, false},
		"last":                  {func(x lakefs.Range) lakefs.Range { x.Last = []byte("d"); return x }, false},
		"first, behind another": {func(x lakefs.Range) lakefs.Range { x.First = []byte("d"); return x }, true},
		"last, behind another":  {func(x lakefs.Range) lakefs.Range { x.First, x.Last = []byte("d"), []byte("zz"); return x }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l, h := emptyLake(t), newHandmade(t)
			x := h.rangeOf("b", "c", "d", "e")
			h.commit("")
			h.commit(h.metarange(x))
			ranges := []lakefs.Range{c.change(x)}
			if c.with {
				ranges = append([]lakefs.Range{h.rangeOf("a", "bb")}, ranges...)
			}
			h.branch("main", h.commit(h.metarange(ranges...)))
			l.fillLake(t, h.deployment(), false)
			for _, allow := range []bool{false, true} {
				m := l.migration(t)
				m.AllowMissing = allow
				_, err := m.Run(t.Context())
				require.ErrorIs(t, err, lakefs.ErrIntact)
				require.ErrorContains(t, err, x.ID)
			}
		})
	}
}

func TestTreesOfAnInterruptedRunAreNotThoseOfARepositoryThatIsElsewhereNow(t *testing.T) {
	l, h := emptyLake(t), newHandmade(t)
	missing := h.rangeOf("p", "q")
	h.commit("")
	parent := h.commit(h.metarange(h.rangeOf("a", "b")))
	h.branch("main", h.commit(h.metarange(missing)))
	l.fillLake(t, h.deployment(), true)
	l.lose(t, h.Repository, missing.ID)
	_, err := l.migration(t).Run(t.Context())
	require.ErrorIs(t, err, lakefs.ErrMissing)

	h.Namespace = "s3://bucket/elsewhere"
	require.NoError(t, h.deployment().WriteFiles(t.Context(), l.dir))
	l.exec(t, "UPDATE graveler_repositories SET storage_namespace = $1", h.Namespace)
	l.run(t)
	v, err := l.migration(t).Graveler.Get(t.Context(), "handmade", parent.ID, graveler.Key("a"))
	require.NoError(t, err)
	require.Contains(t, string(v.Data), "s3://bucket/elsewhere/")
	require.NoError(t, l.verify(t).Err())
}

// A file that is whole, but says more than this program knows, is not missing.
func TestAMetarangeThatSaysMoreThanIsKnownIsNotLost(t *testing.T) {
	l, h := emptyLake(t), newHandmade(t)
	x := h.rangeOf("a", "b")
	data, err := proto.Marshal(&lakefspb.RangeData{First: x.First, Last: x.Last, Count: x.Count})
	require.NoError(t, err)
	data = append(data, 0x98, 0x06, 0x01) // field 99
	id, file, err := lakegen.MetarangeFile([]lakefs.Record{{Key: x.Last, Identity: []byte(x.ID), Data: data}})
	require.NoError(t, err)
	h.Files[id] = file
	h.commit("")
	h.branch("main", h.commit(id))
	l.fillLake(t, h.deployment(), false)
	m := l.migration(t)
	m.AllowMissing = true
	_, err = m.Run(t.Context())
	require.ErrorIs(t, err, lakefs.ErrIntact)
	require.NotErrorIs(t, err, graveler.ErrCorrupt)
}

func TestARepositoryOfWhichNoFileIsLeftMayBeNamedAsLost(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 21, Repositories: 2, Commits: 5})
	r := l.repository("alpha-repo")
	require.NoError(t, os.RemoveAll(l.file(r, "")))
	m := l.migration(t)
	m.AllowMissing = true
	_, err := m.Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrNoFiles)
	require.ErrorContains(t, err, "alpha-repo")
	m.AllLost = []string{"alpha-repo"}
	report, err := m.Run(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, report.Lost)
	require.NoError(t, l.verify(t).Err())
	checkSound(t, l.sides)
}

func TestAPlanSaysHowMuchIsLost(t *testing.T) {
	l, h := emptyLake(t), newHandmade(t)
	missing, empty := h.rangeOf("a", "b", "c"), h.rangeOf("m", "n")
	tree := h.metarange(missing, empty)
	h.commit(tree)
	h.branch("dev", h.commit(tree))
	h.branch("main", h.commit(h.metarange(empty)))
	gone := h.commit(h.metarange(h.rangeOf("z")))
	h.Tags = []lakefs.Tag{{ID: "v1", Commit: gone.ID}}
	l.fillLake(t, h.deployment(), false)
	l.lose(t, h.Repository, missing.ID)
	l.lose(t, h.Repository, gone.Metarange)
	require.NoError(t, os.Truncate(l.file(h.Repository, empty.ID), 0))

	m := l.migration(t)
	m.AllowMissing = true
	plan, err := m.Plan(t.Context())
	require.NoError(t, err)
	require.NoError(t, plan.Err())
	lost := map[string]string{}
	for _, l := range plan.Lost {
		lost[l.File] = l.String()
	}
	require.Len(t, lost, 3)
	require.Contains(t, lost[missing.ID], "it is not in file:"+l.dir+"/bucket/handmade/_lakefs (3 entries from a to c, of 2 commits, shown by branch dev)")
	require.Contains(t, lost[empty.ID], "it is empty (0 bytes) (2 entries from m to n, of 3 commits, shown by branch dev, branch main)")
	require.Contains(t, lost[gone.Metarange], "(all entries of a tree, of 1 commit, shown by tag v1)")
	for id, text := range lost {
		require.Equal(t, 1, strings.Count(text, id), text)
	}

	m.AllowMissing = false
	plan, err = m.Plan(t.Context())
	require.NoError(t, err)
	require.Len(t, plan.Problems, 3)
	require.ErrorContains(t, plan.Problems[0], "entries")
}
