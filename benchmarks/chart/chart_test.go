// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/benchmarks/result"
)

func at(name string, of string, unit result.Unit, at float64, samples ...float64) result.Metric {
	return result.Metric{Name: name, Of: of, Unit: unit, At: at, Samples: samples}.Complete()
}

func TestPlotsAreDrawnOfLoadsAndOfFiguresAtSeveralPoints(t *testing.T) {
	load := func(engine string) *result.Run {
		return &result.Run{Workload: "long-commit", Variant: "paced", Engine: engine,
			Phases: []result.Phase{{Name: "before", To: 1}, {Name: "during", From: 1, To: 2}, {Name: "after", From: 2, To: 3}},
			Series: []result.Point{
				{Operation: "write", Until: 1, PerSecond: 100, P50: 0.001, P99: 0.002}, {Operation: "write", Until: 2}, {Operation: "write", Until: 3, PerSecond: 90, P50: 0.001, P99: 1},
				{Operation: "read", Until: 3, PerSecond: 5, P50: 0.0001, P99: 0.001},
			}}
	}
	bolt := &result.Run{Workload: "commits", Engine: "bolt", Metrics: []result.Metric{
		at("commit", "entries", result.Seconds, 10, 1, 2, 3), at("commit", "entries", result.Seconds, 100, 4), at("ratio", "entries", result.Speed, 10, 1), at("ratio", "entries", result.Speed, 100, 1),
		at("drop", "entries", result.Seconds, 10, 0), at("drop", "entries", result.Seconds, 100, 0), at("lone", "goroutines", result.PerSecond, 1, 1),
		{Name: "plain", Unit: result.Seconds, Samples: []float64{1}},
	}}
	postgres := &result.Run{Workload: "commits", Engine: "postgres", Metrics: []result.Metric{at("commits", "processes", result.PerSecond, 1, 10), at("commits", "processes", result.PerSecond, 4, 30)}}
	failed := &result.Run{Workload: "merge", Engine: "bolt", Error: "it lost a write", Metrics: bolt.Metrics}
	quiet := &result.Run{Workload: "list", Engine: "bolt", Metrics: []result.Metric{{Name: "page", Unit: result.Seconds, Samples: []float64{1}}}}

	dir := filepath.Join(t.TempDir(), "plots")
	names, err := Write(&result.Document{Runs: []*result.Run{load("bolt"), load("pebble"), bolt, postgres, failed, quiet}}, dir)
	require.NoError(t, err)
	require.Equal(t, []string{"long-commit-paced", "commits-time-by-entries", "commits-rate-by-processes"}, names)
	for _, name := range names {
		raster, err := os.ReadFile(filepath.Join(dir, name+".png"))
		require.NoError(t, err)
		image, err := png.DecodeConfig(bytes.NewReader(raster))
		require.NoError(t, err)
		require.Greater(t, image.Width, 300)
		vector, err := os.ReadFile(filepath.Join(dir, name+".svg"))
		require.NoError(t, err)
		require.Contains(t, string(vector), "</svg>")
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, files, 2*len(names))
}

func TestNothingToDrawIsNoPlot(t *testing.T) {
	names, err := Write(&result.Document{}, t.TempDir())
	require.NoError(t, err)
	require.Empty(t, names)
}
