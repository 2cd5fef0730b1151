// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/moraine-store/moraine/internal/lakegen"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// What a plan names of a deployment of lakeFS, and a run refuses before it writes anything.
func TestBadInputOfLakeFSIsRefusedByName(t *testing.T) {
	alpha := func(d *lakegen.Deployment) *lakegen.Repository {
		for _, r := range d.Repositories {
			if r.ID == "alpha-repo" {
				return r
			}
		}
		return nil
	}
	cases := []struct {
		name   string
		change func(d *lakegen.Deployment)
		is     error
		want   string
		kvOnly bool
	}{
		{"head that is missing", func(d *lakegen.Deployment) { alpha(d).Branches[0].Commit = someCommit }, migrate.ErrInvalidRow, "its commit " + someCommit + " does not exist", false},
		{"default branch that is missing", func(d *lakegen.Deployment) { alpha(d).DefaultBranch = "gone" }, migrate.ErrInvalidRow, "alpha-repo: its default branch gone does not exist", false},
		{"two repositories with one namespace", func(d *lakegen.Deployment) {
			for _, r := range d.Repositories {
				if r.ID == "recreated" {
					r.Namespace, r.Files = alpha(d).Namespace+"/", map[string][]byte{}
				}
			}
		}, migrate.ErrSharedNamespace, "is that of alpha-repo, too", false},
		{"namespace that leads elsewhere", func(d *lakegen.Deployment) { alpha(d).Namespace, alpha(d).Files = "local://../secret", nil }, lakefs.ErrNamespace, "../secret", false},
		{"staged key over the limit", func(d *lakegen.Deployment) {
			b := alpha(d).Branches[0]
			b.Staged[b.Token] = append(b.Staged[b.Token], lakefs.Staged{Record: lakefs.Record{Key: []byte(strings.Repeat("\xff", 1025))}, Tombstone: true})
		}, graveler.ErrTooLarge, "key of 1025 bytes", false},
		{"two branches with one token", func(d *lakegen.Deployment) { alpha(d).Branches[1].Token = alpha(d).Branches[0].Token }, migrate.ErrInvalidRow, "it has the staging token", false},
		{"branches with one sealed token", func(d *lakegen.Deployment) {
			alpha(d).Branches[0].Sealed, alpha(d).Branches[1].Sealed = []string{"a", "same"}, []string{"same"}
		}, migrate.ErrInvalidRow, "it has the staging token same", true},
		{"branch without token", func(d *lakegen.Deployment) { alpha(d).Branches[0].Token = "" }, migrate.ErrInvalidRow, "it has no staging token", false},
		{"protection that cannot be said here", func(d *lakegen.Deployment) {
			alpha(d).Protection = []lakefs.ProtectionRule{{Pattern: "[ab]c", Commit: true}}
		}, migrate.ErrInvalidRow, `kv (repositories), repository alpha-repo, settings/protected_branches: invalid value: branches are protected by the pattern "[ab]c"`, true},
		{"protection of alternatives with other patterns", func(d *lakegen.Deployment) {
			alpha(d).Protection = []lakefs.ProtectionRule{{Pattern: "main", Commit: true}, {Pattern: "{a*,b}", StagingWrite: true}}
		}, migrate.ErrInvalidRow, `the pattern "{a*,b}"`, true},
		{"staged value over the limit", func(d *lakegen.Deployment) { stageLarge(t, alpha(d).Branches[0], alpha(d).Branches[0].Token) }, graveler.ErrTooLarge, "key large", false},
		{"staged value over the limit under a sealed token", func(d *lakegen.Deployment) {
			alpha(d).Branches[0].Sealed = append(alpha(d).Branches[0].Sealed, "sealed-last")
			stageLarge(t, alpha(d).Branches[0], "sealed-last")
		}, graveler.ErrTooLarge, "key large", true},
		{"metarange that is missing", func(d *lakegen.Deployment) {
			r := alpha(d)
			delete(r.Files, r.Commit(headWithEntries(r)).Metarange)
		}, lakefs.ErrMissing, "alpha-repo, ", false},
	}
	l := emptyLake(t)
	for _, c := range cases {
		for layout, tables := range map[string]bool{"tables": true, "key/value": false} {
			if tables && c.kvOnly {
				continue
			}
			t.Run(c.name+" in "+layout, func(t *testing.T) {
				d := lakegen.Random(history(tables))
				c.change(d)
				l.fillLake(t, d, tables)
				plan, err := l.migration(t).Plan(t.Context())
				require.NoError(t, err)
				all := errors.Join(plan.Problems...)
				require.ErrorIs(t, all, c.is)
				require.ErrorContains(t, all, c.want)
				_, err = l.migration(t).Run(t.Context())
				require.ErrorIs(t, err, c.is)
				checkUntouched(t, l.kv)
			})
		}
	}
}

