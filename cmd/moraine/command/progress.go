// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress is a bar on standard error, or nothing where nobody looks at one.
type progress struct {
	app *app
	all *mpb.Progress // nil: no bar
	bar *mpb.Bar
}

func (a *app) newProgress() *progress {
	p := &progress{app: a}
	if isTerminal(a.stderr) && !a.quiet {
		p.all = mpb.New(mpb.WithOutput(a.stderr))
	}
	return p
}

// begin shows the bar of something that has so many bytes.
func (p *progress) begin(what string, bytes int64) {
	if p.all != nil {
		p.bar = p.all.AddBar(bytes, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(what+" "), decor.CountersKibiByte("% .1f of % .1f")),
			mpb.AppendDecorators(decor.Percentage(), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), "")))
	}
}

// beginCount shows the bar of something that has so many rows.
func (p *progress) beginCount(what string, rows int64) {
	if p.all != nil {
		p.bar = p.all.AddBar(rows, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(what+" "), decor.CountersNoUnit("%d of %d rows")),
			mpb.AppendDecorators(decor.Percentage(), decor.AverageSpeed(0, " %.0f/s"), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), "")))
	}
}

func (p *progress) advance(bytes int) {
	if p.bar != nil {
		p.bar.IncrBy(bytes)
	}
}

// print shows a line, above the bar where there is one.
func (p *progress) print(line string) {
	if p.bar != nil {
		fmt.Fprintln(p.all, line)
		return
	}
	p.app.warn("%s", line)
}

// end takes the bar away and waits until it is gone.
func (p *progress) end() {
	if p.bar != nil {
		p.bar.Abort(true)
	}
	if p.all != nil {
		p.all.Wait()
	}
}

// naming prints lines about files, but not more than somebody would read.
type naming struct {
	bar         *progress
	most, lines int // most 0: all
}

func (a *app) newNaming(bar *progress, most int) *naming {
	if a.verbose {
		most = 0
	}
	return &naming{bar: bar, most: most}
}

func (n *naming) print(line string) {
	n.lines++
	if n.most == 0 || n.lines <= n.most {
		n.bar.print(line)
	}
}

// end says how many there were besides.
func (n *naming) end(what string) {
	if n.most > 0 && n.lines > n.most {
		n.bar.print(fmt.Sprintf("… and %s more %s (--verbose names them all)", count(n.lines-n.most), what))
	}
}
