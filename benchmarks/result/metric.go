// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Unit is what a metric is measured in. It says how figures are shown and which of two is the better one.
type Unit string

const (
	PerSecond Unit = "/s"      // the more the better
	Seconds   Unit = "s"       // the less the better
	Bytes     Unit = "bytes"   // the less the better
	Count     Unit = "count"   // the less the better
	Speed     Unit = "speed"   // a ratio of speeds, the store's to the reference's: the more the better
	Slowdown  Unit = "time"    // a ratio of times or of sizes, the store's to the reference's: the less the better
	Info      Unit = "neither" // a number that is not good or bad
)

// MoreIsBetter says which of two figures is the better one; known is false where neither is.
func (u Unit) MoreIsBetter() (more, known bool) {
	return u == PerSecond || u == Speed, u != Info
}

// Format shows a figure, with its unit where it has a name.
func (u Unit) Format(v float64) string {
	switch u {
	case Seconds:
		return formatSeconds(v)
	case Bytes:
		return fmt.Sprintf("%s MiB", thousands(v/(1<<20), 1))
	case Speed, Slowdown:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case PerSecond:
		return thousands(v, 0) + "/s"
	default:
		if v == math.Trunc(v) {
			return thousands(v, 0)
		}
		return thousands(v, 1)
	}
}

func formatSeconds(v float64) string {
	scale, unit := 1.0, "s"
	switch {
	case v == 0:
		return "0 s"
	case v < 1e-3:
		scale, unit = 1e6, "µs"
	case v < 1:
		scale, unit = 1e3, "ms"
	}
	v *= scale
	digits := 0
	if v < 100 {
		digits = 1
	}
	return thousands(v, digits) + " " + unit
}

// thousands is a number with commas: 3,908.5.
func thousands(v float64, decimals int) string {
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// Complete returns the metric with what follows from its samples.
func (m Metric) Complete() Metric {
	if len(m.Samples) == 0 {
		return m
	}
	m.Median, m.Min, m.Max = Median(m.Samples), slices.Min(m.Samples), slices.Max(m.Samples)
	return m
}

// Format shows median and range.
func (m Metric) Format() string {
	text := m.Unit.Format(m.Median)
	if len(m.Samples) > 1 {
		text += fmt.Sprintf(" (%s–%s)", m.Unit.Format(m.Min), m.Unit.Format(m.Max))
	}
	return text
}

// Median returns the middle of the samples, the mean of the two middle ones where there is none. There must be one at least.
func Median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	mid := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[mid]
	}
	return (sorted[mid-1] + sorted[mid]) / 2
}

// Ratio divides samples pair by pair: each a by the b that was measured next to it.
func Ratio(a, b []float64) []float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}
