// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/benchmarks/result"
)

func TestATargetIsMetByItsMedianOrByEverySample(t *testing.T) {
	metric := func(at float64, samples ...float64) result.Metric {
		return result.Metric{Name: "figure", At: at, Of: "entries", Unit: result.Speed, Samples: samples}.Complete()
	}
	r := &result.Run{Workload: "kv", Engine: "bolt", Metrics: []result.Metric{metric(10, 1, 2, 9), metric(100, 3, 4, 5)}}
	for _, c := range []struct {
		target
		figures []float64
		met     []bool
	}{
		{target{metric: "figure", atLeast: 4}, []float64{2, 4}, []bool{false, true}},
		{target{metric: "figure", at: 10, atLeast: 2}, []float64{2}, []bool{true}},
		{target{metric: "figure", at: largest, atLeast: 4.5}, []float64{4}, []bool{false}},
		{target{metric: "figure", atMost: 3}, []float64{2, 4}, []bool{true, false}},
		{target{metric: "figure", atMost: 8, every: true}, []float64{9, 5}, []bool{false, true}},
	} {
		var figures []float64
		var met []bool
		for _, v := range c.judge(r) {
			require.True(t, v.Measured)
			figures, met = append(figures, v.Figure), append(met, v.Met)
		}
		require.Equal(t, c.figures, figures, "%+v", c.target)
		require.Equal(t, c.met, met, "%+v", c.target)
	}

	missing := target{metric: "other", atLeast: 1}.judge(r)
	require.Len(t, missing, 1)
	require.False(t, missing[0].Measured)
	require.False(t, missing[0].Met)
	r.Error = "it lost a write"
	require.False(t, target{metric: "figure", atLeast: 1}.judge(r)[0].Measured)

	require.True(t, target{}.isFor("postgres"))
	require.False(t, target{}.isFor("mem"))
	require.False(t, target{engines: []string{"bolt"}}.isFor("postgres"))
}
