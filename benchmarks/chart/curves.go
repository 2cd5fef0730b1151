// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/moraine-store/moraine/benchmarks/result"
)

// axis is what a plot is about: figures of one unit against the number of something.
type axis struct {
	of   string
	unit result.Unit
}

func (a axis) name() string {
	if a.unit == result.Seconds {
		return "time"
	}
	return "rate"
}

// axes are those that the runs have plots for.
func axes(runs []*result.Run) (all []axis) {
	for _, r := range runs {
		for _, m := range r.Metrics {
			if a := (axis{m.Of, m.Unit}); !slices.Contains(all, a) && a.has(r) {
				all = append(all, a)
			}
		}
	}
	return all
}

// has reports whether a run was measured at two points of the axis at least. Ratios are for the table.
func (a axis) has(r *result.Run) bool {
	if a.of == "" || a.unit != result.Seconds && a.unit != result.PerSecond {
		return false
	}
	points := map[float64]bool{}
	for _, c := range a.curves(r) {
		for _, p := range c.XYs {
			points[p.X] = true
		}
	}
	return len(points) > 1
}

// curve is the values of a metric.
type curve struct {
	name      string
	reference bool
	plotter.XYs
	plotter.YErrors
}

// plots is one per run.
func (a axis) plots(runs []*result.Run) (row []*plot.Plot, err error) {
	for _, r := range runs {
		if !a.has(r) {
			continue
		}
		p := plot.New()
		p.Title.Text = r.Title() + " on " + r.Engine
		p.X.Label.Text = a.of
		p.Y.Label.Text = a.name()
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = ticks{result.Count}, ticks{a.unit}
		p.Add(plotter.NewGrid())
		for i, c := range a.curves(r) {
			if err := c.add(p, i); err != nil {
				return nil, err
			}
		}
		p.Legend.Top, p.Legend.Left = true, true
		legend(p)
		p.Y.Max *= 3 // room for the legend
		row = append(row, p)
	}
	share(row)
	return row, nil
}

// curves returns those of one run.
func (a axis) curves(r *result.Run) (all []curve) {
	for _, m := range r.Metrics {
		if m.Of != a.of || m.Unit != a.unit || m.Min <= 0 {
			continue
		}
		i := slices.IndexFunc(all, func(c curve) bool { return c.name == m.Name })
		if i < 0 {
			i = len(all)
			all = append(all, curve{name: m.Name, reference: m.Reference})
		}
		all[i].XYs = append(all[i].XYs, plotter.XY{X: m.At, Y: m.Median})
		all[i].YErrors = append(all[i].YErrors, struct{ Low, High float64 }{m.Median - m.Min, m.Max - m.Median})
	}
	return all
}

func (c curve) add(p *plot.Plot, i int) error {
	line, marks, err := plotter.NewLinePoints(c.XYs)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(c)
	if err != nil {
		return err
	}
	line.Width, line.Color, marks.Color, bars.Color = vg.Points(1.2), plotutil.Color(i), plotutil.Color(i), plotutil.Color(i)
	marks.Shape, marks.Radius = draw.CircleGlyph{}, vg.Points(2)
	if c.reference {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	p.Add(line, marks, bars)
	p.Legend.Add(c.name, line, marks)
	return nil
}