// stageLarge stages an entry under a token of a branch that has more metadata than can be kept.
func stageLarge(t *testing.T, b *lakegen.Branch, token string) {
	t.Helper()
	data, err := proto.Marshal(&lakefspb.EntryData{Address: "data/x", Metadata: map[string]string{"k": strings.Repeat("v", catalog.MaxMetadataBytes)}})
	require.NoError(t, err)
	b.Staged[token] = append(b.Staged[token], lakefs.Staged{Record: lakefs.Record{Key: []byte("large"), Identity: []byte("id"), Data: data}})
}

// What nobody sees, since a row that comes before has its key, need not be carried over.
func TestALargeValueThatIsHiddenIsNotRefused(t *testing.T) {
	d := lakegen.Random(history(false))
	l := emptyLake(t)
	b := d.Repositories[0].Branches[0]
	b.Sealed = append(b.Sealed, "sealed-last")
	stageLarge(t, b, "sealed-last")
	b.Staged[b.Token] = append(b.Staged[b.Token], lakefs.Staged{Record: lakefs.Record{Key: []byte("large")}, Tombstone: true})
	l.fillLake(t, d, false)
	plan, err := l.migration(t).Plan(t.Context())
	require.NoError(t, err)
	require.NoError(t, plan.Err())
	l.run(t)
	require.NoError(t, l.verify(t).Err())
}

func TestProtectionOfAlternativesBecomesSeveralRules(t *testing.T) {
	d := lakegen.Random(history(false))
	l := emptyLake(t)
	d.Repositories[0].Protection = []lakefs.ProtectionRule{
		{Pattern: "main", Commit: true}, {Pattern: "{main,dev}", StagingWrite: true}, {Pattern: "rel-{1,2}.{0,x}*", Commit: true},
	}
	l.fillLake(t, d, false)
	l.run(t)
	rules, err := l.migration(t).Graveler.BranchProtection(t.Context(), graveler.RepositoryID(d.Repositories[0].ID))
	require.NoError(t, err)
	require.Equal(t, []graveler.ProtectionRule{
		{Pattern: "main", Forbid: graveler.ActionCommit | graveler.ActionStage}, {Pattern: "rel-1.0*", Forbid: graveler.ActionCommit}, {Pattern: "rel-1.x*", Forbid: graveler.ActionCommit},
		{Pattern: "rel-2.0*", Forbid: graveler.ActionCommit}, {Pattern: "rel-2.x*", Forbid: graveler.ActionCommit}, {Pattern: "dev", Forbid: graveler.ActionStage},
	}, rules)
	require.NoError(t, l.verify(t).Err())
}

func TestPatternsThatCannotBeSaidHere(t *testing.T) {
	for _, pattern := range []string{"{a,b", "a,b}", "{a,{b,c}}", "{a,}", "{}", "{a?,b}", "{[ab],c}", `\{a,b}`, "a{b,c}[d]", strings.Repeat("{a,b,c,d,e,f,g,h,i,j}", 4)} {
		_, ok := migrate.OurPatterns(pattern)
		require.False(t, ok, pattern)
	}
	for pattern, want := range map[string][]string{"a*,b": {"a*,b"}, "{a}": {"a"}, "{a,b}{c,d}": {"ac", "ad", "bc", "bd"}} {
		got, ok := migrate.OurPatterns(pattern)
		require.True(t, ok, pattern)
		require.Equal(t, want, got)
	}
}

