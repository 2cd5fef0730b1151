// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// Params says how much there is to be in each repository.
type Params struct {
	Seed         uint64
	Repositories int // at least 1, at most 5
	Commits      int // beside the first one
	// Tables restricts it to what lakeFS could keep in its older tables, where branches have one token, and repositories and
	// branches nothing but their names, and instants are microseconds.
	Tables bool
}

// Random makes a deployment. Beside its repositories there are: one without commits and branches, one with the first commit only,
// one whose name was used before, and, but for Tables, one in deletion.
func Random(p Params) *Deployment {
	d := &Deployment{Orphans: map[string][]lakefs.Staged{}}
	for i := range p.Repositories {
		g := newGenerator(p, uint64(i))
		g.history(p.Commits)
		d.Repositories = append(d.Repositories, g.r)
	}
	bare := newGenerator(p, 100)
	first := newGenerator(p, 101)
	first.heads[first.r.DefaultBranch] = first.root()
	first.branches()
	again := newGenerator(p, 102)
	again.history(2)
	d.Repositories = append(d.Repositories, bare.r, first.r, again.r)
	before := newGenerator(p, 103)
	before.r.ID = again.r.ID
	before.history(3)
	d.Deleted = append(d.Deleted, before.r)
	if !p.Tables {
		leaving := newGenerator(p, 104)
		leaving.history(1)
		leaving.r.InDeletion = true
		d.Repositories = append(d.Repositories, leaving.r)
	}
	for i := range 2 {
		d.Orphans[fmt.Sprintf("gone-main:%d", i)] = first.changes(nil)
	}
	slices.SortFunc(d.Repositories, func(a, b *Repository) int { return strings.Compare(a.ID, b.ID) })
	return d
}

// generator makes a repository.
type generator struct {
	p      Params
	rng    *rand.Rand
	r      *Repository
	heads  map[string]*Commit // of branches
	tokens int
	ragged int
}

func newGenerator(p Params, number uint64) *generator {
	g := &generator{p: p, rng: rand.New(rand.NewPCG(p.Seed, number)), heads: map[string]*Commit{}}
	names := map[uint64]string{0: "alpha-repo", 1: "0ab", 2: "a-very-long-name-of-a-repository-which-has-sixty-three-letters-", 3: "lake", 4: "z-9", 100: "bare", 101: "empty", 102: "recreated", 103: "recreated", 104: "leaving"}
	g.ragged = pick(g.rng, 2, 5, 20)
	g.r = &Repository{Files: map[string][]byte{}}
	g.r.ID = names[number]
	g.r.Namespace = fmt.Sprintf(pick(g.rng, "local://Lake-%d", "s3://bucket/Path/%d/", "gs://bucket/deep/er/path%d"), number)
	g.r.DefaultBranch = pick(g.rng, "main", "trunk")
	g.r.CreatedAt = g.date()
	if !p.Tables {
		g.r.UID = g.uid()
		g.r.ReadOnly = g.rng.IntN(4) == 0
		g.r.Metadata = pick(g.rng, nil, map[string]string{"team": "données", "empty": ""})
		if g.rng.IntN(2) == 0 {
			g.r.Protection = []lakefs.ProtectionRule{{Pattern: "main", StagingWrite: true, Commit: true}, {Pattern: "release-*", Commit: true}}
		}
	}
	return g
}

// uid has the form of those that lakeFS makes.
func (g *generator) uid() string {
	id := make([]byte, 20)
	for i := range id {
		id[i] = "0123456789abcdefghijklmnopqrstuv"[g.rng.IntN(32)]
	}
	return string(id)
}

// date is one of many years; clocks were not always right.
func (g *generator) date() time.Time {
	at := time.Date(2018, 3, 4, 5, 6, 7, 0, time.UTC).Add(time.Duration(g.rng.Int64N(int64(3 * 365 * 24 * time.Hour))))
	switch g.rng.IntN(10) {
	case 0:
		at = at.Truncate(time.Hour)
	case 1:
		at = time.Date(1961, 1, 1, 0, 0, 0, 1000, time.UTC)
	}
	if g.p.Tables {
		at = at.Truncate(time.Microsecond)
	}
	return at
}

