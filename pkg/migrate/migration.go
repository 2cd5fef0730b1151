// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Migration moves the tables of one PostgreSQL database into one store. It holds no connection between calls, and its methods may be called from different processes and machines.
type Migration struct {
	// Source is the URL of the database. Nothing is ever written there, but for the marker of package cutover.
	Source string
	// KV is the target, and Graveler the versioned store on it.
	KV       kv.Store
	Graveler *graveler.Graveler
	// InPlace leaves the range files of each repository where they are; they belong to the target from then on, which removes what it needs no more. That is only for tables that were cut over: ErrNotCutOver. Otherwise they are copied
	// into a folder of the repository's own, and both sides live on side by side.
	InPlace bool
	// Formats read the trees of repositories whose metaranges are not Moraine's own files.
	Formats []TreeFormat
	// Workers is how many repositories are read at a time, each over its own connection; 0: 4.
	Workers int
	// Progress, if it is not nil, is told now and then how far Run or Verify has come, by one goroutine at a time.
	Progress func(Progress)

	checkpoint uint64 // after how many items one is made; 0: defaultCheckpoint
}

// Progress says how far a run has come.
type Progress struct {
	// Rows are those of commits, tags, branches and staged entries that are done, of all in the source that are to be carried over.
	Rows, Of int64
	// Repositories are those that are done, of all.
	Repositories, OfRepositories int
}

// TreeFormat reads trees whose files are not Moraine's own.
type TreeFormat interface {
	// Name is what people call the format.
	Name() string
	// Recognizes reports whether a metarange in a namespace is of this format.
	Recognizes(ctx context.Context, namespace, metarange string) (bool, error)
	// Entries opens a tree, by strictly ascending key. Who gets it closes it.
	Entries(ctx context.Context, namespace, metarange string) (graveler.Iterator[graveler.Entry], error)
}

const (
	defaultWorkers = 4
	// reportRows is after how many rows progress is told.
	reportRows = 1000
)

func (m *Migration) workers() int {
	if m.Workers > 0 {
		return m.Workers
	}
	return defaultWorkers
}

func (m *Migration) checkpointItems() uint64 {
	if m.checkpoint > 0 {
		return m.checkpoint
	}
	return defaultCheckpoint
}

func (m *Migration) records() records                { return records{m.KV} }
func (m *Migration) refs() *ref.Store                { return ref.New(m.KV) }
func (m *Migration) staging() *staging.Store         { return staging.New(m.KV) }
func (m *Migration) emptyTree() graveler.MetaRangeID { return m.Graveler.EmptyTree() }

// formatOf says who reads the trees of a repository, by one of its metaranges; nil: they are Moraine's own files.
func (m *Migration) formatOf(ctx context.Context, namespace, metarange string) (TreeFormat, error) {
	err := m.Graveler.CheckRoot(ctx, namespace, graveler.MetaRangeID(metarange))
	if err == nil {
		return nil, nil
	}
	for _, f := range m.Formats {
		yes, formatErr := f.Recognizes(ctx, namespace, metarange)
		if formatErr != nil {
			return nil, fmt.Errorf("look at metarange %s as %s: %w", quoted(metarange), f.Name(), formatErr)
		}
		if yes {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%w: metarange %s in %s: %w", ErrForeignTrees, quoted(metarange), place(namespace), err)
}

// place shows a namespace. A path has nothing to hide.
func place(namespace string) string {
	if strings.Contains(namespace, ":") {
		return kv.Redact(namespace)
	}
	return quoted(namespace)
}

// now is the end of the time that may be made up.
func now() time.Time { return time.Now() }
