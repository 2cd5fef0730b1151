// SPDX-License-Identifier: Apache-2.0

// Package facade is a back end of the versioned store that keeps some kinds of records on one side, in SQL tables, and the others
// on another, in a key/value store: for a deployment that moves kind by kind.
//
// [New] takes both sides and the [Routes], which say for each [Kind] which side has it, and gives what graveler.Config wants.
// Every read and write of a kind goes to its side, as if there were no other. Three things need both: where kinds are apart, the
// record of a repository has a companion on the other side, without which that would keep nothing of it (companion.go); what must
// be there before a branch record is written first, each kind on its side; and a partition that is dropped is dropped on both.
//
// Kinds that [Config.Shadow] names are also read from the other side, after the answer is known and in the same call; scans are
// read along, record by record. Where that answer differs [Config.Report] is told, of a scan once; the caller gets the first
// answer in any case. A record that was written between the two reads is reported too: it is for whoever looks at the reports to
// ask again. Watermarks, bounds of logs, and partitions to drop are not compared. With a store into which package migrate has
// carried the repositories everything is compared but what cannot be the same: UIDs, staging tokens, places of files, branch
// logs, and the generations and log times of commits.
//
// The facade copies nothing: before a kind is routed to a side, that side must have it, and nothing may be written to the kind
// meanwhile. Repositories that package migrate has carried over have another UID than in the source, so their kinds can only go
// over together: with routes that part them they are [ErrOtherRepository].
package facade

import (
	"context"
	"errors"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// Kind is a kind of records that one side has.
type Kind int

const (
	// Repositories are the records of repositories, with their settings, pins and expirations.
	Repositories Kind = iota
	// Branches are the branch records with the branch logs, what is staged, the registrations of partitions to drop, and the
	// clock. They go together: a staged write is fenced with the branch record, which no two stores can decide in one step.
	Branches
	Commits
	Tags
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"repositories", "branches", "commits", "tags"}[k]
}

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Repositories, Branches, Commits, Tags} }

// Backend is one side, or both together. It is a moraine.Backend.
type Backend struct {
	graveler.Refs
	graveler.Staging
}

// Routes says which kinds the second side has; the first has the others.
type Routes map[Kind]bool

// Config is what a facade is made of.
type Config struct {
	First, Second Backend
	Routes        Routes
	// Shadow are the kinds that are compared when they are read.
	Shadow []Kind
	// Report is told of differences; it is called by whoever reads, and must be safe for concurrent use. Required where Shadow names any kind.
	Report func(context.Context, Difference)
}

// New returns the back end.
func New(c Config) (Backend, error) {
	for _, side := range []Backend{c.First, c.Second} {
		if side.Refs == nil || side.Staging == nil {
			return Backend{}, errors.New("facade: both sides are required, with records and staging")
		}
	}
	if len(c.Shadow) > 0 && c.Report == nil {
		return Backend{}, errors.New("facade: shadow reads without anybody to report to")
	}
	r := &refs{
		Repositories: c.of(Repositories).Refs, Settings: c.of(Repositories).Refs, Pins: c.of(Repositories).Refs, Expirations: c.of(Repositories).Refs,
		Branches: c.of(Branches).Refs, Moves: c.of(Branches).Refs, Cleanups: c.of(Branches).Refs, Clock: c.of(Branches).Refs,
		Commits: c.of(Commits).Refs, Tags: c.of(Tags).Refs,
		apart: c.Routes[Branches] != c.Routes[Commits], sides: [2]graveler.Cleanups{c.First.Refs, c.Second.Refs},
	}
	if c.apart() {
		r.Repositories = &companions{Repositories: r.Repositories, other: c.other(Repositories).Refs}
	}
	b := Backend{Refs: r, Staging: c.of(Branches).Staging}
	if len(c.Shadow) == 0 {
		return b, nil
	}
	s := &shadowed{refs: r, others: map[Kind]graveler.Refs{}, report: c.Report}
	for _, k := range c.Shadow {
		s.others[k] = c.other(k).Refs
		if k == Branches {
			b.Staging = shadowedStaging{b.Staging, c.other(k).Staging, s, s.report.of(k)}
		}
	}
	b.Refs = s
	return b, nil
}

// apart reports whether kinds within repositories are on another side than these.
func (c Config) apart() bool {
	return slices.ContainsFunc(Kinds(), func(k Kind) bool { return c.Routes[k] != c.Routes[Repositories] })
}

func (c Config) of(k Kind) Backend {
	if c.Routes[k] {
		return c.Second
	}
	return c.First
}

func (c Config) other(k Kind) Backend {
	if c.Routes[k] {
		return c.First
	}
	return c.Second
}

// refs has each kind from its side.
type refs struct {
	graveler.Repositories
	graveler.Branches
	graveler.Commits
	graveler.Tags
	graveler.Moves
	graveler.Pins
	graveler.Expirations
	graveler.Settings
	graveler.Cleanups
	graveler.Clock

	apart bool // commits are not on the side of the branches
	sides [2]graveler.Cleanups
}

// PublishBranch writes a commit that is on the other side before.
func (r *refs) PublishBranch(ctx context.Context, repo *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	if r.apart && before.Commit != nil {
		if err := r.PutCommit(ctx, repo, before.Commit); err != nil {
			return nil, err
		}
		before.Commit = nil
	}
	return r.Branches.PublishBranch(ctx, repo, b, before)
}

// DropPartition drops what either side has.
func (r *refs) DropPartition(ctx context.Context, partition string) error {
	return errors.Join(r.sides[0].DropPartition(ctx, partition), r.sides[1].DropPartition(ctx, partition))
}
