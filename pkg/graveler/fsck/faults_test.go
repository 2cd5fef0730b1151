// SPDX-License-Identifier: Apache-2.0

package fsck_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
)

// scene is a healthy store with one of everything.
type scene struct {
	*fixture
	*testing.T
	repo                 *graveler.Repository
	first, second, third graveler.Commit // of main, the third a merge of dev
	dev                  graveler.Commit
	lone                 graveler.Commit // which only the tag "only" knows
	gone                 string          // UID of a branch that was deleted
}

// copy is for another test.
func (s *scene) copy(t *testing.T) *scene {
	c := *s
	c.fixture, c.T = s.clone(t), t
	return &c
}

func newScene(t *testing.T) *scene {
	s := &scene{fixture: newFixture(t), T: t}
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	s.repo = s.fixture.repository(t, "lake")
	s.set(t, "lake", "main", "a", "1")
	s.first = s.commit(t, "lake", "main", "first")
	s.set(t, "lake", "main", "b", "2")
	s.second = s.commit(t, "lake", "main", "second")
	for _, b := range []graveler.BranchID{"dev", "gone"} {
		_, err = s.CreateBranch(ctx, "lake", b, string(s.first.ID))
		require.NoError(t, err)
		s.set(t, "lake", b, "c", string(b))
		c := s.commit(t, "lake", b, string(b))
		if b == "dev" {
			s.dev = c
		}
	}
	s.gone = s.branch("gone").UID
	require.NoError(t, s.DeleteBranch(ctx, "lake", "gone", false))
	s.third, err = s.Merge(ctx, "lake", "dev", "main", graveler.MergeParams{CommitParams: graveler.CommitParams{Message: "third"}})
	require.NoError(t, err)
	_, err = s.CreateTag(ctx, "lake", "v1", "main")
	require.NoError(t, err)
	s.lone = s.third
	s.lone.Nonce = "lone"
	s.lone.ID = s.lone.ComputeID()
	require.NoError(t, s.refs.PutCommit(ctx, s.repo, &s.lone))
	require.NoError(t, s.refs.CreateTag(ctx, s.repo, &graveler.Tag{ID: "only", Commit: s.lone.ID}))
	s.set(t, "lake", "dev", "folded", "1")
	require.NoError(t, s.Compact(ctx, "lake", "dev"))
	s.set(t, "lake", "dev", "sealed", "1")
	require.NoError(t, s.DeletePrefix(ctx, "lake", "dev", graveler.Key("nothing")))
	s.set(t, "lake", "dev", "staged", "1")
	require.NoError(t, s.fixture.putSetting("lake", true))
	return s
}

func (s *scene) branch(id graveler.BranchID) *graveler.Branch {
	b, err := s.refs.GetBranch(ctx, s.repo, id)
	require.NoError(s, err)
	return b
}

func (s *scene) edit(id graveler.BranchID, edit func(b *graveler.Branch)) {
	b := s.branch(id)
	edit(b)
	_, err := s.refs.PutBranch(ctx, s.repo, b)
	require.NoError(s, err)
}

func (s *scene) record(key string) place { return place{s.repo.Partition(), key} }

// move is the n-th move that is in a log.
func (s *scene) move(uid string, n int) place {
	return s.record(s.keys(s, s.repo.Partition(), ref.LogPrefix(uid))[n])
}

// commitLike stores a commit that is like one but for an edit, and right about its ID, with a tag.
func (s *scene) commitLike(c graveler.Commit, edit func(c *graveler.Commit)) {
	edit(&c)
	c.ID = c.ComputeID()
	require.NoError(s, s.refs.PutCommit(ctx, s.repo, &c))
	require.NoError(s, s.refs.CreateTag(ctx, s.repo, &graveler.Tag{ID: "like", Commit: c.ID}))
}

func (s *scene) fileOf(tree graveler.MetaRangeID) string {
	return s.repo.Namespace + "/" + string(tree[:2]) + "/" + string(tree)
}

