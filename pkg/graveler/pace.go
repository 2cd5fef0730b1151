// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"context"
	"fmt"
	"time"
)

// paceSlice is how long work goes on before it rests. It is what others may have to wait for a processor, so it is short; timers
// are no finer than about a tenth of it.
const paceSlice = 2 * time.Millisecond

// besideStream counts what is done on other processors for what the stream does: hashing, compressing and writing the files takes
// about as long as reading and merging the entries.
const besideStream = 2

// The clock is looked at whenever so many entries, or so many bytes of them, have passed: for each entry it would show in the commit's speed.
const (
	entriesPerLook = 16
	bytesPerLook   = 64 << 10
)

// paced makes a stream of changes rest between slices of work, so that making a tree of them takes a share of the machine: while
// it works it may use all processors, since files are built beside the stream, and while it rests it uses none.
//
// What lies between two looks at the clock takes far less than a slice. Where it took longer, the stream has waited, for a
// processor, the engine or room for another file, and waiting uses nothing: no more than a slice of it counts. Otherwise the
// rests would grow with the load of the machine, and a commit would all but stand still beside work that takes every processor
// there is.
type paced struct {
	Iterator[Entry]
	ctx     context.Context
	share   float64
	looked  time.Time     // at the clock
	worked  time.Duration // since the last rest
	entries int           // since the last look
	bytes   int
	err     error
}

// pace returns changes as they are where the share is the whole machine.
func pace(ctx context.Context, changes Iterator[Entry], share float64) Iterator[Entry] {
	if share == 1 {
		return changes
	}
	return &paced{Iterator: changes, ctx: ctx, share: share, looked: time.Now()}
}

func (p *paced) Next() bool {
	if (p.entries >= entriesPerLook || p.bytes >= bytesPerLook) && !p.look() {
		return false
	}
	if !p.Iterator.Next() {
		return false
	}
	p.entries++
	p.bytes += p.Iterator.Item().Value.size()
	return true
}

// look rests if it is time to. It reports false where the context ended meanwhile.
func (p *paced) look() bool {
	now := time.Now()
	p.worked += min(now.Sub(p.looked), paceSlice)
	p.looked, p.entries, p.bytes = now, 0, 0
	if p.worked < paceSlice {
		return true
	}
	rest := time.Duration(besideStream * float64(p.worked) * (1 - p.share) / p.share)
	p.worked = 0
	return p.rest(rest)
}

func (p *paced) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.looked = time.Now()
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
