// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/moraine-store/moraine/benchmarks/result"
)

const (
	tileWidth  = 11 * vg.Centimeter
	tileHeight = 7 * vg.Centimeter
)

// figure is a picture of several plots: rows of them, with a column per engine.
type figure struct {
	name string // of its files
	rows [][]*plot.Plot
}

// Write draws all plots of a document into a directory, which it makes, and returns the names of the files, without their
// extensions (.png and .svg), in the order of the document.
func Write(d *result.Document, dir string) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var names []string
	for _, group := range groups(d) {
		figures, err := draws(group)
		if err != nil {
			return nil, fmt.Errorf("plot %s: %w", group[0].Title(), err)
		}
		for _, f := range figures {
			if err := f.write(dir); err != nil {
				return nil, fmt.Errorf("plot %s: %w", f.name, err)
			}
			names = append(names, f.name)
		}
	}
	return names, nil
}

// groups puts runs together that differ in the engine only, and leaves out those that failed.
func groups(d *result.Document) (all [][]*result.Run) {
	at := map[string]int{}
	for _, r := range d.Runs {
		if r.Error != "" {
			continue
		}
		i, ok := at[r.Title()]
		if !ok {
			i = len(all)
			at[r.Title()] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], r)
	}
	return all
}

func draws(runs []*result.Run) (figures []figure, err error) {
	base := fileName(runs[0].Title())
	if slices.ContainsFunc(runs, func(r *result.Run) bool { return len(r.Series) > 0 }) {
		rows, err := timelines(runs)
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{base, rows})
	}
	for _, a := range axes(runs) {
		row, err := a.plots(runs)
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{fmt.Sprintf("%s-%s-by-%s", base, a.name(), fileName(a.of)), [][]*plot.Plot{row}})
	}
	return figures, nil
}

// fileName makes the name of a file of a title.
func fileName(title string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r == ' ' || r == '/':
			return '-'
		}
		return -1
	}, title), "-")
}

func (f figure) write(dir string) error {
	width, height := tileWidth*vg.Length(len(f.rows[0])), tileHeight*vg.Length(len(f.rows))
	image := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(110))}
	vector := vgsvg.New(width, height)
	for extension, canvas := range map[string]interface {
		vg.CanvasSizer
		io.WriterTo
	}{".png": image, ".svg": vector} {
		f.draw(draw.New(canvas))
		if err := writeTo(filepath.Join(dir, f.name+extension), canvas); err != nil {
			return err
		}
	}
	return nil
}

func (f figure) draw(c draw.Canvas) {
	tiles := draw.Tiles{Rows: len(f.rows), Cols: len(f.rows[0]), PadX: 5 * vg.Millimeter, PadY: 5 * vg.Millimeter, PadTop: 2 * vg.Millimeter, PadBottom: 2 * vg.Millimeter, PadLeft: 2 * vg.Millimeter, PadRight: 4 * vg.Millimeter}
	for i, row := range plot.Align(f.rows, tiles, c) {
		for j := range row {
			f.rows[i][j].Draw(row[j])
		}
	}
}

func writeTo(path string, from io.WriterTo) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = from.WriteTo(f)
	return errors.Join(err, f.Close())
}

// ticks marks the powers of ten of a logarithmic axis.
type ticks struct{ unit result.Unit }

// Ticks implements [plot.Ticker].
func (t ticks) Ticks(low, high float64) []plot.Tick {
	all := plot.LogTicks{Prec: -1}.Ticks(low, high)
	for i, tick := range all {
		if tick.Label != "" {
			all[i].Label = strings.Replace(t.unit.Format(tick.Value), ".0 ", " ", 1)
		}
	}
	return all
}

// legend makes the legend of a plot fit into it.
func legend(p *plot.Plot) {
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	p.Legend.Padding = vg.Points(1.5)
}

// share gives plots the same range of y.
func share(plots []*plot.Plot) {
	low, high := plots[0].Y.Min, plots[0].Y.Max
	for _, p := range plots {
		low, high = min(low, p.Y.Min), max(high, p.Y.Max)
	}
	for _, p := range plots {
		p.Y.Min, p.Y.Max = low, high
	}
}
