// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/moraine-store/moraine/benchmarks/result"
)

// Latencies are kept in microseconds up to an hour: of phases with three significant digits, of intervals with two.
const (
	maxLatency     = int64(time.Hour / time.Microsecond)
	phaseDigits    = 3
	intervalDigits = 2
)

// Recorder divides what a load does into phases, which whoever leads the load begins, and into intervals of equal length. It is
// safe for concurrent use.
type Recorder struct {
	every time.Duration

	mu       sync.Mutex
	start    time.Time
	phases   []*phase
	interval *interval
	points   []result.Point
}

type phase struct {
	name     string
	from, to time.Duration
	ops      latencies
}

func newPhase(name string, from time.Duration) *phase {
	return &phase{name: name, from: from, ops: newLatencies(phaseDigits)}
}

type interval struct {
	number int64
	ops    latencies
}

// latencies are those of each operation; names has them in the order in which they were first seen.
type latencies struct {
	digits int
	names  []string
	of     map[string]*hdrhistogram.Histogram
}

func newLatencies(digits int) latencies {
	return latencies{digits: digits, of: map[string]*hdrhistogram.Histogram{}}
}

func (l *latencies) histogram(op string) *hdrhistogram.Histogram {
	h := l.of[op]
	if h == nil {
		h = hdrhistogram.New(1, maxLatency, l.digits)
		l.names = append(l.names, op)
		l.of[op] = h
	}
	return h
}

// NewRecorder returns a recorder whose time begins now, in a phase of the given name.
func NewRecorder(every time.Duration, name string) *Recorder {
	return &Recorder{every: every, start: time.Now(), interval: &interval{ops: newLatencies(intervalDigits)}, phases: []*phase{newPhase(name, 0)}}
}

// Begin ends the current phase and begins another.
func (r *Recorder) Begin(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.start)
	r.phases[len(r.phases)-1].to = now
	r.phases = append(r.phases, newPhase(name, now))
}

// Add records an operation that ends now. from is when it began, or when it was due where a load is paced: what it then had to
// wait for its turn counts. It fails where the clock makes no sense.
func (r *Recorder) Add(op string, from time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	took := max(now.Sub(from).Microseconds(), 1)
	r.advance(int64(now.Sub(r.start) / r.every))
	err := r.phases[len(r.phases)-1].ops.histogram(op).RecordValue(took)
	if err == nil {
		err = r.interval.ops.histogram(op).RecordValue(took)
	}
	if err != nil {
		return fmt.Errorf("record a latency of %d µs: %w", took, err)
	}
	return nil
}

// advance makes points of the intervals before one. Those in which nothing ended show a standstill, and are points too.
func (r *Recorder) advance(to int64) {
	for ; r.interval.number < to; r.interval.number++ {
		for _, op := range r.interval.ops.names {
			h := r.interval.ops.of[op]
			r.points = append(r.points, result.Point{
				Operation: op, Until: (time.Duration(r.interval.number+1) * r.every).Seconds(),
				PerSecond: float64(h.TotalCount()) / r.every.Seconds(), P50: quantile(h, 50), P99: quantile(h, 99),
			})
			h.Reset()
		}
	}
}

func quantile(h *hdrhistogram.Histogram, percent float64) float64 {
	if h.TotalCount() == 0 {
		return 0
	}
	return seconds(h.ValueAtPercentile(percent))
}

func seconds(microseconds int64) float64 { return float64(microseconds) / 1e6 }

// Finish ends the last phase and returns everything. The interval that was under way is left out of the series.
func (r *Recorder) Finish() ([]result.Phase, []result.Point, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Since(r.start)
	r.phases[len(r.phases)-1].to = now
	r.advance(int64(now / r.every))
	var phases []result.Phase
	for _, p := range r.phases {
		out := result.Phase{Name: p.name, From: p.from.Seconds(), To: p.to.Seconds()}
		for _, op := range p.ops.names {
			o, err := operation(op, p.ops.of[op], out.To-out.From)
			if err != nil {
				return nil, nil, err
			}
			out.Operations = append(out.Operations, o)
		}
		phases = append(phases, out)
	}
	return phases, r.points, nil
}

func operation(name string, h *hdrhistogram.Histogram, took float64) (result.Operation, error) {
	encoded, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return result.Operation{}, fmt.Errorf("encode the latencies of %s: %w", name, err)
	}
	return result.Operation{
		Name: name, Count: h.TotalCount(), PerSecond: float64(h.TotalCount()) / took,
		P50: quantile(h, 50), P90: quantile(h, 90), P99: quantile(h, 99), P999: quantile(h, 99.9), Max: seconds(h.Max()),
		Histogram: string(encoded),
	}, nil
}
