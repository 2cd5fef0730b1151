// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/kv"
)

// compare compares a target with what lakeFS reads and with its source, checks that it is sound, and returns how many differences
// there are. Label names the target.
func (s *loaded) compare(ctx context.Context, t target, label string) (differences int, err error) {
	err = t.use(ctx, func(store *moraine.Store, engine kv.Store) error {
		var heads strings.Builder
		var names, want []string
		for r, err := range store.ListRepositories(ctx, "") {
			if err != nil {
				return err
			}
			names = append(names, string(r.ID))
		}
		for _, r := range s.expected.Repositories {
			want = append(want, r.ID)
			c := &comparison{newTally(s.name, label, r.ID), store.Graveler, r, graveler.RepositoryID(r.ID)}
			if err := c.all(ctx, s, &heads); err != nil {
				return fmt.Errorf("repository %s: %w", r.ID, err)
			}
			differences += c.print()
		}
		whole := newTally(s.name, label, "(all)")
		whole.equal("repositories", "names", names, want)
		whole.equal("lines of heads", "first difference", firstDifference(heads.String(), string(s.heads)), "")
		verified, err := t.migration(s.source(), store, engine).Verify(ctx)
		if err != nil {
			return err
		}
		whole.equal("verify", "the first difference", fmt.Sprint(verified.Err()), fmt.Sprint(error(nil)))
		var damage []string
		for f, err := range store.Check(ctx, fsck.Options{}, &fsck.Counts{}) {
			if err != nil {
				return err
			}
			if f.Severity == fsck.Damage {
				damage = append(damage, fmt.Sprint(f))
			}
		}
		whole.equal("fsck", "damage", damage, []string(nil))
		differences += whole.print()
		return nil
	})
	return differences, err
}

// firstDifference shows the first line in which two texts differ, "" if none does.
func firstDifference(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			return fmt.Sprintf("line %d of %d (expected: of %d)", i+1, len(g), len(w))
		}
	}
	return ""
}

// comparison compares one repository.
type comparison struct {
	*tally
	g    *graveler.Graveler
	want *repository
	id   graveler.RepositoryID
}

