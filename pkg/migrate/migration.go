// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
)

// Migration moves the tables of one PostgreSQL database into one store. It holds no connection between calls, and its methods may
// be called from different processes and machines.
type Migration struct {
	// Source is the URL of the database: postgres: or sql+postgres: for tables, lakefs+postgres: for what lakeFS keeps, in tables
	// or as keys and values. Nothing is ever written there, but for the marker of package cutover.
	Source string
	// SourceBlocks is where the range files of lakeFS are: the URL of a folder in which each namespace has the place that it has
	// behind its "://". "": where the namespaces say. BlockEngines are what these URLs may name.
	SourceBlocks string
	BlockEngines block.Engines
	// AllowMissing leaves range files of lakeFS that are missing or damaged out, and their entries with them; of a metarange all
	// of its tree. What is lost is noted in the target: see Status. Otherwise a run stops there.
	AllowMissing bool
	// AllLost are the repositories of lakeFS of which AllowMissing may find no file at all. Others of which there is none are
	// refused: the files are rather elsewhere.
	AllLost []string
	// KV is the target, and Graveler the versioned store on it.
	KV       kv.Store
	Graveler *graveler.Graveler
	// OpenTarget, if it is not nil, makes the target: Run calls it once its plan is accepted, and goes on with what it returns,
	// which stays the caller's to close. Until then KV and Graveler stand for the target, and are only read. So a run that is
	// refused leaves nothing behind.
	OpenTarget func(ctx context.Context) (kv.Store, *graveler.Graveler, error)
	// InPlace leaves the range files of each repository where they are; they belong to the target from then on, which removes
	// what it needs no more. That is only for tables that were cut over: ErrNotCutOver. Otherwise they are copied into a folder
	// of the repository's own, and both sides live on side by side.
	InPlace bool
	// Formats read the trees of repositories whose metaranges are not Moraine's own files. That of lakeFS need not be among them.
	Formats []KnownFormat
	// Workers is how many repositories are read at a time, each over its own connection; 0: 4.
	Workers int
	// Progress, if it is not nil, is told now and then how far Run or Verify has come, by one goroutine at a time.
	Progress func(Progress)

	checkpoint     uint64        // after how many items one is made; 0: defaultCheckpoint
	checkpointWait time.Duration // after how long one is made; 0: checkpointEvery
}

// Progress says how far a run has come.
type Progress struct {
	// Rows are those of commits, tags, branches and staged entries that are done, and the trees that were converted, of all in
	// the source that are to be carried over.
	Rows, Of int64
	// Repositories are those that are done, of all.
	Repositories, OfRepositories int
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

func (m *Migration) checkpointTime() time.Duration {
	if m.checkpointWait > 0 {
		return m.checkpointWait
	}
	return checkpointEvery
}

func (m *Migration) records() records                { return records{m.KV} }
func (m *Migration) refs() *ref.Store                { return ref.New(m.KV) }
func (m *Migration) staging() *staging.Store         { return staging.New(m.KV) }
func (m *Migration) emptyTree() graveler.MetaRangeID { return m.Graveler.EmptyTree() }

// place shows a namespace. A path has nothing to hide.
func place(namespace string) string {
	if strings.Contains(namespace, ":") {
		return kv.Redact(namespace)
	}
	return quoted(namespace)
}

// now is the end of the time that may be made up.
func now() time.Time { return time.Now() }
