// SPDX-License-Identifier: Apache-2.0

// Package graph draws a history of commits with characters, as git does.
//
// Commits are added one by one, each before its parents. A lane is a column of the drawing that waits for one commit. A commit
// that is drawn gives its lane to its parents, and further lanes to its right where it has several; then lanes that wait for the
// same commit come together in the leftmost, and those to the right of a lane that is gone move up. Both happen one column per
// row:
//
//	|
//	*   merge
//	|\
//	| *  commit on a branch
//	* |
//	|/
//	*  where it began
package graph

import (
	"slices"
	"strings"
)

// Graph is a drawing under way. The zero value is an empty one. ID names commits.
type Graph[ID comparable] struct {
	lanes []ID // the commit that each lane waits for
}

// Add draws a commit: node is the beginning of its line, links are the lines that lead on to the commits below.
func (g *Graph[ID]) Add(id ID, parents []ID) (node string, links []string) {
	at := slices.Index(g.lanes, id)
	if at < 0 {
		at = len(g.lanes)
		g.lanes = append(g.lanes, id)
	}
	row := newRow(len(g.lanes))
	for lane := range g.lanes {
		row.set(2*lane, '|')
	}
	row.set(2*at, '*')
	links = append(g.spread(at, parents), g.join(at, len(parents) == 0)...)
	return row.String(), links
}

// edge is a lane on its way from one column to another.
type edge struct{ from, to int }

// spread replaces the lane at a column by one for each parent, and returns the rows that show it.
func (g *Graph[ID]) spread(at int, parents []ID) []string {
	if len(parents) == 0 {
		return nil // join takes the lane away
	}
	added := len(parents) - 1
	var edges []edge
	for lane := range g.lanes {
		switch {
		case lane < at:
			edges = append(edges, edge{lane, lane})
		case lane > at:
			edges = append(edges, edge{lane, lane + added})
		}
	}
	for i := range parents {
		edges = append(edges, edge{at, at + i})
	}
	g.lanes = slices.Replace(g.lanes, at, at+1, parents...)
	return draw(edges)
}

// join leaves one lane for each commit, none at the column of a commit without parents, and returns the rows that show it.
func (g *Graph[ID]) join(at int, ended bool) []string {
	var edges []edge
	var left []ID
	for lane, id := range g.lanes {
		if ended && lane == at {
			continue
		}
		to := slices.Index(left, id)
		if to < 0 {
			to = len(left)
			left = append(left, id)
		}
		edges = append(edges, edge{lane, to})
	}
	g.lanes = left
	return draw(edges)
}

// draw moves every edge to its column, one column per row. All edges that are not in place move in the same direction, so that
// no two of them ever cross.
func draw(edges []edge) []string {
	var rows []string
	for slices.ContainsFunc(edges, func(e edge) bool { return e.from != e.to }) {
		row := newRow(len(edges))
		for i, e := range edges {
			switch {
			case e.from < e.to:
				row.set(2*e.from+1, '\\')
				edges[i].from++
			case e.from > e.to:
				row.set(2*e.from-1, '/')
				edges[i].from--
			default:
				row.set(2*e.from, '|')
			}
		}
		rows = append(rows, row.String())
	}
	return rows
}

type row []byte

// newRow returns a row with room for so many lanes.
func newRow(lanes int) row { return slices.Repeat(row{' '}, 2*lanes+1) }

func (r row) set(at int, glyph byte) { r[at] = glyph }

func (r row) String() string { return strings.TrimRight(string(r), " ") }
