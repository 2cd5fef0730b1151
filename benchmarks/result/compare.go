// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Change is a metric in two documents.
type Change struct {
	Run    string `json:"run"`
	Engine string `json:"engine"`
	Metric string `json:"metric"`
	Unit   Unit   `json:"unit"`
	// Before and After are medians.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	// Ratio is After to Before; with any sample of one and any of the other it would be between Low and High.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	// Verdict is better or worse where even the samples that are closest to each other say so, else "within spread".
	Verdict string `json:"verdict"`
}

// Compare compares what two documents have both measured with the same parameters, in the order of the second. Metrics that are
// zero in one of them are left out.
func Compare(before, after *Document) []Change {
	var changes []Change
	for _, r := range after.Runs {
		old := before.Find(r.Workload, r.Variant, r.Engine)
		if old == nil || string(old.Params) != string(r.Params) || before.ValueBytes != after.ValueBytes {
			continue
		}
		for _, m := range r.Metrics {
			for _, o := range old.Metrics {
				if o.ID() == m.ID() && o.Unit == m.Unit && o.Median != 0 && m.Median != 0 {
					changes = append(changes, change(r, o, m))
				}
			}
		}
	}
	return changes
}

func change(r *Run, before, after Metric) Change {
	c := Change{
		Run: r.Title(), Engine: r.Engine, Metric: after.ID(), Unit: after.Unit, Before: before.Median, After: after.Median,
		Ratio: after.Median / before.Median, Verdict: "within spread",
	}
	c.Low, c.High = c.Ratio, c.Ratio
	if before.Min > 0 {
		c.Low, c.High = after.Min/before.Max, after.Max/before.Min
	}
	more, known := after.Unit.MoreIsBetter()
	switch {
	case !known || c.Low <= 1 && c.High >= 1 || len(before.Samples) == 1 || len(after.Samples) == 1:
	case (c.Low > 1) == more:
		c.Verdict = "better"
	default:
		c.Verdict = "worse"
	}
	return c
}

// WriteChanges writes a table of changes.
func WriteChanges(w io.Writer, changes []Change) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row(t, "WORKLOAD", "ENGINE", "METRIC", "BEFORE", "AFTER", "RATIO", "SPREAD", "")
	for _, c := range changes {
		row(t, c.Run, c.Engine, c.Metric, c.Unit.Format(c.Before), c.Unit.Format(c.After), fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.2f–%.2f", c.Low, c.High), c.Verdict)
	}
	return t.Flush()
}

// row adds a row to a table; what goes wrong is reported when the table is flushed.
func row(t io.Writer, cells ...string) {
	_, _ = io.WriteString(t, strings.Join(cells, "\t")+"\n")
}
