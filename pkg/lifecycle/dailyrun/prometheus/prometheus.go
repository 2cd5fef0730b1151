// SPDX-License-Identifier: Apache-2.0

// Package prometheus makes metrics of lifecycle passes. It is apart from package dailyrun so that who wants none does not link Prometheus.
package prometheus

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

// Metrics is an observer of passes. Its metrics change only when a pass has been saved, and are of this process. It is safe for concurrent use.
type Metrics struct {
	cursor, walked     *prometheus.GaugeVec
	duration           *prometheus.SummaryVec
	events, dispatched *prometheus.CounterVec
	wait               prometheus.Summary
	blocked, waiting   *prometheus.GaugeVec
}

var _ dailyrun.Observer = (*Metrics)(nil)

// New returns metrics that are registered, or the error of that.
func New(r prometheus.Registerer) (*Metrics, error) {
	shard := []string{"shard"}
	m := &Metrics{
		cursor: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "s3_lifecycle_cursor_min_ts_ns", Help: "Time of the latest pass up to which everything that was due in the shard has been done, in nanoseconds since the epoch; 0: none.",
		}, shard),
		walked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "s3_lifecycle_daily_run_last_walked_ns", Help: "When the last walks that have ended began, the oldest of them, in nanoseconds since the epoch; 0: none has.",
		}, shard),
		duration: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: "s3_lifecycle_daily_run_shard_duration_seconds", Help: "How long passes worked on the shard, together with others.",
		}, shard),
		events: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "s3_lifecycle_daily_run_events_scanned_total", Help: "Changes and candidates that passes looked at.",
		}, shard),
		wait: prometheus.NewSummary(prometheus.SummaryOpts{
			Name: "s3_lifecycle_dispatch_limiter_wait_seconds", Help: "How long passes waited for the limiter of deletions.",
		}),
		dispatched: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "s3_lifecycle_dispatch_total", Help: "What was due, and what came of it.",
		}, []string{"bucket", "kind", "outcome"}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "s3_lifecycle_blocked_lanes", Help: "Lanes of shards, and walks, that stand before something that could not be carried out.",
		}, []string{"bucket", "branch"}),
		waiting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "s3_lifecycle_waiting_until_ns", Help: "When the next object falls due, as far as is known, in nanoseconds since the epoch; 0: none is waiting.",
		}, []string{"bucket", "branch"}),
	}
	for _, c := range []prometheus.Collector{m.cursor, m.walked, m.duration, m.events, m.wait, m.dispatched, m.blocked, m.waiting} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Saved implements [dailyrun.Observer].
func (m *Metrics) Saved(r *dailyrun.Report) {
	for _, s := range r.Shards {
		shard := strconv.Itoa(s.Shard)
		m.cursor.WithLabelValues(shard).Set(nanoseconds(s.Time))
		m.walked.WithLabelValues(shard).Set(nanoseconds(s.LastWalked))
		m.duration.WithLabelValues(shard).Observe(s.Took.Seconds())
		m.events.WithLabelValues(shard).Add(float64(s.Events))
	}
	m.wait.Observe(r.Waited.Seconds())
	for d, n := range r.Outcomes {
		m.dispatched.WithLabelValues(string(d.Repository), d.Kind.String(), d.Outcome.String()).Add(float64(n))
	}
	m.blocked.Reset()
	m.waiting.Reset()
	for _, s := range r.Sources {
		m.blocked.WithLabelValues(string(s.Repository), string(s.Branch)).Set(float64(s.Blocked))
		m.waiting.WithLabelValues(string(s.Repository), string(s.Branch)).Set(nanoseconds(s.WaitingUntil))
	}
}

func nanoseconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixNano())
}