func (c *comparison) all(ctx context.Context, s *loaded, heads *strings.Builder) error {
	r, err := c.g.GetRepository(ctx, c.id)
	if err != nil {
		return err
	}
	c.equal("repository", "default branch", string(r.DefaultBranch), c.want.DefaultBranch)
	c.equal("repository", "creation date", r.CreatedAt.UTC().String(), c.want.CreationDate.UTC().String())
	for _, part := range []func() error{
		func() error { return c.branches(ctx, heads) },
		func() error { return c.tags(ctx) },
		func() error { return c.commits(ctx) },
		func() error { return c.values(ctx, s) },
		func() error { return c.mergeBases(ctx) },
		func() error { return c.diffs(ctx) },
		func() error { return c.settings(ctx, s, r) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// branches compares heads, uncommitted changes and listings, and writes the lines of the heads.
func (c *comparison) branches(ctx context.Context, heads *strings.Builder) error {
	got := map[string]string{}
	for b, err := range c.g.ListAllBranches(ctx, c.id, "") {
		if err != nil {
			return err
		}
		got[string(b.ID)] = string(b.Head)
	}
	if len(c.want.Commits) == 0 { // lakeFS has a repository without anything, we do not
		c.equal("branches", "names", slices.Collect(maps.Keys(got)), []string{c.want.DefaultBranch})
		return nil
	}
	want := map[string]string{}
	for _, b := range c.want.Branches {
		want[b.ID] = b.Commit
		fmt.Fprintf(heads, "== %s %s %s\n", c.id, b.ID, b.Commit)
		if _, _, err := c.entries(ctx, b.Commit, heads); err != nil {
			return err
		}
		n, hash, err := c.entries(ctx, b.ID, nil)
		if err != nil {
			return err
		}
		c.equal("listings with staging", b.ID, fmt.Sprint(n, " ", hash), fmt.Sprint(b.ListCount, " ", b.ListHash))

		var changes, wantChanges []string
		for d, err := range c.g.DiffUncommitted(ctx, c.id, graveler.BranchID(b.ID), graveler.DiffOptions{}) {
			if err != nil {
				return err
			}
			identity := ""
			if d.Right != nil {
				identity = hex.EncodeToString(d.Right.Identity)
			}
			changes = append(changes, fmt.Sprintf("%s %s %s", changeType(d), d.Key, identity))
		}
		for _, u := range b.Uncommitted {
			wantChanges = append(wantChanges, fmt.Sprintf("%s %s %s", u.Type, u.Path, u.Identity))
		}
		c.equal("uncommitted changes", b.ID, changes, wantChanges)
	}
	c.equal("branches", "heads", got, want)
	return nil
}

func changeType(d graveler.Diff) string {
	switch {
	case d.Left == nil:
		return "added"
	case d.Right == nil:
		return "removed"
	default:
		return "changed"
	}
}

// entries hashes the lines of what a ref shows, and writes them to a text if there is one.
func (c *comparison) entries(ctx context.Context, ref string, to *strings.Builder) (n int, hash string, err error) {
	h := sha256.New()
	for l, err := range c.g.List(ctx, c.id, ref, graveler.ListOptions{}) {
		if err != nil {
			return 0, "", err
		}
		line := fmt.Sprintf("%s\t%x\n", l.Key, l.Value.Identity)
		h.Write([]byte(line))
		if to != nil {
			to.WriteString(line)
		}
		n++
	}
	return n, hex.EncodeToString(h.Sum(nil)), nil
}

func (c *comparison) tags(ctx context.Context) error {
	var got, want []string
	for t, err := range c.g.ListTags(ctx, c.id, "") {
		if err != nil {
			return err
		}
		got = append(got, fmt.Sprint(t.ID, " ", t.Commit))
	}
	for _, t := range c.want.Tags {
		want = append(want, fmt.Sprint(t.ID, " ", t.Commit))
	}
	c.equal("tags", "tags", got, want)
	return nil
}

// commits compares every field of every commit, and its entries.
func (c *comparison) commits(ctx context.Context) error {
	got, err := byID(c.g.ListCommits(ctx, c.id, ""))
	if err != nil {
		return err
	}
	if len(c.want.Commits) == 0 {
		c.equal("commits", "number, with the first one that it was given", len(got), 1)
		return nil
	}
	c.equal("commits", "number", len(got), len(c.want.Commits))
	for _, want := range c.want.Commits {
		have, ok := got[want.ID]
		if !ok {
			c.equal("commits", want.ID, "missing", "there")
			continue
		}
		c.equal("commits", want.ID, fieldsOf(have), want.fields())
		c.equal("empty trees", want.ID, have.Tree == c.g.EmptyTree(), want.Count == 0)
		n, hash, err := c.entries(ctx, want.ID, nil)
		if err != nil {
			return err
		}
		c.equal("entries of commits", want.ID, fmt.Sprint(n, " ", hash), fmt.Sprint(want.Count, " ", want.EntriesHash))
	}
	return nil
}

func byID(commits iter.Seq2[graveler.Commit, error]) (map[string]graveler.Commit, error) {
	got := map[string]graveler.Commit{}
	for c, err := range commits {
		if err != nil {
			return nil, err
		}
		got[string(c.ID)] = c
	}
	return got, nil
}

func fieldsOf(c graveler.Commit) string {
	var parents []string
	for _, p := range c.Parents {
		parents = append(parents, string(p))
	}
	return fmt.Sprintf("%q by %q at %s of %q with %q, generation %d", c.Message, c.Committer, c.CreatedAt.UTC(), parents, c.Metadata, c.Generation)
}

// fields are those of a commit that is carried over: the main parent comes first, and no metadata are empty metadata.
func (c commit) fields() string {
	parents := slices.Clone(c.Parents)
	if c.Version == 0 {
		slices.Reverse(parents)
	}
	return fmt.Sprintf("%q by %q at %s of %q with %q, generation %d", c.Message, c.Committer, c.CreationDate.UTC(), parents, c.Metadata, c.Generation)
}

// mergeBases compares them; where histories cross each other there are two best ones, of which either will do.
func (c *comparison) mergeBases(ctx context.Context) error {
	for _, m := range c.want.MergeBases {
		base, err := c.g.MergeBase(ctx, c.id, m.A, m.B)
		if err != nil {
			return err
		}
		got := string(base.ID)
		if crossed := []string{c.want.Names["c08"], c.want.Names["c09"]}; slices.Contains(crossed, got) && slices.Contains(crossed, m.Base) {
			got = m.Base
		}
		c.equal("merge bases", m.A+" "+m.B, got, m.Base)
	}
	return nil
}

func (c *comparison) diffs(ctx context.Context) error {
	for _, want := range c.want.Diffs {
		counts := map[string]int{}
		var lines []string
		for d, err := range c.g.Diff(ctx, c.id, want.Left, want.Right, graveler.DiffOptions{}) {
			if err != nil {
				return err
			}
			counts[changeType(d)]++
			lines = append(lines, fmt.Sprintf("%s\t%s\n", changeType(d), d.Key))
		}
		slices.Sort(lines)
		hash := sha256.Sum256([]byte(strings.Join(lines, "")))
		c.equal("diffs", want.Left+" "+want.Right, fmt.Sprint(counts["added"], counts["removed"], counts["changed"], " ", hex.EncodeToString(hash[:])),
			fmt.Sprint(want.Added, want.Removed, want.Changed, " ", want.Hash))
	}
	return nil
}
