// SPDX-License-Identifier: Apache-2.0

package result

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func metric(name string, unit Unit, samples ...float64) Metric {
	return Metric{Name: name, Unit: unit, Samples: samples}.Complete()
}

func document(engine string, metrics ...Metric) *Document {
	return &Document{Schema: Schema, Setting: "short", Rounds: 3, Runs: []*Run{{
		Workload: "kv", Engine: engine, Params: []byte(`{}`), Durability: map[string]string{"fsync": "on"}, Metrics: metrics, Checked: []string{"all is there"},
	}}}
}

func TestMedianAndRange(t *testing.T) {
	m := metric("m", Seconds, 5, 1, 3)
	require.Equal(t, []float64{3, 1, 5}, []float64{m.Median, m.Min, m.Max})
	require.Equal(t, []float64{5, 1, 3}, m.Samples, "samples stay as they were measured")
	require.Equal(t, 2.5, Median([]float64{4, 1, 2, 3}))
	require.Equal(t, []float64{2, 5}, Ratio([]float64{4, 10, 7}, []float64{2, 2}))
}

func TestFiguresAreShownWithTheirUnits(t *testing.T) {
	for want, got := range map[string]string{
		"12,346/s":         PerSecond.Format(12345.6),
		"1,234 s":          Seconds.Format(1234),
		"12.3 ms":          Seconds.Format(0.01234),
		"123 µs":           Seconds.Format(0.0001234),
		"0 s":              Seconds.Format(0),
		"1,000.0 MiB":      Bytes.Format(1000 << 20),
		"0.93":             Speed.Format(0.931),
		"1,000,000":        Count.Format(1e6),
		"16.5":             Count.Format(16.5),
		"2/s (1/s–3/s)":    metric("m", PerSecond, 1, 2, 3).Format(),
		"2/s":              metric("m", PerSecond, 2).Format(),
		"m, entries=1,000": Metric{Name: "m", Of: "entries", At: 1000}.ID(),
	} {
		require.Equal(t, want, got)
	}
}

func TestAComparisonHasRatiosWithSpread(t *testing.T) {
	before := document("bolt", metric("rate", PerSecond, 90, 100, 110), metric("time", Seconds, 2, 2, 2), metric("noise", Seconds, 1, 2, 3), metric("once", Seconds, 1),
		metric("gone", Seconds, 1), metric("zero", Count, 0, 0, 0), metric("slower", Seconds, 1, 1, 1))
	after := document("bolt", metric("rate", PerSecond, 180, 200, 220), metric("time", Seconds, 1, 1, 1), metric("noise", Seconds, 2, 3, 4), metric("once", Seconds, 5),
		metric("zero", Count, 1, 1, 1), metric("slower", Seconds, 2, 2, 3))
	changes := Compare(before, after)
	require.Len(t, changes, 5)
	rate := changes[0]
	require.Equal(t, 2.0, rate.Ratio)
	require.InDelta(t, 180.0/110, rate.Low, 1e-9)
	require.InDelta(t, 220.0/90, rate.High, 1e-9)
	var verdicts []string
	for _, c := range changes {
		verdicts = append(verdicts, c.Metric+" "+c.Verdict)
	}
	require.Equal(t, []string{"rate better", "time better", "noise within spread", "once within spread", "slower worse"}, verdicts)

	require.Empty(t, Compare(document("bolt", metric("rate", PerSecond, 1)), document("pebble", metric("rate", PerSecond, 1))), "another engine")
	other := document("bolt", metric("rate", PerSecond, 1))
	other.Runs[0].Params = []byte(`{"entries":1}`)
	require.Empty(t, Compare(before, other), "other parameters")

	var text strings.Builder
	require.NoError(t, WriteChanges(&text, changes))
	require.Regexp(t, `(?m)^kv +bolt +rate +100/s +200/s +2\.00 +1\.64–2\.44 +better$`, text.String())
}

func TestEnginesAreSideBySide(t *testing.T) {
	d := document("bolt", metric("set", PerSecond, 1, 2, 3), Metric{Name: "loop", Unit: PerSecond, Reference: true, Samples: []float64{4}}.Complete(), metric("last", Count, 7))
	d.Runs = append(d.Runs, document("pebble", metric("set", PerSecond, 5), metric("own", Count, 6), metric("last", Count, 8)).Runs...)
	d.Runs[1].Error = "it lost a write"
	d.Runs[1].Counts = []Counts{{Part: "all", Calls: map[string]int64{"kv.set": 1234, "block.syncs": 2}}}
	least := 2.0
	d.Targets = []Verdict{{Target: "fast", Workload: "kv", Metric: "set", Engine: "bolt", Unit: PerSecond, AtLeast: &least, Measured: true, Figure: 2, Min: 1, Max: 3, Met: true}, {Target: "fast", Workload: "kv", Metric: "set", Engine: "pebble", AtLeast: &least}}
	var text, page strings.Builder
	require.NoError(t, d.WriteText(&text))
	require.NoError(t, d.WriteMarkdown(&page))
	require.Regexp(t, `(?s)\nmetric +bolt +pebble\nset +2/s \(1/s–3/s\) +5/s\nown +– +6\n\[loop\] +4/s +–\nlast +7 +8\n`, text.String())
	require.Contains(t, text.String(), "Calls on pebble, all: block.syncs 2, kv.set 1,234.\n")
	require.Contains(t, text.String(), "FAILED on pebble: it lost a write\n")
	require.Contains(t, text.String(), "Checked on bolt: all is there.\n")
	require.Regexp(t, `fast: set +kv +bolt +2/s \(1/s–3/s\) +≥ 2/s +met\nfast: set +kv +pebble +– +≥ 2 +not measured`, text.String())
	require.Contains(t, page.String(), "\n- Checked on bolt: all is there.\n")
	require.Contains(t, page.String(), "\n### kv\n\n| metric | bolt | pebble |\n|---|---|---|\n| set | 2/s (1/s–3/s) | 5/s |\n")
}

func TestWhatIsNoDocumentIsNotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.json")
	_, err := Read(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	for _, text := range []string{"", "{", `{"schema":2}`, `{}`, `[]`} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Read(path)
		require.ErrorIs(t, err, ErrDocument, text)
		require.ErrorContains(t, err, path)
	}
}