func TestEachFaultIsFoundAsWhatItIs(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(s *scene)
		want  []fsck.Kind
	}{
		"a commit is missing": {
			func(s *scene) { s.remove(s, s.record(string(ref.CommitKey(s.dev.ID)))) }, []fsck.Kind{fsck.MissingCommit},
		},
		"a tag dangles": {
			func(s *scene) {
				require.NoError(s, s.refs.CreateTag(ctx, s.repo, &graveler.Tag{ID: "v0", Commit: "0000"}))
			}, []fsck.Kind{fsck.DanglingTag},
		},
		"a record has another's contents": {
			func(s *scene) { s.write(s, s.record("tags/v2"), s.value(s, s.record("tags/v1"))) }, []fsck.Kind{fsck.BadRecord},
		},
		"a repository does not decode": {
			func(s *scene) {
				s.write(s, place{ref.RepositoriesPartition, string(ref.RepositoryKey("sea"))}, []byte("\xff"))
			}, []fsck.Kind{fsck.BadRecord},
		},
		"the default branch is missing": {
			func(s *scene) { s.remove(s, s.record("branches/main")) }, []fsck.Kind{fsck.BadLog, fsck.MissingBranch},
		},
		"a branch is missing": {
			func(s *scene) { s.remove(s, s.record("branches/dev")) }, []fsck.Kind{fsck.BadLog},
		},
		"a branch is missing, and a file of its head": {
			func(s *scene) {
				s.set(s, "lake", "dev", "new", "x")
				c := s.commit(s, "lake", "dev", "new")
				s.remove(s, s.record("branches/dev"))
				require.NoError(s, s.blocks.Delete(ctx, s.fileOf(c.Tree)))
			}, []fsck.Kind{fsck.BadLog, fsck.MissingFile},
		},
		"a head is not where the last move led": {
			func(s *scene) { s.edit("main", func(b *graveler.Branch) { b.Head = s.first.ID }) }, []fsck.Kind{fsck.BadBranch},
		},
		"a branch is marked deleted without a move": {
			func(s *scene) { s.edit("dev", func(b *graveler.Branch) { b.State = graveler.BranchDeleted }) }, []fsck.Kind{fsck.BadBranch},
		},
		"a branch has another UID": {
			func(s *scene) { s.edit("dev", func(b *graveler.Branch) { b.UID = "other" }) }, []fsck.Kind{fsck.BadLog},
		},
		"a branch has no token": {
			func(s *scene) { s.edit("dev", func(b *graveler.Branch) { b.Token = "" }) }, []fsck.Kind{fsck.BadBranch},
		},
		"two branches have one token": {
			func(s *scene) {
				s.edit("dev", func(b *graveler.Branch) { b.Token = s.branch("main").Token })
			}, []fsck.Kind{fsck.BadBranch},
		},
		"a branch lists a token twice": {
			func(s *scene) {
				s.edit("dev", func(b *graveler.Branch) {
					b.ItemCounter++
					b.Items = slices.Insert(b.Items, 0, graveler.Item{Number: b.ItemCounter, Token: b.Token})
				})
			}, []fsck.Kind{fsck.BadBranch},
		},
		"a staged entry does not decode": {
			func(s *scene) { s.write(s, place{string(s.branch("dev").Token), "staged"}, []byte("\xff")) }, []fsck.Kind{fsck.BadRecord},
		},
		"a sealed entry is another's": {
			func(s *scene) {
				token := string(s.branch("dev").Items[1].Token)
				s.write(s, place{token, "other"}, s.value(s, place{token, "sealed"}))
			}, []fsck.Kind{fsck.BadRecord},
		},
		"a generation is wrong": {
			func(s *scene) { s.commitLike(s.second, func(c *graveler.Commit) { c.Generation++ }) }, []fsck.Kind{fsck.BadCommit},
		},
		"a first commit has a generation": {
			func(s *scene) { s.commitLike(s.second, func(c *graveler.Commit) { c.Parents = nil }) }, []fsck.Kind{fsck.BadCommit},
		},
		"a log time is too early": {
			func(s *scene) { s.commitLike(s.second, func(c *graveler.Commit) { c.LogTime = s.first.LogTime }) }, []fsck.Kind{fsck.BadCommit},
		},
		"a tree is none": {
			func(s *scene) { s.commitLike(s.second, func(c *graveler.Commit) { c.Tree = "none" }) }, []fsck.Kind{fsck.BadTree},
		},
		"a tree was never written": {
			func(s *scene) {
				s.commitLike(s.second, func(c *graveler.Commit) { c.Tree = graveler.MetaRangeID(c.ID) })
			}, []fsck.Kind{fsck.MissingFile},
		},
		"a base is missing": {
			func(s *scene) { require.NoError(s, s.blocks.Delete(ctx, s.fileOf(s.branch("dev").Base))) }, []fsck.Kind{fsck.MissingFile},
		},
		"a pinned tree is missing": {
			func(s *scene) {
				require.NoError(s, s.refs.PutPin(ctx, s.repo, graveler.Pin{Owner: "x", Trees: []graveler.MetaRangeID{graveler.MetaRangeID(s.first.ID)}}))
			}, []fsck.Kind{fsck.MissingFile},
		},
		"the first move is missing": {
			func(s *scene) { s.remove(s, s.move(s.branch("main").UID, 0)) }, []fsck.Kind{fsck.BadLog},
		},
		"a move is missing": {
			func(s *scene) { s.remove(s, s.move(s.branch("main").UID, 1)) }, []fsck.Kind{fsck.BadLog},
		},
		"the move before the last is missing": {
			func(s *scene) { s.remove(s, s.move(s.branch("main").UID, 2)) }, []fsck.Kind{fsck.BadLog},
		},
		"the log of a deleted branch lacks its end": {
			func(s *scene) { s.remove(s, s.move(s.gone, 2)) }, []fsck.Kind{fsck.BadLog},
		},
		"a move does not decode": {
			func(s *scene) { s.write(s, s.move(s.branch("main").UID, 1), []byte("\xff")) }, []fsck.Kind{fsck.BadRecord},
		},
		"a move does not decode, and later ones are missing": {
			func(s *scene) {
				uid := s.branch("main").UID
				s.write(s, s.move(uid, 0), []byte("\xff"))
				s.remove(s, s.move(uid, 2))
			}, []fsck.Kind{fsck.BadLog, fsck.BadRecord},
		},
		"what the log begins from is missing": {
			func(s *scene) {
				moves := s.moves(s.gone)
				require.NoError(s, s.refs.PutLogStart(ctx, s.repo, s.gone, moves[1].Time))
				require.NoError(s, s.refs.RemoveMove(ctx, s.repo, s.gone, moves[0].Time))
				moves[1].Old = "0000"
				require.NoError(s, s.refs.PutMove(ctx, s.repo, s.gone, moves[1]))
			}, []fsck.Kind{fsck.MissingCommit},
		},
		"a move leads elsewhere": {
			func(s *scene) {
				m := s.moves(s.branch("main").UID)[1]
				m.New = s.dev.ID
				require.NoError(s, s.refs.PutMove(ctx, s.repo, s.branch("main").UID, m))
			}, []fsck.Kind{fsck.BadLog},
		},
		"there is a move too many": {
			func(s *scene) {
				m := s.moves(s.branch("main").UID)[1]
				m.Previous, m.Time = m.Time, m.Time+1
				require.NoError(s, s.refs.PutMove(ctx, s.repo, s.branch("main").UID, m))
			}, []fsck.Kind{fsck.BadLog},
		},
		"there is a move after the last": {
			func(s *scene) {
				m := s.branch("main").LastMove
				m.Previous, m.Time, m.Old = m.Time, m.Time+1, m.New
				require.NoError(s, s.refs.PutMove(ctx, s.repo, s.branch("main").UID, m))
			}, []fsck.Kind{fsck.BadLog},
		},
		"there is a move after a deletion": {
			func(s *scene) {
				last := s.moves(s.gone)[2]
				m := graveler.Move{Time: last.Time + 1, Previous: last.Time, Op: graveler.OpCommit, New: s.dev.ID}
				require.NoError(s, s.refs.PutMove(ctx, s.repo, s.gone, m))
			}, []fsck.Kind{fsck.BadLog},
		},
		"a log says something else than its branch": {
			func(s *scene) {
				m := s.branch("main").LastMove
				m.Actor = "somebody"
				require.NoError(s, s.refs.PutMove(ctx, s.repo, s.branch("main").UID, m))
			}, []fsck.Kind{fsck.BadLog},
		},
		"a move names a missing commit": {
			func(s *scene) {
				for i, m := range s.moves(s.gone) {
					if i > 0 {
						m.Old = "0000"
					}
					if i < 2 {
						m.New = "0000"
					}
					require.NoError(s, s.refs.PutMove(ctx, s.repo, s.gone, m))
				}
			}, []fsck.Kind{fsck.MissingCommit},
		},
		"a live branch's log has lost its name": {
			func(s *scene) { s.remove(s, s.record("log-names/dev:"+s.branch("dev").UID)) }, []fsck.Kind{fsck.BadLog},
		},
		"a deleted branch's log has lost its name": {
			func(s *scene) { s.remove(s, s.record("log-names/gone:"+s.gone)) }, []fsck.Kind{fsck.BadLog},
		},
		"a chunk of a setting is missing": {
			func(s *scene) {
				s.remove(s, s.record(s.keys(s, s.repo.Partition(), "setting-chunks/")[1]))
			}, []fsck.Kind{fsck.BadSetting},
		},
		"a setting has a bad name": {
			func(s *scene) {
				s.write(s, s.record("settings/A"), []byte("\x0a\x01A"))
			}, []fsck.Kind{fsck.BadSetting},
		},
		"the watermark does not decode": {
			func(s *scene) { s.write(s, place{"kv-internal-metadata", "clock/watermark"}, []byte("\xff")) }, []fsck.Kind{fsck.BadRecord},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.requireHealthy(t)
			c.plant(s)
			damage, _, _ := s.check(t, fsck.Options{})
			require.Equal(t, c.want, kinds(damage), "%+v", damage)
			named, _, _ := s.check(t, fsck.Options{Repositories: []graveler.RepositoryID{"lake"}, Quick: true})
			if damage[0].Repository == "lake" || damage[0].Partition == s.repo.Partition() {
				require.ElementsMatch(t, damage, named)
			}
		})
	}
}

