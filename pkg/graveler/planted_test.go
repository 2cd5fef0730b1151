// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/moraine-store/moraine/internal/explore"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// unfenced drops the fence of staged writes.
type unfenced struct{ graveler.Staging }

func (u unfenced) Apply(ctx context.Context, _ *graveler.Fence, token graveler.StagingToken, writes []graveler.StagedWrite) error {
	return u.Staging.Apply(ctx, nil, token, writes)
}

// stale answers steps of some kinds with the branch record as it was when this process first read it, as if they did not look again.
type stale struct {
	graveler.Refs
	steps []string

	mu    sync.Mutex
	known *graveler.Branch
}

func (s *stale) GetBranch(ctx context.Context, r *graveler.Repository, id graveler.BranchID) (*graveler.Branch, error) {
	do, _ := ctx.Value(doing{}).(string)
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	if known != nil && slices.Contains(s.steps, do) {
		return known.Clone(), nil
	}
	b, err := s.Refs.GetBranch(ctx, r, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && id == "dev" {
		s.known = b.Clone()
	}
	return b, err
}

// forced publishes whatever the record has become since it was read.
type forced struct{ graveler.Refs }

func (f forced) PublishBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	for {
		stamp, err := f.Refs.PublishBranch(ctx, r, b, before)
		if !errors.Is(err, graveler.ErrChanged) || b.Stamp == nil {
			return stamp, err
		}
		now, err := f.GetBranch(ctx, r, b.ID)
		if err != nil {
			return nil, err
		}
		b = b.Clone()
		b.Stamp = now.Stamp
	}
}

// hasty drops a token when it is registered, while the record still lists it.
type hasty struct{ graveler.Refs }

func (h hasty) PublishBranch(ctx context.Context, r *graveler.Repository, b *graveler.Branch, before graveler.Preceding) (graveler.Stamp, error) {
	for _, c := range before.Cleanups {
		if err := h.PutCleanup(ctx, c); err != nil {
			return nil, err
		}
		if err := h.DropPartition(ctx, c.Partition); err != nil {
			return nil, err
		}
	}
	return h.Refs.PublishBranch(ctx, r, b, before)
}

// Each part of the protocols is needed: without it the explorer soon finds a run that goes wrong.
func TestTheExplorerFindsPlantedFaults(t *testing.T) {
	for name, fault := range map[string]struct {
		costly bool
		plant  func(*graveler.Config)
	}{
		"no fence":                             {false, func(c *graveler.Config) { c.Staging = unfenced{c.Staging} }},
		"no check after a write":               {true, func(c *graveler.Config) { c.Refs = &stale{Refs: c.Refs, steps: []string{"set"}} }},
		"no check after a read":                {false, func(c *graveler.Config) { c.Refs = &stale{Refs: c.Refs, steps: []string{"get", "list"}} }},
		"publish on a record that has changed": {false, func(c *graveler.Config) { c.Refs = forced{c.Refs} }},
		"drop before the record stops listing": {false, func(c *graveler.Config) { c.Refs = hasty{c.Refs} }},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20_000) {
				if problem := runPlanted(t, fault.plant, randomProgram(seed), fault.costly, explore.NewDraw(seed), 0); problem != "" {
					t.Logf("found by run %d", seed+1)
					return
				}
			}
			t.Fatal("not found")
		})
	}
}
