// SPDX-License-Identifier: Apache-2.0

// Package chart draws the plots of a document of benchmark results, as PNG and SVG files, with the engines side by side and on common axes:
//
//   - of each run with a load, how many operations there were in a second and how long they took, over time, with the phases of the load shaded;
//   - of each workload whose figures were measured at several points (numbers of entries, of goroutines), the figures against these, on logarithmic axes. References are dashed.
package chart
