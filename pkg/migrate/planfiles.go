// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// A plan looks at all trees of a repository if these have at most so many metaranges and ranges. Otherwise it looks at those that
// branches and tags show.
const (
	plannedTrees  = 10_000
	plannedRanges = 1 << 20
)

// shownRefs is how many branches and tags a plan names that show a file which cannot be read.
const shownRefs = 5

// planFiles looks at the files of one repository of lakeFS.
type planFiles struct {
	*planning
	origin *origin
	shown  map[int32][]string // by tree the branches and tags that show it
	named  map[string]int32   // the files that trees have: a tree that has them
	sound  int                // metaranges that could be read
	unread []unreadFile
}

// unreadFile is one that could not be read, or is not there.
type unreadFile struct {
	Lost
	tree   int32 // one that has it
	reason error
}

// files looks at the metaranges of a repository: those that are shown, or with everything all of them, and then which ranges there are.
func (p *planning) files(ctx context.Context, o *origin, shown map[int32][]string) error {
	f := &planFiles{planning: p, origin: o, shown: shown, named: map[string]int32{}}
	trees := slices.Sorted(maps.Keys(shown))
	all := p.everything && len(o.history.metaranges) <= plannedTrees
	if all {
		trees = make([]int32, len(o.history.metaranges))
		for i := range trees {
			trees[i] = int32(i)
		}
	}
	for _, tree := range trees {
		if err := f.metarange(ctx, tree); err != nil {
			return err
		}
		all = all && len(f.named) <= plannedRanges
		if !all {
			clear(f.named)
		}
	}
	if all && f.sound > 0 {
		if err := f.list(ctx); err != nil {
			return err
		}
	} else if p.everything && !all {
		p.Unlisted = append(p.Unlisted, o.id)
	}
	if all && len(f.unread) > 0 {
		if err := f.measure(ctx); err != nil {
			return err
		}
	}
	return f.report(ctx)
}

func (f *planFiles) metarange(ctx context.Context, tree int32) error {
	id := f.origin.history.metaranges[tree]
	ranges, err := f.source.trees.Ranges(ctx, f.origin.namespace, id)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.named[id] = tree
	if err != nil {
		f.unreadable(id, tree, err)
		return nil
	}
	f.sound++
	for _, r := range ranges {
		f.named[r.ID] = tree
	}
	return nil
}

func (f *planFiles) unreadable(id string, tree int32, reason error) {
	l := Lost{Repository: f.origin.id, File: id, Reason: reason.Error(), Commit: f.commitOf(tree)}
	f.unread = append(f.unread, unreadFile{l, tree, reason})
}

// list looks which files there are, and whether one is too small to be whole. What is left in named afterwards is missing.
func (f *planFiles) list(ctx context.Context) error {
	files, err := f.source.trees.files(ctx, f.origin.namespace)
	if err != nil {
		return err
	}
	others, orphans := int64(0), int64(0)
	for file, err := range files.List(ctx) {
		tree, wanted := f.named[file.ID]
		switch {
		case err != nil:
			return err
		case file.ID == "":
			others++
		case !wanted:
			orphans++
		case file.Damage != nil && file.ID != f.origin.history.metaranges[tree]: // else it was read
			f.unreadable(file.ID, tree, asCorrupt(file.Damage))
		}
		delete(f.named, file.ID)
	}
	if orphans > 0 {
		f.leave(LeftBehind{Table: filesTable, Owner: "repository " + f.origin.id, What: "no tree has them", Rows: orphans})
	}
	if others > 0 {
		f.leave(LeftBehind{Table: filesTable, Owner: "repository " + f.origin.id, What: "they are neither ranges nor metaranges (older versions kept branch protection there)", Rows: others})
	}
	for _, id := range slices.Sorted(maps.Keys(f.named)) {
		if tree := f.named[id]; id != f.origin.history.metaranges[tree] {
			f.unreadable(id, tree, asCorrupt(fmt.Errorf("range %s: %w: it is not in %s", id, lakefs.ErrMissing, files.Folder())))
		}
	}
	return nil
}

// measure finds out what the files have that could not be read: which keys the metaranges say, and how many commits have them.
func (f *planFiles) measure(ctx context.Context) error {
	places := map[string]int{}
	for i, u := range f.unread {
		places[u.File] = i
	}
	commits := make([]int, len(f.origin.history.metaranges))
	for _, c := range f.origin.history.commits {
		if c.tree != noTree {
			commits[c.tree]++
		}
	}
	count := func(l *Lost, tree int32) {
		l.Commits += commits[tree]
		names := f.shown[tree]
		l.Refs = append(l.Refs, names[:min(len(names), shownRefs-len(l.Refs))]...)
		slices.Sort(l.Refs)
	}
	for at, id := range f.origin.history.metaranges {
		tree := int32(at)
		if i, unread := places[id]; unread {
			count(&f.unread[i].Lost, tree)
			continue
		}
		ranges, err := f.source.trees.Ranges(ctx, f.origin.namespace, id)
		if err != nil {
			return err // it could be read just now
		}
		for _, r := range ranges {
			if i, unread := places[r.ID]; unread {
				l := &f.unread[i].Lost
				l.Entries, l.First, l.Last = r.Count, r.First, r.Last
				count(l, tree)
			}
		}
	}
	return nil
}

// report notes what cannot be read as refused, or as lost.
func (f *planFiles) report(ctx context.Context) error {
	if len(f.unread) == 0 {
		return nil
	}
	nothing, err := f.nothing(ctx)
	if err != nil || nothing {
		return err
	}
	for _, u := range f.unread {
		if f.AllowMissing && errors.Is(u.reason, graveler.ErrCorrupt) {
			f.lose(u.Lost)
			continue
		}
		reason := u.reason
		if u.Commits > 0 {
			reason = fmt.Errorf("%w (%s)", reason, u.what())
		}
		f.note(f.origin.rowError(commitItem, string(u.Commit), reason))
		if f.sound == 0 {
			return nil // the others are hardly different
		}
	}
	return nil
}

// nothing refuses a repository of which no file is there, unless it was said to have lost them all: they are rather in another
// place. One that cannot be opened was noted with each file.
func (f *planFiles) nothing(ctx context.Context) (bool, error) {
	if f.sound > 0 || f.AllowMissing && slices.Contains(f.AllLost, f.origin.id) {
		return false, nil
	}
	files, err := f.source.trees.files(ctx, f.origin.namespace)
	if err != nil {
		return false, ctx.Err()
	}
	for file, err := range files.List(ctx) {
		if err != nil || file.ID != "" {
			return false, err
		}
	}
	reason := fmt.Errorf("%w: %w in %s", lakefs.ErrMissing, ErrNoFiles, files.Folder())
	f.note(&RowError{Table: filesTable, Repository: f.origin.id, Reason: reason})
	return true, nil
}

// commitOf names a commit that shows a tree.
func (f *planFiles) commitOf(tree int32) graveler.CommitID {
	at := slices.IndexFunc(f.origin.history.commits, func(c historyCommit) bool { return c.tree == tree })
	return f.origin.history.id(int32(at))
}

// filesTable stands for range files in what is left behind.
const filesTable = "files"
