// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"errors"
	"fmt"
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

// mark returns the files of all trees that are kept, and whether they must be there: of the commits that have not expired, or not for so long that whoever began to look at them then may still be at it; of the bases of
// branches. Of a commit that has expired, and would be kept by rules that were changed since, or by a pin that came too late, what is left is kept.
func (r *retaining) mark(ctx context.Context) (map[string]bool, error) {
	files := map[string]bool{}
	walk := func(tree MetaRangeID) error {
		return r.g.trees.Walk(ctx, r.repo.Namespace, tree, func(f TreeFile) (bool, error) {
			isNew := !files[f.ID]
			files[f.ID] = true
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
				files[f.ID] = false
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

// sweeping is the last part of a run.
type sweeping struct {
	*retaining
	kept   map[string]bool // IDs of files, and whether they must be there
	going  []string        // IDs of files that are to be removed
	others []string        // IDs of files that stay for their age only
	sizes  map[string]int64
	staged map[valueID]bool // values that are uncommitted somewhere
	// lost are files that go which could not be read a second time.
	lost map[string]bool
}

// list finds the files that are not kept.
func (s *sweeping) list(ctx context.Context) error {
	s.sizes = map[string]int64{}
	before := s.files.Add(-FileGrace)
	missing := 0
	for _, needed := range s.kept {
		if needed {
			missing++
		}
	}
	for f, err := range s.g.trees.ListFiles(ctx, s.repo.Namespace) {
		switch {
		case err != nil:
			return err
		case f.ID == "":
			continue
		}
		switch needed, kept := s.kept[f.ID]; {
		case kept:
			s.report.FilesKept++
			if needed {
				missing--
			}
		case s.params.DryRun || f.ModTime.Before(before):
			s.going = append(s.going, f.ID)
			s.sizes[f.ID] = f.Size
		default:
			s.others = append(s.others, f.ID)
			s.report.FilesWaiting++
		}
	}
	if missing > 0 {
		return fmt.Errorf("%w: %d files of trees are missing, nothing is removed", ErrCorrupt, missing)
	}
	if s.params.DryRun {
		s.count(s.going)
	}
	return nil
}

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