func (s *scene) moves(uid string) (all []graveler.Move) {
	for m, err := range s.refs.ScanMoves(ctx, s.repo, uid, 0, 1<<62) {
		require.NoError(s, err)
		all = append(all, m)
	}
	return all
}

// One finding for each that refers to it, and each says what is missing.
func TestEverybodyWhoRefersToAMissingCommitIsNamed(t *testing.T) {
	s := newScene(t)
	s.remove(t, s.record(string(ref.CommitKey(s.third.ID))))
	damage, _, _ := s.check(t, fsck.Options{})
	require.Len(t, damage, 3)
	for _, d := range damage {
		require.Equal(t, s.third.ID, d.Commit)
		require.Equal(t, graveler.RepositoryID("lake"), d.Repository)
		require.Contains(t, d.What, s.third.ID)
	}
	require.Equal(t, graveler.BranchID("main"), damage[0].Branch)
	require.Contains(t, damage[0].What, "the head of the branch")
	require.Contains(t, damage[1].What, "which the move of the branch at")
	require.Equal(t, graveler.TagID("v1"), damage[2].Tag)
}

func TestWhatIsInOrderIsNoted(t *testing.T) {
	s := newScene(t)
	// A repository that is being created, one that is being deleted, a branch that is, and one that was about to be made.
	for id, state := range map[graveler.RepositoryID]graveler.RepositoryState{"new": graveler.RepositoryCreating, "old": graveler.RepositoryInDeletion} {
		_, err := s.refs.PutRepository(ctx, &graveler.Repository{ID: id, UID: "u", State: state, CreatedAt: time.Unix(1, 0)})
		require.NoError(t, err)
	}
	s.edit("dev", func(b *graveler.Branch) {
		b.LastMove = graveler.Move{Time: b.LastMove.Time + 1, Previous: b.LastMove.Time, Op: graveler.OpDelete, Old: b.Head}
		b.State, b.Token, b.Items, b.Base = graveler.BranchDeleted, "", nil, ""
	})
	moves := s.moves(s.branch("dev").UID)
	last := graveler.Move{Time: s.branch("dev").LastMove.Previous, Previous: moves[0].Time, Op: graveler.OpCommit, Old: s.first.ID, New: s.dev.ID}
	require.NoError(t, s.refs.PutMove(ctx, s.repo, s.branch("dev").UID, last))
	require.NoError(t, s.refs.PutLogName(ctx, s.repo, "next", "uid"))
	// A commit of another version, records and files that nobody knows, files that nobody needs.
	other := s.second
	other.ID, other.Version = "ffff", 0
	require.NoError(t, s.refs.PutCommit(ctx, s.repo, &other))
	s.write(t, s.record("unknown/a"), []byte("x"))
	s.write(t, s.record("unknown"), []byte("x"))
	s.write(t, place{ref.RepositoriesPartition, "unknown"}, []byte("x"))
	require.NoError(t, s.blocks.Put(ctx, s.repo.Namespace+"/readme", []byte("four")))
	s.alterFile(t, s.fileOf(s.first.Tree), func(data []byte) []byte {
		require.NoError(t, s.blocks.Put(ctx, s.fileOf(graveler.MetaRangeID(s.first.ID)), data))
		return data
	})

	damage, notes, counts := s.check(t, fsck.Options{})
	require.Empty(t, damage)
	said := map[string]string{}
	for _, n := range notes {
		said[fmt.Sprintf("%s %s/%s", n.Kind, n.Repository, n.Branch)] = n.What
	}
	require.Len(t, notes, 9, "%v", said)
	require.Equal(t, "the creation of the repository, begun at 1970-01-01T00:00:01Z, has not finished", said["unfinished new/"])
	require.Equal(t, "the deletion of the repository has not finished", said["unfinished old/"])
	require.Equal(t, "the deletion of the branch has not finished", said["unfinished lake/dev"])
	require.Contains(t, said["unfinished lake/next"], "nothing is left of it but the name")
	require.Equal(t, "1 commit whose ID follows a rule that this program does not know", said["unverified lake/"])
	require.Equal(t, `2 records under keys that this program does not know, the first is "unknown"`, said["foreign-records lake/"])
	require.Equal(t, `key "unknown" is not of this program`, said["foreign-records /"])
	require.Equal(t, "1 file that is not of this program, 4 bytes", said["foreign-files lake/"])
	require.Contains(t, said["orphan-files lake/"], "3 files that no tree that was looked at refers to, ")
	require.Equal(t, 3, counts.Repositories)
	require.Equal(t, 8, counts.Commits)
}

