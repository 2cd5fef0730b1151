// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// A plan looks at all trees of a repository if these have at most so many metaranges and ranges. Otherwise it looks at those that branches and tags show.
const (
	plannedTrees  = 10_000
	plannedRanges = 1 << 20
)

// planFiles looks at the files of one repository of lakeFS.
type planFiles struct {
	*planning
	origin *origin
	named  map[string]int32 // the files that trees have: a tree that has them
	sound  int              // metaranges that could be read
	lost   []lostFile
}

type lostFile struct {
	tree   int32
	id     string
	reason error
}

// files looks at the metaranges of a repository: those that are shown, or with everything all of them, and then which ranges there are.
func (p *planning) files(ctx context.Context, o *origin, shown []int32) error {
	f := &planFiles{planning: p, origin: o, named: map[string]int32{}}
	all := p.everything && len(o.history.metaranges) <= plannedTrees
	if all {
		shown = make([]int32, len(o.history.metaranges))
		for i := range shown {
			shown[i] = int32(i)
		}
	}
	for _, tree := range shown {
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
		f.lost = append(f.lost, lostFile{tree, id, err})
		return nil
	}
	f.sound++
	for _, r := range ranges {
		f.named[r.ID] = tree
	}
	return nil
}

// list looks which files there are. What is left in named afterwards is missing.
func (f *planFiles) list(ctx context.Context) error {
	files, err := f.source.trees.files(ctx, f.origin.namespace)
	if err != nil {
		return err
	}
	others, orphans := int64(0), int64(0)
	for file, err := range files.List(ctx) {
		switch _, wanted := f.named[file.ID]; {
		case err != nil:
			return err
		case file.ID == "":
			others++
		case !wanted:
			orphans++
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
			f.lost = append(f.lost, lostFile{tree, id, fmt.Errorf("%w: range %s in %s is missing", graveler.ErrCorrupt, id, place(f.origin.namespace))})
		}
	}
	return nil
}

// report notes what is lost. Where there are no files at all it is rather another place that they are in.
func (f *planFiles) report(ctx context.Context) error {
	found := false
	if f.AllowMissing && len(f.lost) > 0 {
		var err error
		if found, err = f.anyFile(ctx); err != nil {
			return err
		}
	}
	for _, l := range f.lost {
		if found && errors.Is(l.reason, graveler.ErrCorrupt) {
			f.lose(Lost{Repository: f.origin.id, File: l.id, Reason: l.reason.Error()})
			continue
		}
		f.note(f.origin.rowError(commitItem, f.commitOf(l.tree), l.reason))
		if f.sound == 0 {
			return nil // the others are hardly different
		}
	}
	return nil
}

// anyFile reports whether there is a range file where they are looked for. A place that cannot be opened was noted with each of them.
func (f *planFiles) anyFile(ctx context.Context) (bool, error) {
	files, err := f.source.trees.files(ctx, f.origin.namespace)
	if err != nil {
		return false, ctx.Err()
	}
	for file, err := range files.List(ctx) {
		if err != nil || file.ID != "" {
			return err == nil, err
		}
	}
	return false, nil
}

// commitOf names a commit that shows a tree.
func (f *planFiles) commitOf(tree int32) string {
	at := slices.IndexFunc(f.origin.history.commits, func(c historyCommit) bool { return c.tree == tree })
	return string(f.origin.history.id(int32(at)))
}

// filesTable stands for range files in what is left behind.
const filesTable = "files"
