// SPDX-License-Identifier: Apache-2.0

package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Schema is the version of the form of documents.
const Schema = 1

// ErrDocument: a file is not a document that this program understands.
var ErrDocument = errors.New("not a document of benchmark results")

// Document is what one call of the suite measured.
type Document struct {
	Schema  int       `json:"schema"`
	Began   time.Time `json:"began"`
	Took    float64   `json:"took"`
	Setting string    `json:"setting"`
	Rounds  int       `json:"rounds"`
	Seed    uint64    `json:"seed"`
	// ValueBytes is the size of a value, identity and data together.
	ValueBytes int               `json:"value_bytes"`
	Machine    Machine           `json:"machine"`
	Versions   map[string]string `json:"versions"`
	Runs       []*Run            `json:"runs"`
	Targets    []Verdict         `json:"targets,omitempty"`
	// Notes are what a reader must know: an engine that was left out, for one.
	Notes []string `json:"notes,omitempty"`
}

// Machine is what the benchmarks ran on.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"` // that the program used
	MemoryBytes int64  `json:"memory_bytes"`
	System      string `json:"system"`     // operating system and kernel
	Filesystem  string `json:"filesystem"` // that holds the stores
}

// Run is one workload on one engine.
type Run struct {
	Workload string `json:"workload"`
	// Variant tells runs of one workload apart, "" where there is one only.
	Variant string          `json:"variant,omitempty"`
	Engine  string          `json:"engine"`
	Params  json.RawMessage `json:"params"`
	// Durability is what a write waits for before it is acknowledged: the settings of engine and block storage.
	Durability map[string]string `json:"durability"`
	Began      time.Time         `json:"began"`
	Took       float64           `json:"took"`
	Metrics    []Metric          `json:"metrics"`
	Phases     []Phase           `json:"phases,omitempty"`
	Series     []Point           `json:"series,omitempty"`
	Counts     []Counts          `json:"counts,omitempty"`
	Memory     Memory            `json:"memory"`
	// Checked says what was found to be as it must be.
	Checked []string `json:"checked"`
	// Error is what ended the run; its figures are incomplete then, and nothing in it can be relied on.
	Error string `json:"error,omitempty"`
}

// Metric is a figure of a run. Where it was measured at several points of something, such as a number of goroutines, there is a
// metric of the same name for each.
type Metric struct {
	Name string  `json:"name"`
	Of   string  `json:"of,omitempty"` // what At is a number of
	At   float64 `json:"at,omitempty"`
	Unit Unit    `json:"unit"`
	// Reference: it is not the store's figure but one to compare with.
	Reference bool `json:"reference,omitempty"`
	// Samples are as measured, one for each repetition; the others follow from them.
	Samples []float64 `json:"samples"`
	Median  float64   `json:"median"`
	Min     float64   `json:"min"`
	Max     float64   `json:"max"`
}

// ID is what names the metric within its run.
func (m Metric) ID() string {
	if m.Of == "" {
		return m.Name
	}
	return fmt.Sprintf("%s, %s=%s", m.Name, m.Of, Count.Format(m.At))
}

// Phase is a part of a load.
type Phase struct {
	Name       string      `json:"name"`
	From       float64     `json:"from"` // since the load began
	To         float64     `json:"to"`
	Operations []Operation `json:"operations"`
}

// Operation says how often something was done in a phase, and how long it took. An operation counts where it ends.
type Operation struct {
	Name      string  `json:"name"`
	Count     int64   `json:"count"`
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50"`
	P90       float64 `json:"p90"`
	P99       float64 `json:"p99"`
	P999      float64 `json:"p999"`
	Max       float64 `json:"max"`
	// Histogram is all latencies, in microseconds, in the V2 compressed encoding of HdrHistogram.
	Histogram string `json:"histogram"`
}

// Point is an interval of a load: what ended in it of one operation.
type Point struct {
	Operation string  `json:"operation"`
	Until     float64 `json:"until"` // since the load began
	PerSecond float64 `json:"per_second"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
}

// Counts are the calls, bytes, files and syncs of one part of a run, by names that package measure explains.
type Counts struct {
	Part  string           `json:"part"`
	Calls map[string]int64 `json:"calls"`
}

// Memory is the anonymous memory of the process during a run: what it has taken for itself, without the pages of files that the
// kernel keeps for it. It is zero where the system does not tell.
type Memory struct {
	PeakBytes int64          `json:"peak_bytes"`
	Samples   []MemorySample `json:"samples,omitempty"`
}

// MemorySample is the anonymous memory at a moment.
type MemorySample struct {
	At    float64 `json:"at"` // since the run began
	Bytes int64   `json:"bytes"`
}

// Verdict is a target and what a document says about it.
type Verdict struct {
	Target   string `json:"target"`
	Workload string `json:"workload"`
	Engine   string `json:"engine"`
	Metric   string `json:"metric"`
	Unit     Unit   `json:"unit"`
	// AtLeast, or else AtMost, is what is aimed at.
	AtLeast  *float64 `json:"at_least,omitempty"`
	AtMost   *float64 `json:"at_most,omitempty"`
	Measured bool     `json:"measured"`
	Figure   float64  `json:"figure,omitempty"` // the median, or the largest where one may not be exceeded
	Min      float64  `json:"min,omitempty"`
	Max      float64  `json:"max,omitempty"`
	Met      bool     `json:"met"`
}

// Find returns a run, or nil.
func (d *Document) Find(workload, variant, engine string) *Run {
	i := slices.IndexFunc(d.Runs, func(r *Run) bool {
		return r.Workload == workload && r.Variant == variant && r.Engine == engine
	})
	if i < 0 {
		return nil
	}
	return d.Runs[i]
}

// Title is the workload with its variant.
func (r *Run) Title() string { return strings.TrimSuffix(r.Workload+", "+r.Variant, ", ") }

// Write writes the document as JSON.
func (d *Document) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// Read reads a document. What is none, or has another schema, is ErrDocument.
func Read(path string) (*Document, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d := &Document{}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", path, ErrDocument, err)
	}
	if d.Schema != Schema {
		return nil, fmt.Errorf("read %s: %w: its schema is %d, and this program knows %d", path, ErrDocument, d.Schema, Schema)
	}
	return d, nil
}
