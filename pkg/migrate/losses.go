// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

// String says what is lost, and how much that is.
func (l Lost) String() string {
	return fmt.Sprintf("repository %s: %s (%s)", quoted(l.Repository), l.Reason, l.what())
}

// what says how much is lost with a file.
func (l Lost) what() string {
	text := "all entries of a tree"
	if l.Entries > 0 {
		text = fmt.Sprintf("%d entries from %s to %s", l.Entries, quoted(string(l.First)), quoted(string(l.Last)))
	}
	switch {
	case l.Commits == 1:
		text += ", of 1 commit"
	case l.Commits > 1:
		text += fmt.Sprintf(", of %d commits", l.Commits)
	case l.Commit != "":
		text += ", first of commit " + string(l.Commit)
	}
	if len(l.Refs) > 0 {
		text += ", shown by " + strings.Join(l.Refs, ", ")
	}
	return text
}

// readable reports whether a file that was left out can be read now.
func (l Lost) readable(ctx context.Context, format TreeFormat, namespace string) (bool, error) {
	var err error
	if l.Entries > 0 {
		_, err = format.Entries(ctx, namespace, Range{ID: l.File, First: l.First, Last: l.Last, Count: l.Entries})
	} else {
		_, err = format.Ranges(ctx, namespace, l.File)
	}
	if errors.Is(err, graveler.ErrCorrupt) {
		return false, nil
	}
	return err == nil, err
}

// losses are files of a repository's trees that are left out.
type losses struct {
	files map[string]Lost // by ID
	// note is told of another one; nil where none may be lost.
	note func(context.Context, Lost) error
}

func (l *losses) has(id string) bool {
	_, lost := l.files[id]
	return lost
}

// add loses a file that cannot be read, if err means that it is missing or damaged and that is allowed. Otherwise it returns err.
func (l *losses) add(ctx context.Context, file Lost, err error) error {
	if !errors.Is(err, graveler.ErrCorrupt) || l.note == nil {
		return err
	}
	file.Reason = err.Error()
	if err := l.note(ctx, file); err != nil {
		return err
	}
	l.files[file.File] = file
	return nil
}

// losses returns what an earlier run has left out. If some of it need not, or may not, be left out any more, what that run has
// made must be made anew.
func (c *copying) losses(ctx context.Context) (*losses, error) {
	files, err := c.records().losses(ctx, c.note.Uid)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 && !c.AllowMissing {
		return nil, errChangedBelow
	}
	for _, lost := range files {
		there, err := lost.readable(ctx, c.format, c.origin.namespace)
		if err != nil {
			return nil, err
		}
		if there {
			return nil, errChangedBelow
		}
	}
	l := &losses{files: files}
	if c.AllowMissing {
		l.note = func(ctx context.Context, lost Lost) error {
			return c.records().putLoss(ctx, c.note.Uid, lost.File, &migratepb.LostFileData{
				Repository: c.note.Repository, Reason: lost.Reason, First: lost.First, Last: lost.Last, Entries: lost.Entries, Commit: string(lost.Commit),
			})
		}
	}
	return l, nil
}
