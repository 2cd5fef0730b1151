// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/moraine-store/moraine/benchmarks/result"
)

// timelines are two rows: operations per second, and latencies.
func timelines(runs []*result.Run) ([][]*plot.Plot, error) {
	rows := make([][]*plot.Plot, 2)
	for _, r := range runs {
		rate, latency, err := timeline(r)
		if err != nil {
			return nil, err
		}
		rows[0], rows[1] = append(rows[0], rate), append(rows[1], latency)
	}
	share(rows[0])
	share(rows[1])
	for i, r := range runs { // now that the heights are known
		for _, row := range rows {
			if err := shade(row[i], r.Phases); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

func timeline(r *result.Run) (rate, latency *plot.Plot, err error) {
	rate, latency = plot.New(), plot.New()
	rate.Title.Text = r.Title() + " on " + r.Engine
	rate.Y.Label.Text, latency.Y.Label.Text = "per second", "latency"
	rate.Y.Min = 0
	latency.X.Label.Text = "seconds"
	latency.Y.Scale, latency.Y.Tick.Marker = plot.LogScale{}, ticks{result.Seconds}
	latency.Y.Min, latency.Y.Max = math.Inf(1), math.Inf(-1)
	for i, op := range operations(r.Series) {
		for j, line := range []struct {
			on   *plot.Plot
			name string
			y    func(result.Point) float64
		}{
			{rate, op + "s", func(p result.Point) float64 { return p.PerSecond }},
			{latency, op + " p99", func(p result.Point) float64 { return p.P99 }},
			{latency, op + " p50", func(p result.Point) float64 { return p.P50 }},
		} {
			l, err := plotter.NewLine(points(r.Series, op, line.on == rate, line.y))
			if err != nil {
				return nil, nil, err
			}
			l.Width, l.Color = vg.Points(1.2), plotutil.Color(3*i+j)
			line.on.Add(l)
			line.on.Legend.Add(line.name, l)
		}
	}
	for _, p := range []*plot.Plot{rate, latency} {
		p.X.Min = 0
		p.Legend.Top = true
		legend(p)
		p.Add(plotter.NewGrid())
	}
	latency.Legend.Top = false
	rate.Y.Max *= 1.15 // room for the legend
	return rate, latency, nil
}

func operations(series []result.Point) (names []string) {
	seen := map[string]bool{}
	for _, p := range series {
		if !seen[p.Operation] {
			seen[p.Operation] = true
			names = append(names, p.Operation)
		}
	}
	return names
}

// points are the values of an operation's intervals, but for those that a logarithmic axis has no place for: where nothing ended,
// nothing has a latency.
func points(series []result.Point, op string, zero bool, y func(result.Point) float64) (xys plotter.XYs) {
	for _, p := range series {
		if p.Operation == op && (zero || y(p) > 0) {
			xys = append(xys, plotter.XY{X: p.Until, Y: y(p)})
		}
	}
	return xys
}

// shade colours every other phase, from the second on: that in which the commit is under way.
func shade(p *plot.Plot, phases []result.Phase) error {
	for i := 1; i < len(phases); i += 2 {
		from, to := phases[i].From, phases[i].To
		area, err := plotter.NewPolygon(plotter.XYs{{X: from, Y: p.Y.Min}, {X: to, Y: p.Y.Min}, {X: to, Y: p.Y.Max}, {X: from, Y: p.Y.Max}})
		if err != nil {
			return err
		}
		area.Color, area.LineStyle.Width = color.NRGBA{R: 255, G: 170, A: 60}, 0
		p.Add(area)
		p.Legend.Add(phases[i].Name+" the commit", area)
	}
	return nil
}
