// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun/prometheus"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

func TestMetricsHaveTheirNames(t *testing.T) {
	r := client.NewRegistry()
	m, err := prometheus.New(r)
	require.NoError(t, err)
	_, err = prometheus.New(r)
	require.Error(t, err, "they are there already")
	report := &dailyrun.Report{
		Waited:   time.Second,
		Shards:   []dailyrun.ShardReport{{Shard: 3, Time: time.Unix(0, 50), LastWalked: time.Unix(0, 40), Events: 7, Took: 2 * time.Second}},
		Sources:  []dailyrun.SourceReport{{Source: dispatch.Source{Repository: "lake", Branch: "main"}, Blocked: 2}},
		Outcomes: map[dailyrun.Dispatched]int{{Repository: "lake", Kind: lifecycle.AbortMPU, Outcome: lifecycle.Done}: 4},
	}
	m.Saved(report)
	m.Saved(report)
	families, err := r.Gather()
	require.NoError(t, err)
	var text []string
	for _, f := range families {
		for _, one := range f.Metric {
			text = append(text, f.GetName()+" "+strings.Join(strings.Fields(one.String()), " "))
		}
	}
	all := strings.Join(text, "\n")
	for name, value := range map[string]string{
		"s3_lifecycle_cursor_min_ts_ns": "50", "s3_lifecycle_daily_run_last_walked_ns": "40", "s3_lifecycle_daily_run_shard_duration_seconds": "4",
		"s3_lifecycle_daily_run_events_scanned_total": "14", "s3_lifecycle_dispatch_limiter_wait_seconds": "2", "s3_lifecycle_dispatch_total": "8", "s3_lifecycle_blocked_lanes": "2",
	} {
		require.Regexp(t, name+`\b.*:`+value+`\b`, all)
	}
	require.Regexp(t, `dispatch_total.*lake.*AbortMPU.*DONE`, all)
}
