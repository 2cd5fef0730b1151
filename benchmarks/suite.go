// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moraine-store/moraine/benchmarks/measure"
	"github.com/moraine-store/moraine/benchmarks/result"
	"github.com/moraine-store/moraine/internal/pgserver"
	"github.com/moraine-store/moraine/pkg/kv"
)

// maxValueBytes is far below what an entry can have: the suite is about many entries, not about large ones.
const maxValueBytes = 64 << 10

// ErrConfig: what is to be measured makes no sense. Nothing was run.
var ErrConfig = errors.New("cannot measure that")

// Config says what to measure on.
type Config struct {
	// Engines are those of Engines to run on, one after the other, each run with a new store in a temporary directory. PostgreSQL
	// is started for it, and left out, with a note, where it is not installed and other engines are given.
	Engines []string
	// Store is the URL of a store in the place of Engines, and Blocks of its block storage ("": files in a temporary directory).
	// It must be empty, nobody else may use it meanwhile, and it is empty again after each run.
	Store, Blocks string
	// Dir is where temporary directories are made; "": the usual place. Figures are those of the disk that holds it.
	Dir     string
	Setting Setting // for the record
	// Rounds is how often what is compared is measured, one after the other in turn.
	Rounds     int
	Seed       uint64
	ValueBytes int // identity and data together
	// Progress is told what begins; nil: nobody.
	Progress func(line string)
	// Self is the command line that calls Serve in another process of this program. Workloads with several processes need it.
	Self []string

	plant func(kv.Store) kv.Store // nil, or a fault between the store and the engine
}

// Run runs workloads, each on every engine, and returns what they measured. A run that fails, above all one whose store does not
// hold what it acknowledged (ErrWrong), does not keep the others from running: its error is in the document and is returned along
// with it. The document is nil where nothing was run.
func Run(ctx context.Context, c Config, workloads []Workload) (*result.Document, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	if c.Dir == "" {
		c.Dir = os.TempDir()
	}
	h := &host{dir: c.Dir}
	d, err := c.runAll(ctx, h, workloads)
	if len(d.Runs) == 0 {
		d = nil
	}
	return d, errors.Join(err, h.close())
}

func (c Config) runAll(ctx context.Context, h *host, workloads []Workload) (*result.Document, error) {
	began := time.Now()
	d := &result.Document{
		Schema: result.Schema, Began: began.UTC(), Setting: c.Setting.String(), Rounds: c.Rounds, Seed: c.Seed, ValueBytes: c.ValueBytes,
		Machine: measure.Machine(c.Dir), Versions: measure.Versions(),
	}
	engines := c.Engines
	if c.Store != "" {
		scheme, _, _ := strings.Cut(c.Store, ":")
		engines = []string{strings.ToLower(scheme)}
		if isSQL(c.Store) {
			engines = []string{"sql"}
		}
	}
	err := c.runEach(ctx, h, d, workloads, engines)
	if h.server != nil && !strings.HasPrefix(h.server.Directory(), c.Dir) {
		d.Notes = append(d.Notes, fmt.Sprintf("postgres keeps its files in %s, on %s: its user cannot get at %s.", filepath.Dir(h.server.Directory()), measure.Machine(h.server.Directory()).Filesystem, c.Dir))
	}
	d.Took = time.Since(began).Seconds()
	d.Targets = judge(d)
	return d, err
}

// runEach runs each workload on each engine, until ctx ends.
func (c Config) runEach(ctx context.Context, h *host, d *result.Document, workloads []Workload, engines []string) error {
	var errs []error
	for _, w := range workloads {
		for _, e := range engines {
			c.tell("%s on %s", w.Name, e)
			err := c.runOne(ctx, h, d, w, e)
			if errors.Is(err, pgserver.ErrNotInstalled) && len(engines) > 1 {
				d.Notes = append(d.Notes, fmt.Sprintf("postgres was left out: %v.", pgserver.ErrNotInstalled))
				engines = slices.DeleteFunc(slices.Clone(engines), func(o string) bool { return o == e })
				continue
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("%s on %s: %w", w.Name, e, err))
			}
			if ctx.Err() != nil {
				return errors.Join(errs...)
			}
		}
	}
	return errors.Join(errs...)
}

func (c Config) tell(format string, args ...any) {
	if c.Progress != nil {
		c.Progress(fmt.Sprintf(format, args...))
	}
}

// runOne runs a workload on an engine and adds its runs to the document.
func (c Config) runOne(ctx context.Context, h *host, d *result.Document, w Workload, engine string) (err error) {
	params, err := json.Marshal(w.parameters)
	if err != nil {
		return err
	}
	p, err := h.place(ctx, c, engine)
	if err != nil {
		return err
	}
	// What was begun is cleaned up also where ctx has ended.
	defer func() { err = errors.Join(err, p.remove(context.WithoutCancel(ctx))) }()
	b, err := openBench(ctx, c, p, result.Run{Workload: w.Name, Engine: engine, Params: params})
	if err != nil {
		return err
	}
	if b.version != "" {
		d.Versions["postgres"] = b.version
	}
	b.begin("")
	err = w.run(ctx, b)
	err = errors.Join(err, b.close(context.WithoutCancel(ctx)))
	if errors.Is(err, ErrConfig) {
		b.end()
		return err
	}
	if err != nil {
		b.run.Error = err.Error()
	}
	d.Runs = append(d.Runs, b.end()...)
	return err
}