// Retention has taken the tree of a commit, and the moves that named it: that is in order. A branch that stands there all the same is not.
func TestWhatRetentionTookIsNotMissed(t *testing.T) {
	s := newScene(t)
	uid := s.branch("main").UID
	moves := s.moves(uid)
	require.NoError(t, s.refs.PutExpiration(ctx, s.repo, graveler.Expiration{Commit: s.first.ID, At: 1}))
	require.NoError(t, s.refs.PutLogStart(ctx, s.repo, uid, moves[2].Time))
	require.NoError(t, s.blocks.Delete(ctx, s.fileOf(s.first.Tree)))
	// The removal of moves has come half way, and the commit that the remaining one names has gone, or has lost its parent.
	require.NoError(t, s.refs.RemoveMove(ctx, s.repo, uid, moves[0].Time))
	lost := s.second
	lost.Parents = []graveler.CommitID{"0000"}
	lost.ID = lost.ComputeID()
	require.NoError(t, s.refs.PutCommit(ctx, s.repo, &lost))
	for _, named := range []graveler.CommitID{"0000", lost.ID} {
		stray := moves[1]
		stray.Old, stray.Previous = named, moves[0].Time
		require.NoError(t, s.refs.PutMove(ctx, s.repo, uid, stray))
		damage, _, _ := s.check(t, fsck.Options{})
		require.Empty(t, damage)
	}
	damage, _, counts := s.check(t, fsck.Options{})
	require.Empty(t, damage)
	require.Equal(t, 1, counts.ExpiredCommits)

	back := &graveler.Branch{ID: "back", UID: "back", State: graveler.BranchLive, Head: s.first.ID, LastMove: graveler.Move{Time: 1, Op: graveler.OpCreate, New: s.first.ID}, Token: "lake-back:7d444840-9dc0-41d1-b245-5ffdce74fad2", Nonce: "n"}
	require.NoError(t, s.refs.PutLogName(ctx, s.repo, "back", "back"))
	_, err := s.refs.PutBranch(ctx, s.repo, back)
	require.NoError(t, err)
	require.NoError(t, s.refs.CreateTag(ctx, s.repo, &graveler.Tag{ID: "v0", Commit: s.first.ID}))
	damage, _, _ = s.check(t, fsck.Options{})
	require.Equal(t, []fsck.Kind{fsck.MissingFile}, kinds(damage))
	require.Equal(t, graveler.BranchID("back"), damage[0].Branch)
	require.Len(t, damage, 1, "a file is reported once")
}

