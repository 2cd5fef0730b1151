// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/moraine-store/moraine/pkg/migrate"
)

// progress is a bar on standard error, or nothing where nobody looks at one. One bar follows the other.
type progress struct {
	app   *app
	shown bool          // somebody looks
	all   *mpb.Progress // nil: there was no bar yet
	bar   *mpb.Bar
}

func (a *app) newProgress() *progress {
	return &progress{app: a, shown: isTerminal(a.stderr) && !a.quiet}
}

// add shows a bar in the place of the one before.
func (p *progress) add(total int64, style mpb.BarFillerBuilder, options ...mpb.BarOption) {
	if !p.shown {
		return
	}
	if p.all == nil {
		p.all = mpb.New(mpb.WithOutput(p.app.stderr))
	}
	if p.bar != nil {
		p.bar.Abort(true)
	}
	p.bar = p.all.New(total, style, append(options, mpb.BarRemoveOnComplete())...)
}

func untilEnd() decor.Decorator {
	return decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WC{W: 8}), "")
}

// begin shows the bar of something that has so many bytes.
func (p *progress) begin(what string, bytes int64) {
	p.add(bytes, mpb.BarStyle(), mpb.PrependDecorators(decor.Name(what+" "), decor.CountersKibiByte("% .1f of % .1f")), mpb.AppendDecorators(decor.Percentage(), untilEnd()))
}

// beginCount shows the bar of something that has so many rows.
func (p *progress) beginCount(what string, rows int64) {
	began := time.Now()
	counted := decor.Any(func(s decor.Statistics) string { return count(int(s.Current)) + " of " + count(int(s.Total)) + " rows" })
	rate := decor.Any(func(s decor.Statistics) string {
		return fmt.Sprintf(" %s/s", count(int(float64(s.Current)/max(time.Since(began).Seconds(), 1))))
	})
	p.add(rows, mpb.BarStyle(), mpb.PrependDecorators(decor.Name(what+" "), counted), mpb.AppendDecorators(decor.Percentage(), rate, untilEnd()))
}

// beginWait shows for how long something has been under way of which nobody knows how long it takes.
func (p *progress) beginWait(what string) {
	p.add(0, mpb.NopStyle(), mpb.PrependDecorators(decor.Name(what+" … "), decor.Elapsed(decor.ET_STYLE_GO)))
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

// rowProgress shows how many rows have been done: as a bar, or, where nobody looks at one, as a line for each tenth.
type rowProgress struct {
	*progress
	what     string
	tenth    int64
	counting bool // the bar is of rows
}

func (a *app) newRowProgress(what string) *rowProgress {
	return &rowProgress{progress: a.newProgress(), what: what}
}

func (p *rowProgress) show(now migrate.Progress) {
	if !p.shown {
		if tenth := 10 * now.Rows / max(now.Of, 1); tenth > p.tenth {
			p.tenth = tenth
			p.app.note("%s: %s of %s rows, %d of %d repositories", p.what, count(int(now.Rows)), count(int(now.Of)), now.Repositories, now.OfRepositories)
		}
		return
	}
	if !p.counting {
		p.counting = true
		p.beginCount(p.what, now.Of)
	}
	p.bar.SetCurrent(now.Rows)
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