// history makes commits on branches that come and go, and stages what is left.
func (g *generator) history(commits int) {
	g.heads[g.r.DefaultBranch] = g.root()
	names := []string{"dev", "feature_x", "release-1", "Z", "0"}
	for range commits {
		branch := pick(g.rng, g.live()...)
		switch g.rng.IntN(8) {
		case 0, 1:
			g.heads[pick(g.rng, names...)] = g.heads[branch] // a new branch, or one that moves: commits may be out of reach then
		case 2, 3:
			g.merge(branch, pick(g.rng, g.live()...))
			continue
		case 4:
			g.commit(branch, pick(g.rng, g.r.Commits...).Tree, g.heads[branch].ID) // a revert to what was before
			continue
		case 5:
			if g.rng.IntN(3) == 0 {
				g.commit(branch, Tree{}, g.heads[branch].ID) // all deleted
				continue
			}
		}
		g.commit(branch, g.heads[branch].Tree.with(g.changes(g.heads[branch].Tree)), g.heads[branch].ID)
	}
	g.branches()
	for _, name := range []string{"rel-2020.09", "v1.0", "v1.1"}[:g.rng.IntN(4)] {
		g.r.Tags = append(g.r.Tags, lakefs.Tag{ID: name, Commit: pick(g.rng, g.r.Commits...).ID})
	}
	// A file that no commit leads to.
	g.write(Tree{randomRecord(g.rng, "of an unfinished import")})
}

// live names the branches that there are.
func (g *generator) live() []string {
	var names []string
	for name := range g.heads {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// root makes the first commit, which has the empty metarange ID. Such commits of one second have one ID, also in other repositories.
func (g *generator) root() *Commit {
	c := &Commit{Commit: lakefs.Commit{Message: "Repository created", CreatedAt: g.r.CreatedAt, Version: 1, Generation: 1}}
	c.ID = hash("root", g.r.CreatedAt.Unix())
	g.r.Commits = append(g.r.Commits, c)
	return c
}

func hash(parts ...any) string {
	sum := sha256.Sum256(fmt.Append(nil, parts...))
	return hex.EncodeToString(sum[:])
}

// commit adds a commit to a branch.
func (g *generator) commit(branch string, tree Tree, parents ...string) *Commit {
	c := &Commit{Tree: tree}
	c.Commit = lakefs.Commit{
		ID:        hash(g.p.Seed, g.r.ID, g.r.UID, g.r.Namespace, len(g.r.Commits)),
		Committer: pick(g.rng, "", "ann", "bob@example.com", "Zoë"),
		Message:   pick(g.rng, " ", "Import", "line one\nline two", "\"quoted\" 'twice' \\ 日本"),
		CreatedAt: g.date(),
		Metarange: g.write(tree),
		Metadata:  pick(g.rng, nil, map[string]string{"a": "b"}, map[string]string{"": "empty key", "empty": "", "ключ": "значение", "quote\"": "new\nline"}),
		Parents:   parents,
		Version:   1,
	}
	for _, p := range parents {
		c.Generation = max(c.Generation, g.r.Commit(p).Generation+1)
	}
	g.r.Commits = append(g.r.Commits, c)
	g.heads[branch] = c
	return c
}

// merge adds a commit of two parents, in the order of either version, with what is to be had of both.
func (g *generator) merge(into, from string) {
	main, other := g.heads[into], g.heads[from]
	if main == other {
		return
	}
	var taken []lakefs.Staged
	for _, r := range other.Tree {
		if g.rng.IntN(2) == 0 {
			taken = append(taken, lakefs.Staged{Record: r})
		}
	}
	if g.rng.IntN(3) == 0 {
		g.commit(into, main.Tree.with(taken), other.ID, main.ID).Version = 0
		return
	}
	g.commit(into, main.Tree.with(taken), main.ID, other.ID)
}

// write keeps the files of a tree, and returns the ID of its metarange.
func (g *generator) write(tree Tree) string {
	w := NewTreeWriter(g.ragged, func(id string, data []byte) error {
		g.r.Files[id] = data
		return nil
	})
	for _, r := range tree {
		must(w.Add(r))
	}
	id, _, err := w.Finish()
	must(err)
	return id
}

// must panics: what is written to memory in order cannot fail.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
