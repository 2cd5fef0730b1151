// SPDX-License-Identifier: Apache-2.0

package fsck_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/kvtest"
)

var (
	repositories = []graveler.RepositoryID{"lake", "sea"}
	branches     = []graveler.BranchID{"main", "dev", "x/y"}
	entryKeys    = []string{"a", "a/b", "b", "c"}
)

// picks draws what an operation needs.
type picks interface{ pick(n int) int }

type seeded struct{ *rand.Rand }

func (s seeded) pick(n int) int { return s.IntN(n) }

func newSeeded(t *rapid.T) seeded {
	return seeded{rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
}

const (
	operations = 25 // that step picks from
	retirement = 20 // is one of them
)

// step does one random operation of those that a store has.
func (f *fixture) step(p picks, g *graveler.Graveler) error {
	repo := repositories[p.pick(len(repositories))]
	branch, other := branches[p.pick(len(branches))], branches[p.pick(len(branches))]
	key := entryKeys[p.pick(len(entryKeys))]
	switch p.pick(operations) {
	default:
		return g.Set(ctx, repo, branch, graveler.Key(key), value(fmt.Sprint(p.pick(100))))
	case 0:
		return g.Delete(ctx, repo, branch, graveler.Key(key))
	case 1:
		return g.DeletePrefix(ctx, repo, branch, graveler.Key("a"))
	case 2, 3, 4:
		_, err := g.Commit(ctx, repo, branch, graveler.CommitParams{Message: "m", AllowEmpty: p.pick(3) == 0})
		return err
	case 5:
		_, err := g.Commit(ctx, repo, branch, graveler.CommitParams{Message: "part", Prefixes: []graveler.Key{graveler.Key("a")}})
		return err
	case 6:
		return g.Compact(ctx, repo, branch)
	case 7:
		_, err := g.CreateBranch(ctx, repo, branch, string(other))
		return err
	case 8:
		return g.DeleteBranch(ctx, repo, branch, p.pick(2) == 0)
	case 9:
		_, err := g.Merge(ctx, repo, string(branch), other, graveler.MergeParams{Strategy: graveler.SourceWins, AllowDirty: p.pick(2) == 0})
		return err
	case 10:
		_, err := g.Revert(ctx, repo, branch, string(branch), graveler.PickParams{AllowDirty: true})
		return err
	case 11:
		if c, err := f.ResolveRef(ctx, repo, string(other)+"~1"); err != nil || f.isExpired(repo, c.ID) {
			return err
		}
		_, err := g.Reset(ctx, repo, branch, string(other)+"~1", graveler.ResetParams{AllowDirty: p.pick(2) == 0})
		return err
	case 12:
		return g.ResetStaged(ctx, repo, branch, graveler.Key("a"))
	case 13:
		_, err := g.CreateTag(ctx, repo, graveler.TagID(fmt.Sprint("v", p.pick(3))), string(branch))
		return err
	case 14:
		return g.DeleteTag(ctx, repo, graveler.TagID(fmt.Sprint("v", p.pick(3))))
	case 15:
		_, err := g.CreateRepository(ctx, repo, graveler.CreateRepositoryParams{})
		return err
	case 16:
		if p.pick(3) > 0 {
			return nil
		}
		return g.DeleteRepository(ctx, repo)
	case 17:
		_, err := g.Maintain(ctx)
		return err
	case 18:
		return f.pin(repo, branch, p.pick(2) == 0)
	case 19:
		return f.putSetting(repo, p.pick(2) == 0)
	case retirement:
		return f.retire(p, repo, branch)
	}
}

// isExpired says that nobody may begin to rely on the tree of a commit.
func (f *fixture) isExpired(repo graveler.RepositoryID, c graveler.CommitID) bool {
	r, err := f.refs.GetRepository(ctx, repo)
	if err == nil {
		_, err = f.refs.GetExpiration(ctx, r, c)
	}
	return err == nil
}

func (f *fixture) pin(repo graveler.RepositoryID, branch graveler.BranchID, remove bool) error {
	r, err := f.refs.GetRepository(ctx, repo)
	if err != nil {
		return err
	}
	if remove {
		return f.refs.RemovePin(ctx, r, "test")
	}
	c, err := f.ResolveRef(ctx, repo, string(branch))
	if err != nil {
		return err
	}
	if r, err = f.refs.GetRepository(ctx, repo); err != nil {
		return err
	}
	return f.refs.PutPin(ctx, r, graveler.Pin{Owner: "test", Trees: []graveler.MetaRangeID{c.Tree}})
}

// putSetting stores a document, sometimes one that is in chunks.
func (f *fixture) putSetting(repo graveler.RepositoryID, large bool) error {
	r, err := f.refs.GetRepository(ctx, repo)
	if err != nil {
		return err
	}
	_, stamp, err := f.refs.GetSetting(ctx, r, "protection")
	if err != nil && !errors.Is(err, graveler.ErrSettingNotFound) {
		return err
	}
	document := []byte("short")
	if large {
		document = noise
	}
	_, err = f.refs.PutSetting(ctx, r, "protection", document, stamp)
	return err
}

// noise cannot be compressed.
var noise = func() []byte {
	data := make([]byte, 257<<10)
	random := rand.NewChaCha8([32]byte{})
	_, _ = random.Read(data)
	return data
}()

// retire does what retention does: a log loses its beginning, or part of it where that is cut off, and what nothing else refers
// to loses its files. Nothing else may be under way in the repository.
func (f *fixture) retire(p picks, repo graveler.RepositoryID, branch graveler.BranchID) error {
	r, err := f.refs.GetRepository(ctx, repo)
	if err != nil || r.State != graveler.RepositoryActive {
		return err
	}
	b, err := f.refs.GetBranch(ctx, r, branch)
	if err != nil {
		return err
	}
	if err := f.refs.PutLogStart(ctx, r, b.UID, b.LastMove.Time); err != nil {
		return err
	}
	for m, err := range f.refs.ScanMoves(ctx, r, b.UID, 0, b.LastMove.Time-1) {
		if err == nil && p.pick(8) == 0 {
			return nil
		}
		if err == nil {
			err = f.refs.RemoveMove(ctx, r, b.UID, m.Time)
		}
		if err != nil {
			return err
		}
	}
	roots, trees, err := f.roots(r)
	if err != nil {
		return err
	}
	reached, err := f.reached(r, roots)
	if err != nil {
		return err
	}
	for c, err := range f.refs.ScanCommits(ctx, r, "") {
		switch {
		case err != nil:
			return err
		case roots[c.ID]:
			trees[c.Tree] = true
			continue
		case !reached[c.ID]: // it loses its tree at once, and goes or will go next time, a parent before its child perhaps
			if p.pick(2) == 0 {
				continue
			}
			if err := f.kv.Delete(ctx, []byte(r.Partition()), ref.CommitKey(c.ID)); err != nil {
				return err
			}
			continue
		}
		if err := f.refs.PutExpiration(ctx, r, graveler.Expiration{Commit: c.ID, At: b.LastMove.Time}); err != nil {
			return err
		}
	}
	return f.sweep(r, trees)
}

// reached returns the commits that lead from some, themselves included.
func (f *fixture) reached(r *graveler.Repository, from map[graveler.CommitID]bool) (map[graveler.CommitID]bool, error) {
	all := map[graveler.CommitID]bool{}
	for next := slices.Collect(maps.Keys(from)); len(next) > 0; {
		id := next[0]
		next = next[1:]
		if all[id] || id == "" {
			continue
		}
		all[id] = true
		c, err := f.refs.GetCommit(ctx, r, id)
		if err != nil {
			return nil, err
		}
		next = append(next, c.Parents...)
	}
	return all, nil
}

// roots returns the commits whose trees must stay, and the other trees that must.
func (f *fixture) roots(r *graveler.Repository) (commits map[graveler.CommitID]bool, trees map[graveler.MetaRangeID]bool, err error) {
	commits, trees = map[graveler.CommitID]bool{}, map[graveler.MetaRangeID]bool{}
	for b, err := range f.refs.ScanBranches(ctx, r, "") {
		if err != nil {
			return nil, nil, err
		}
		commits[b.Head], commits[b.LastMove.Old], trees[b.Base] = true, true, b.Base != ""
	}
	for t, err := range f.refs.ScanTags(ctx, r, "") {
		if err != nil {
			return nil, nil, err
		}
		commits[t.Commit] = true
	}
	for p, err := range f.refs.ScanPins(ctx, r) {
		if err != nil {
			return nil, nil, err
		}
		for _, tree := range p.Trees {
			trees[tree] = true
		}
	}
	for name, err := range f.refs.ScanLogNames(ctx, r, "") {
		if err != nil {
			return nil, nil, err
		}
		for m, err := range f.refs.ScanMoves(ctx, r, name.UID, 0, 1<<62) {
			if err != nil {
				return nil, nil, err
			}
			commits[m.Old], commits[m.New] = true, true
		}
	}
	delete(trees, "")
	return commits, trees, nil
}

// sweep removes the files that are of none of the trees.
func (f *fixture) sweep(r *graveler.Repository, trees map[graveler.MetaRangeID]bool) error {
	kept := map[string]bool{}
	for tree := range trees {
		err := f.trees.Walk(ctx, r.Namespace, tree, func(file graveler.TreeFile) (bool, error) {
			kept[file.ID] = true
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	for file, err := range f.trees.ListFiles(ctx, r.Namespace) {
		if err == nil && !kept[file.ID] {
			err = f.blocks.Delete(ctx, r.Namespace+"/"+file.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// crashing does a step that ends with the loss of the process before or after one of its writes, if it has that many.
func (f *fixture) crashing(t *rapid.T, p picks) {
	at, script := p.pick(12)+1, kvtest.CrashBefore
	if p.pick(2) == 0 {
		script = kvtest.CrashAfter
	}
	_ = f.step(p, f.open(t, kvtest.Faulty(f.kv, script(kvtest.NthWrite(at)))))
}

// runHistory makes a store with a random past.
func runHistory(t *rapid.T, steps int) *fixture {
	f := newFixture(t)
	_, err := f.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	p := newSeeded(t)
	for range rapid.IntRange(steps/4, steps).Draw(t, "steps") {
		if p.pick(5) == 0 {
			f.crashing(t, p)
		} else {
			err := f.step(p, f.Graveler)
			require.True(t, expected(err), "%v", err)
		}
	}
	return f
}

func TestAStoreWithAnyPastIsHealthy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := runHistory(t, 40)
		full, notes, counts := f.check(t, fsck.Options{})
		require.Empty(t, full)
		for _, n := range notes {
			require.Contains(t, []fsck.Kind{fsck.Unfinished, fsck.OrphanFiles}, n.Kind)
		}
		quick, _, quickCounts := f.check(t, fsck.Options{Quick: true, Parallel: 1})
		require.Empty(t, quick)
		require.Equal(t, counts, quickCounts)
	})
}

// meddledTrees does something before each file is read.
type meddledTrees struct {
	graveler.Trees
	meddle func()
}

func (m meddledTrees) CheckFile(ctx context.Context, ns string, f graveler.TreeFile) error {
	m.meddle()
	return m.Trees.CheckFile(ctx, ns, f)
}

// shortPages reads little at a time, so that much can happen within a scan.
type shortPages struct{ kv.Store }

func (s shortPages) Scan(ctx context.Context, partition []byte, o kv.ScanOptions) (kv.Iterator, error) {
	o.BatchSize = 1
	return s.Store.Scan(ctx, partition, o)
}

// Before each call of a check, any operation may take place.
func TestNoFalseAlarmWhileTheStoreIsInUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := runHistory(t, 20)
		p := newSeeded(t)
		share := rapid.SampledFrom([]int{1, 2, 5}).Draw(t, "share")
		var mu sync.Mutex
		meddle := func() {
			mu.Lock()
			defer mu.Unlock()
			if p.pick(share) == 0 {
				err := f.step(p, f.Graveler)
				require.True(t, expected(err), "%v", err)
			}
		}
		store := kvtest.Faulty(shortPages{f.kv}, func(ctx context.Context, _ kvtest.Op, call func(context.Context) error) error {
			meddle()
			return call(ctx)
		})
		for range 2 {
			trees := f.openTrees(t)
			for found, err := range fsck.New(store, meddledTrees{trees, meddle}).Check(ctx, fsck.Options{Parallel: 2}, nil) {
				require.NoError(t, err)
				require.NotEqual(t, fsck.Damage, found.Severity, "%+v", found)
			}
			require.NoError(t, trees.Close())
		}
		f.requireHealthy(t)
	})
}

// Whatever goes, and whenever in the course of a check: it was in order before, and is in order afterwards.
func TestNoFalseAlarmWhereverSomethingGoes(t *testing.T) {
	made := newScene(t)
	for name, goes := range map[string]func(s *scene){
		"a tag, and the commit that only it knew": func(s *scene) {
			require.NoError(s, s.DeleteTag(ctx, "lake", "only"))
			require.NoError(s, s.kv.Delete(ctx, []byte(s.repo.Partition()), ref.CommitKey(s.lone.ID)))
		},
		"the beginning of a log": func(s *scene) {
			uid := s.branch("main").UID
			require.NoError(s, s.refs.PutLogStart(ctx, s.repo, uid, s.branch("main").LastMove.Time))
			for _, m := range s.moves(uid)[:3] {
				require.NoError(s, s.refs.RemoveMove(ctx, s.repo, uid, m.Time))
			}
		},
		"the log of a deleted branch": func(s *scene) {
			require.NoError(s, s.refs.PutLogStart(ctx, s.repo, s.gone, 1<<62))
			for _, m := range s.moves(s.gone) {
				require.NoError(s, s.refs.RemoveMove(ctx, s.repo, s.gone, m.Time))
			}
			require.NoError(s, s.refs.RemoveLogName(ctx, s.repo, graveler.LogName{Branch: "gone", UID: s.gone}))
		},
		"a branch": func(s *scene) {
			require.NoError(s, s.DeleteBranch(ctx, "lake", "dev", true))
			_, err := s.Maintain(ctx)
			require.NoError(s, err)
		},
		"the base of a branch": func(s *scene) {
			base := s.branch("dev").Base
			require.NoError(s, s.ResetStaged(ctx, "lake", "dev", nil))
			require.NoError(s, s.blocks.Delete(ctx, s.fileOf(base)))
		},
		"a tree": func(s *scene) {
			require.NoError(s, s.refs.PutExpiration(ctx, s.repo, graveler.Expiration{Commit: s.first.ID, At: 1}))
			require.NoError(s, s.blocks.Delete(ctx, s.fileOf(s.first.Tree)))
		},
		"the chunks of a setting": func(s *scene) { require.NoError(s, s.fixture.putSetting("lake", false)) },
		"the repository": func(s *scene) {
			require.NoError(s, s.DeleteRepository(ctx, "lake"))
			_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
			require.NoError(s, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			const stride = 8 // in one run; all moments have their turn in the end
			for at := 1 + rand.IntN(stride); ; at += stride {
				s := made.copy(t)
				var mu sync.Mutex
				calls := 0
				meddle := func() {
					mu.Lock()
					defer mu.Unlock()
					if calls++; calls == at {
						goes(s)
					}
				}
				store := kvtest.Faulty(shortPages{s.kv}, func(ctx context.Context, _ kvtest.Op, call func(context.Context) error) error {
					meddle()
					return call(ctx)
				})
				trees := s.openTrees(t)
				for found, err := range fsck.New(store, meddledTrees{trees, meddle}).Check(ctx, fsck.Options{Parallel: 1}, nil) {
					require.NoError(t, err)
					require.NotEqual(t, fsck.Damage, found.Severity, "call %d: %+v", at, found)
				}
				require.NoError(t, trees.Close())
				if calls < at {
					require.Greater(t, at, 100)
					return
				}
			}
		})
	}
}

func TestNoFalseAlarmBesideWriters(t *testing.T) {
	const steps = 200
	f := newFixture(t)
	for _, r := range repositories {
		_, err := f.CreateRepository(ctx, r, graveler.CreateRepositoryParams{})
		require.NoError(t, err)
	}
	var writers sync.WaitGroup
	problems := make(chan error, 3)
	for range cap(problems) {
		g, p := f.open(t, f.kv), seeded{rand.New(rand.NewPCG(rand.Uint64(), 1))}
		writers.Go(func() {
			var err error
			for range steps {
				if err = f.step(together{p}, g); !expected(err) {
					break
				}
				err = nil
			}
			problems <- err
		})
	}
	checks, checked := 0, fsck.Counts{}
	for ended := 0; ended < cap(problems); {
		select {
		case err := <-problems:
			require.NoError(t, err)
			ended++
		default:
			damage, _, counts := f.check(t, fsck.Options{})
			require.Empty(t, damage)
			checks, checked.Commits, checked.Moves = checks+1, checked.Commits+counts.Commits, checked.Moves+counts.Moves
		}
	}
	writers.Wait()
	f.requireHealthy(t)
	t.Logf("%d checks of %d commits and %d moves while there were writers", checks, checked.Commits, checked.Moves)
}

// together never draws the operation that must have the repository for itself.
type together struct{ picks }

func (w together) pick(n int) int {
	picked := w.picks.pick(n)
	if n == operations && picked == retirement {
		return 0
	}
	return picked
}
