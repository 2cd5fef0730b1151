// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// sweep removes the files that no tree has which is kept, and tells of the values that go with them.
func (r *retaining) sweep(ctx context.Context) error {
	kept, err := r.mark(ctx)
	if err != nil {
		return err
	}
	s := sweeping{retaining: r, kept: kept}
	if r.params.Release != nil {
		if err := s.rememberStaged(ctx); err != nil {
			return err
		}
	}
	// What is staged was read before: what has been committed since has its files by now.
	if err := s.list(ctx); err != nil {
		return err
	}
	// In a repository that is being deleted there is less than there was. Nothing of that has been released.
	if err := r.g.stillThere(ctx, r.repo); err != nil {
		return err
	}
	if r.params.Release != nil {
		if err := s.release(ctx); err != nil {
			return err
		}
	}
	if r.params.DryRun || len(s.going) == 0 {
		return nil
	}
	if r.params.BeforeRemoval != nil {
		if err := r.params.BeforeRemoval(); err != nil {
			return err
		}
	}
	return s.remove(ctx)
}

// mark returns the files of all trees that are kept, and whether they must be there: of the commits that have not expired, or not
// for so long that whoever began to look at them then may still be at it; of the bases of branches. Of a commit that has expired,
// and would be kept by rules that were changed since, or by a pin that came too late, what is left is kept.
func (r *retaining) mark(ctx context.Context) (map[string]keptFile, error) {
	files := map[string]keptFile{}
	walk := func(tree MetaRangeID) error {
		return r.g.trees.Walk(ctx, r.repo.Namespace, tree, func(f TreeFile) (bool, error) {
			isNew := !files[f.ID].needed
			files[f.ID] = keptFile{needed: true}
			return isNew, nil
		})
	}
	for _, c := range r.history.commits {
		if !r.keepsTree(c) {
			continue
		}
		if err := walk(c.tree); err != nil {
			return nil, fmt.Errorf("tree of commit %s: %w", c.id, err)
		}
	}
	for _, b := range r.bases {
		if err := walk(b.Base); err != nil {
			return nil, fmt.Errorf("uncommitted changes of branch %s: %w", b.ID, err)
		}
	}
	walkWhatIsLeft := func(tree MetaRangeID) error {
		err := r.g.trees.Walk(ctx, r.repo.Namespace, tree, func(f TreeFile) (bool, error) {
			_, known := files[f.ID]
			if !known {
				files[f.ID] = keptFile{}
			}
			return !known, nil
		})
		if unreadable(err) {
			return nil
		}
		return err
	}
	for _, c := range r.history.commits {
		if !c.kept || r.keepsTree(c) {
			continue
		}
		if err := walkWhatIsLeft(c.tree); err != nil {
			return nil, fmt.Errorf("tree of commit %s: %w", c.id, err)
		}
	}
	for _, p := range r.pins {
		for _, tree := range p.Trees {
			if err := walkWhatIsLeft(tree); err != nil {
				return nil, fmt.Errorf("pin of %s: %w", p.Owner, err)
			}
		}
	}
	return files, nil
}

func (r *retaining) keepsTree(c pastCommit) bool {
	e, known := r.expired[c.id]
	expired := known && !e.Pending
	if r.params.DryRun {
		return c.kept && !expired
	}
	return !expired || e.At > r.now.Add(-FileGrace).UnixNano()
}

// keptFile is a file that some tree has which is kept.
type keptFile struct {
	needed bool // it must be there
	listed bool // it is
}

// sweeping is the last part of a run.
type sweeping struct {
	*retaining
	kept   map[string]keptFile // by ID
	going  []string            // IDs of files that are to be removed
	others []string            // IDs of files that stay for their age only
	sizes  map[string]int64
	staged map[valueID]bool // values that are uncommitted somewhere
	// lost are files that go which could not be read a second time.
	lost map[string]bool
}

// list finds the files that are not kept.
func (s *sweeping) list(ctx context.Context) error {
	s.sizes = map[string]int64{}
	before := s.files.Add(-FileGrace)
	for f, err := range s.g.trees.ListFiles(ctx, s.repo.Namespace) {
		switch {
		case err != nil:
			return err
		case f.ID == "":
			continue
		}
		switch known, kept := s.kept[f.ID]; {
		case kept:
			s.report.FilesKept++
			known.listed = true
			s.kept[f.ID] = known
		case s.params.DryRun || f.ModTime.Before(before):
			s.going = append(s.going, f.ID)
			s.sizes[f.ID] = f.Size
		default:
			s.others = append(s.others, f.ID)
			s.report.FilesWaiting++
		}
	}
	if err := s.missing(); err != nil {
		return err
	}
	if s.params.DryRun {
		s.count(s.going)
	}
	return nil
}

// missing returns an error that names files which must be there and are not.
func (s *sweeping) missing() error {
	var missing []string
	for id, f := range s.kept {
		if f.needed && !f.listed {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	what, names := fmt.Sprintf("%d files of trees are", len(missing)), strings.Join(missing[:min(len(missing), missingNamed)], ", ")
	switch {
	case len(missing) == 0:
		return nil
	case len(missing) == 1:
		what = "1 file of a tree is"
	case len(missing) > missingNamed:
		names += " and others"
	}
	return fmt.Errorf("%w: %s missing, nothing is removed: %s", ErrCorrupt, what, names)
}

// missingNamed is how many missing files an error names.
const missingNamed = 3

func (s *sweeping) count(removed []string) {
	for _, id := range removed {
		s.report.FilesRemoved++
		s.report.BytesRemoved += s.sizes[id]
	}
}

func (s *sweeping) remove(ctx context.Context) error {
	removed, err := s.g.trees.RemoveFiles(ctx, s.repo.Namespace, s.going, s.files.Add(-FileGrace))
	s.count(removed)
	if err != nil {
		return fmt.Errorf("remove files: %w", err)
	}
	return nil
}

// unreadable reports whether a file is damaged, or has been removed by somebody else.
func unreadable(err error) bool { return errors.Is(err, ErrCorrupt) }
