// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"slices"
)

// Subject is a thing to measure repeatedly.
type Subject struct {
	Name string
	// Measure measures once and returns the figure.
	Measure func(ctx context.Context, round int) (float64, error)
}

// Alternate measures each subject once per round, and every other round in reverse order, and returns the samples of each.
// Samples of a round belong together: a ratio of two is one of neighbours in time.
func Alternate(ctx context.Context, rounds int, subjects ...Subject) ([][]float64, error) {
	samples := make([][]float64, len(subjects))
	order := make([]int, len(subjects))
	for i := range order {
		order[i] = i
	}
	for round := range rounds {
		for _, i := range order {
			figure, err := subjects[i].Measure(ctx, round)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", subjects[i].Name, err)
			}
			samples[i] = append(samples[i], figure)
		}
		slices.Reverse(order)
	}
	return samples, nil
}