// Of a commit of this program that nothing leads to, retention may have taken anything. But what it shares with others is theirs,
// and only if everything else can be read is it known to be out of reach.
func TestWhatNothingLeadsToMayLackAnything(t *testing.T) {
	s := newScene(t)
	before, _, whole := s.check(t, fsck.Options{})
	require.Empty(t, before)
	for i := range 20 { // some are scanned before the others, and some after
		stray := s.second
		stray.Nonce = fmt.Sprint("stray", i)
		if i%2 == 0 {
			stray.Parents = []graveler.CommitID{"0000"}
		}
		if i%3 == 0 {
			stray.Tree = graveler.MetaRangeID(s.first.ID)
		}
		stray.ID = stray.ComputeID()
		require.NoError(t, s.refs.PutCommit(ctx, s.repo, &stray))
	}
	damage, _, counts := s.check(t, fsck.Options{})
	require.Empty(t, damage)
	require.Equal(t, 20, counts.UnreachedCommits)
	require.Equal(t, whole.Files, counts.Files)

	require.NoError(t, s.blocks.Delete(ctx, s.fileOf(s.second.Tree)))
	damage, _, _ = s.check(t, fsck.Options{})
	require.Len(t, damage, 1)
	require.Equal(t, s.second.ID, damage[0].Commit)

	s.write(t, s.record("tags/v0"), []byte("\xff"))
	damage, _, counts = s.check(t, fsck.Options{})
	require.Zero(t, counts.UnreachedCommits)
	require.Equal(t, []fsck.Kind{fsck.BadRecord, fsck.MissingCommit, fsck.MissingFile}, kinds(damage))
}

