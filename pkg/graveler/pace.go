// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"time"
)

// paceSlice is how long work goes on before it rests. It is what others may have to wait for a processor, so it is short; timers are no finer than about a tenth of it.
const paceSlice = 2 * time.Millisecond

// paced makes a stream of changes rest between slices of work, so that making a tree of them takes a share of the machine: while it works it may use all processors, since files are
// built beside the stream, and while it rests it uses none.
type paced struct {
	Iterator[Entry]
	ctx   context.Context
	share float64
	began time.Time // of the slice
	steps int
	err   error
}

// pace returns changes as they are where the share is the whole machine.
func pace(ctx context.Context, changes Iterator[Entry], share float64) Iterator[Entry] {
	if share == 1 {
		return changes
	}
	return &paced{Iterator: changes, ctx: ctx, share: share, began: time.Now()}
}

func (p *paced) Next() bool {
	const stepsPerLook = 16 // asking the clock for each entry would show in the commit's speed
	if p.steps++; p.steps%stepsPerLook == 0 {
		if worked := time.Since(p.began); worked >= paceSlice && !p.rest(time.Duration(float64(worked)*(1-p.share)/p.share)) {
			return false
		}
	}
	return p.Iterator.Next()
}

func (p *paced) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.began = time.Now()
		return true
	case <-p.ctx.Done():
		p.err = p.ctx.Err()
		return false
	}
}

func (p *paced) Err() error {
	if p.err != nil {
		return p.err
	}
	return p.Iterator.Err()
}

// checkShare refuses what is no share of a machine; 0 stands for a default.
func checkShare(share float64) error {
	if !(share >= 0 && share <= 1) {
		return fmt.Errorf("%w: commit share %v is not between 0 and 1", ErrInvalidValue, share)
	}
	return nil
}