func TestAReportOnTheKVTableCountsWhatItHolds(t *testing.T) {
	l := newLake(t, history(false))
	d, err := migrate.DiagnoseSource(t.Context(), l.url)
	require.NoError(t, err)
	plan, err := l.migration(t).Plan(t.Context())
	require.NoError(t, err)
	var want migrate.KVDiagnosis
	for _, r := range plan.Repositories {
		want.Repositories++
		want.Branches, want.Tags, want.Commits, want.Staged = want.Branches+r.Branches, want.Tags+r.Tags, want.Commits+r.Commits, want.Staged+r.Staged
	}
	for _, left := range plan.Left {
		if strings.HasPrefix(left.Owner, "partition ") && !strings.Contains(left.Owner, ", keys ") {
			want.OrphanPartitions++
			want.OrphanRows += left.Rows
		}
	}
	for _, r := range l.deployment.Repositories {
		for _, b := range r.Branches {
			if r.InDeletion {
				break
			}
			want.SealedTokens += int64(len(b.Sealed))
		}
	}
	want.InDeletion, want.SchemaVersion, want.Rows, want.Bytes = 1, int(plan.SchemaVersion), d.KV.Rows, plan.Bytes
	require.Equal(t, &want, d.KV)
	require.NotZero(t, want.SealedTokens)

	commit := l.repository("alpha-repo").Branches[0].Commit
	l.exec(t, "DELETE FROM kv WHERE key = $1", []byte("commits/"+commit))
	d, err = migrate.DiagnoseSource(t.Context(), l.url)
	require.NoError(t, err)
	require.NotZero(t, d.KV.DanglingHeads)
	l.exec(t, "UPDATE kv SET value = '\\x01' WHERE key = 'repos/alpha-repo'")
	d, err = migrate.DiagnoseSource(t.Context(), l.url)
	require.NoError(t, err)
	require.Equal(t, lakefs.ErrInvalidRecord.Error(), d.KV.Problem)
	require.NotZero(t, d.KV.Rows)
}

// headWithEntries is a head that shows something.
func headWithEntries(r *lakegen.Repository) string {
	for _, b := range r.Branches {
		if len(r.Commit(b.Commit).Tree) > 0 {
			return b.Commit
		}
	}
	return ""
}

func TestAMetarangeWithARangeOfOtherBoundsIsNamed(t *testing.T) {
	for name, change := range map[string]func(*lakefs.Range){
		"first": func(r *lakefs.Range) { r.First = []byte("\x00") },
		"last":  func(r *lakefs.Range) { r.Last = []byte("\xff\xff\xff") },
		"count": func(r *lakefs.Range) { r.Count++ },
	} {
		t.Run(name, func(t *testing.T) {
			d := lakegen.Random(history(false))
			l := emptyLake(t)
			l.fillLake(t, d, false)
			r := l.repository("alpha-repo")
			changed := lakegen.NewTreeWriter(1000, func(id string, data []byte) error { r.Files[id] = data; return nil })
			for i := range 5 {
				require.NoError(t, changed.Add(r.Commit(headWithEntries(r)).Tree[i]))
			}
			_, ranges, err := changed.Finish()
			require.NoError(t, err)
			last := ranges[len(ranges)-1]
			change(&last)
			again := lakegen.NewTreeWriter(1000, func(id string, data []byte) error { r.Files[id] = data; return nil })
			require.NoError(t, again.Reuse(last))
			id, _, err := again.Finish()
			require.NoError(t, err)
			r.Commit(headWithEntries(r)).Metarange = id
			l.fillLake(t, d, false)
			_, err = l.migration(t).Run(t.Context())
			require.ErrorIs(t, err, lakefs.ErrDamaged)
			require.ErrorContains(t, err, last.ID)
			require.ErrorContains(t, err, "while a metarange that names it says")
		})
	}
}

func TestAKeyOverTheLimitInARangeIsNamed(t *testing.T) {
	d := lakegen.Random(history(true))
	l := emptyLake(t)
	l.fillLake(t, d, true)
	r := l.repository("alpha-repo")
	c := r.Commit(headWithEntries(r))
	w := lakegen.NewTreeWriter(1000, func(id string, data []byte) error { r.Files[id] = data; return nil })
	record := c.Tree[0]
	record.Key = []byte(strings.Repeat("k", 1025))
	require.NoError(t, w.Add(record))
	var err error
	c.Metarange, _, err = w.Finish()
	require.NoError(t, err)
	l.fillLake(t, d, true)
	m := l.migration(t)
	m.AllowMissing = true // which it is not
	_, err = m.Run(t.Context())
	require.ErrorIs(t, err, graveler.ErrTooLarge)
	require.ErrorContains(t, err, "tree of commit "+c.ID)
}

func TestASourceOfLakeFSThatIsNoneIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		tables bool
		sql    string
		is     error
	}{
		"newer kv":          {false, "UPDATE kv SET value = '5' WHERE key = 'kv/schema/version'", lakefs.ErrUnknownVersion},
		"kv without number": {false, "UPDATE kv SET value = 'x' WHERE key = 'kv/schema/version'", lakefs.ErrUnknownVersion},
		"kv not yet filled": {false, "DELETE FROM kv WHERE key = 'kv/schema/version'", migrate.ErrMissingTable},
		"broken record":     {false, "UPDATE kv SET value = '\\x01' WHERE key = 'repos/alpha-repo'", lakefs.ErrInvalidRecord},
		"unknown field":     {false, "UPDATE kv SET value = value || '\\xf80101' WHERE key LIKE 'commits/%'", lakefs.ErrInvalidRecord},
		"dirty tables":      {true, "UPDATE schema_migrations SET dirty = true", migrate.ErrDirtySchema},
		"newer tables":      {true, "UPDATE schema_migrations SET version = 39", migrate.ErrUnknownSchema},
		"neither":           {true, "DROP TABLE graveler_tags", migrate.ErrMissingTable},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLake(t, history(c.tables))
			l.exec(t, c.sql)
			plan, err := l.migration(t).Plan(t.Context())
			if errors.Is(c.is, lakefs.ErrInvalidRecord) {
				require.NoError(t, err)
				err = plan.Err()
			}
			require.ErrorIs(t, err, c.is)
			_, err = l.migration(t).Run(t.Context())
			require.ErrorIs(t, err, c.is)
			checkUntouched(t, l.kv)
		})
	}
}

func TestFilesOfLakeFSAreNotTakenOver(t *testing.T) {
	l := newLake(t, history(true))
	m := l.migration(t)
	m.InPlace = true
	_, err := m.Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrConverted)
	// Nor are its tables those of our own, whose trees are taken as they are.
	m = l.migration(t)
	m.Source = strings.TrimPrefix(l.url, "lakefs+")
	_, err = m.Run(t.Context())
	require.ErrorIs(t, err, migrate.ErrForeignTrees)
}

func TestWritersDoNotChangeWhatIsCopiedOfLakeFS(t *testing.T) {
	l := newLake(t, lakegen.Params{Seed: 3, Repositories: 3, Commits: 20})
	writer, err := pgx.Connect(t.Context(), strings.TrimPrefix(l.url, "lakefs+"))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, writer.Close(context.Background())) })
	m := l.migration(t)
	m.Progress = func(migrate.Progress) {
		_, err := writer.Exec(context.Background(), "DELETE FROM kv WHERE key LIKE 'tags/%' OR key LIKE 'commits/%' OR key LIKE 'data/%'")
		require.NoError(t, err)
	}
	_, err = m.Run(t.Context())
	require.NoError(t, err)
	checkLake(t, l)
	_, err = l.migration(t).Verify(t.Context())
	require.ErrorIs(t, err, migrate.ErrInvalidRow, "heads are dangling now")
}

func TestWhatStaysBehindOfLakeFSIsListed(t *testing.T) {
	l := newLake(t, history(false))
	plan, err := l.migration(t).Plan(t.Context())
	require.NoError(t, err)
	require.NoError(t, plan.Err())
	var left []string
	for _, b := range plan.Left {
		left = append(left, b.Table+" "+b.Owner+": "+b.What)
	}
	all := strings.Join(left, "\n")
	for _, want := range []string{
		"files repository alpha-repo: no tree has them", "kv repository leaving: it is being deleted", "kv partition auth: nothing", "kv partition gone-main:0: nothing", "keys pulls/: they have no place here",
	} {
		require.Contains(t, all, want)
	}
	require.NotContains(t, all, "settings/")
	require.NotContains(t, all, "kv-internal-metadata")
	for token := range l.deployment.Orphans {
		require.Contains(t, all, "partition "+token)
	}
	require.Contains(t, all, "partition "+l.deployment.Deleted[0].Partition())
}