func TestMoreDamageThanIsKeptInMemoryIsReported(t *testing.T) {
	const commits = 5_050
	s := newScene(t)
	last := s.third
	for i := range commits {
		c := graveler.Commit{
			Version: graveler.CommitVersion, Message: fmt.Sprint(i), Parents: []graveler.CommitID{last.ID}, Generation: last.Generation + 1, LogTime: last.LogTime + 1,
		}
		c.Tree = graveler.MetaRangeID(c.ComputeID())
		c.ID = c.ComputeID()
		require.NoError(t, s.refs.PutCommit(ctx, s.repo, &c))
		last = c
	}
	require.NoError(t, s.refs.CreateTag(ctx, s.repo, &graveler.Tag{ID: "last", Commit: last.ID}))
	found := map[fsck.Kind]int{}
	for f, err := range fsck.New(s.kv, s.fixture.trees).Check(ctx, fsck.Options{}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		found[f.Kind]++
	}
	require.Equal(t, commits, found[fsck.MissingFile])
}

func TestOnlyTheRepositoriesThatAreNamedAreChecked(t *testing.T) {
	s := newScene(t)
	_, err := s.CreateRepository(ctx, "sea", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	s.remove(t, s.record(string(ref.CommitKey(s.dev.ID))))
	damage, _, counts := s.check(t, fsck.Options{Repositories: []graveler.RepositoryID{"sea", "sea"}})
	require.Empty(t, damage)
	require.Equal(t, 1, counts.Repositories)
	require.Zero(t, counts.PartitionsWaiting)
	_, _, counts = s.check(t, fsck.Options{})
	require.Equal(t, 2, counts.Repositories)
	require.Positive(t, counts.PartitionsWaiting)

	for id, want := range map[graveler.RepositoryID]error{"none": graveler.ErrRepositoryNotFound, "NO": graveler.ErrInvalidName} {
		var all []error
		for found, err := range fsck.New(s.kv, s.trees).Check(ctx, fsck.Options{Repositories: []graveler.RepositoryID{"lake", id}}, nil) {
			require.Zero(t, found, "nothing is checked before all names are known to be good")
			all = append(all, err)
		}
		require.Len(t, all, 1)
		require.ErrorIs(t, all[0], want)
	}
}
