// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

var (
	// ErrInjected is what a call returns that was made to fail; unless the call was a read its outcome is unknown to the caller.
	ErrInjected = errors.New("injected error")
	// ErrCrashed is what every call of a process returns that has ended.
	ErrCrashed = errors.New("process has crashed")
)

// Fate is what becomes of a call.
type Fate int

const (
	Run        Fate = iota
	FailBefore      // nothing is done
	FailAfter       // it is done, and the caller is told an error
	FailLate        // the caller is told an error; it is done at any later time, or never
	CrashBefore
	CrashAfter
)

// Chooser picks one of n possibilities.
type Chooser interface{ Choose(n int) int }

// Scheduler decides in which order parked calls go on. It belongs to one run in one bubble.
type Scheduler struct {
	chooser Chooser
	// faults is how many calls may yet be given another fate than Run; fates are those.
	faults int
	fates  []Fate

	mu      sync.Mutex
	parked  []*call
	late    []*call
	crashed map[int]bool // by process
	running int          // actors that have not ended
	clock   int
	trace   []string
}

// call is a parked call.
type call struct {
	actor actor
	what  string // the same in every run
	write bool
	do    func() error
	pass  time.Duration // by which time goes on before the call does
	fate  chan Fate
}

type actor struct{ id, process int }

type actorKey struct{}

// NewScheduler returns a scheduler that gives at most faults calls one of the fates.
func NewScheduler(c Chooser, faults int, fates ...Fate) *Scheduler {
	return &Scheduler{chooser: c, faults: faults, fates: fates, crashed: map[int]bool{}}
}

// Go starts an actor that belongs to a process. It must be called in the bubble, before Schedule.
func (s *Scheduler) Go(process int, run func(ctx context.Context)) {
	s.mu.Lock()
	s.running++
	ctx := context.WithValue(context.Background(), actorKey{}, actor{s.running, process})
	s.mu.Unlock()
	go func() {
		// Actors begin one at a time, so that what they do before their first call does not depend on chance.
		if s.park(ctx, "begin", false, func() error { return nil }) == nil {
			run(ctx)
		}
		s.mu.Lock()
		s.running--
		s.mu.Unlock()
	}()
}

// longest is how long the scheduler lets time go on where no actor has parked a call: longer than any timer of theirs runs.
const longest = time.Hour

// Schedule lets the actors run to their ends. It returns an error where they block each other.
func (s *Scheduler) Schedule() error {
	for {
		synctest.Wait()
		for d := time.Millisecond; s.waiting() && d < longest; d *= 2 {
			time.Sleep(d)
			synctest.Wait()
		}
		c, fate, done, err := s.pick()
		if done || err != nil {
			return err
		}
		time.Sleep(c.pass)
		if c.fate == nil { // a late one: its caller has gone
			if err := c.do(); err != nil {
				s.note("  (late) " + err.Error())
			}
			continue
		}
		c.fate <- fate
	}
}

// waiting reports whether there are actors, and all of them wait for a timer or for each other.
func (s *Scheduler) waiting() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.parked) == 0 && s.running > 0
}

// pick chooses a parked call, or one that is late, and its fate.
func (s *Scheduler) pick() (c *call, f Fate, done bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.parked) == 0 {
		if s.running > 0 {
			return nil, 0, false, fmt.Errorf("%d actors wait for each other", s.running)
		}
		return nil, 0, true, nil // what is late never happens
	}
	slices.SortStableFunc(s.parked, func(a, b *call) int {
		return cmp.Or(cmp.Compare(a.actor.id, b.actor.id), cmp.Compare(a.what, b.what))
	})
	s.clock++
	i := s.chooser.Choose(len(s.parked) + len(s.late))
	if i >= len(s.parked) {
		i -= len(s.parked)
		c = s.late[i]
		s.late = slices.Delete(s.late, i, i+1)
		s.trace = append(s.trace, fmt.Sprintf("%d late: %s", c.actor.id, c.what))
		return c, Run, false, nil
	}
	c = s.parked[i]
	s.parked = slices.Delete(s.parked, i, i+1)
	f = s.fate(c)
	s.trace = append(s.trace, fmt.Sprintf("%d %s%s", c.actor.id, c.what, []string{"", " FAILS BEFORE", " FAILS AFTER", " FAILS, LATE", " CRASH BEFORE", " CRASH AFTER"}[f]))
	return c, f, false, nil
}

func (s *Scheduler) fate(c *call) Fate {
	if s.crashed[c.actor.process] {
		return CrashBefore
	}
	if s.faults == 0 {
		return Run
	}
	i := s.chooser.Choose(len(s.fates) + 1)
	if i == 0 {
		return Run
	}
	f := s.fates[i-1]
	if !c.write && (f == FailAfter || f == FailLate) {
		f = FailBefore
	}
	s.faults--
	switch f {
	case FailLate:
		s.late = append(s.late, &call{actor: c.actor, what: c.what, do: c.do})
	case CrashBefore, CrashAfter:
		s.crashed[c.actor.process] = true
	}
	return f
}

// park waits for the scheduler and does what it says. Calls outside actors, such as those that set the scene, go ahead at once.
func (s *Scheduler) park(ctx context.Context, what string, write bool, do func() error) error {
	a, ok := ctx.Value(actorKey{}).(actor)
	if !ok {
		return do()
	}
	return s.await(&call{actor: a, what: what, write: write, do: do})
}

func (s *Scheduler) await(c *call) error {
	c.fate = make(chan Fate)
	s.mu.Lock()
	s.parked = append(s.parked, c)
	s.mu.Unlock()
	switch <-c.fate {
	case FailBefore, FailLate:
		return ErrInjected
	case FailAfter:
		return errors.Join(c.do(), ErrInjected)
	case CrashBefore:
		return ErrCrashed
	case CrashAfter:
		return errors.Join(c.do(), ErrCrashed)
	}
	return c.do()
}

// Pass is a call of an actor that lets the time of the bubble go on by d, whenever it is picked: timers that end before run in
// their order, and what their owners then do is parked.
func (s *Scheduler) Pass(ctx context.Context, d time.Duration) error {
	a := ctx.Value(actorKey{}).(actor)
	return s.await(&call{actor: a, what: "time goes on by " + d.String(), pass: d, do: func() error { return nil }})
}

// Crashed reports whether a process has ended.
func (s *Scheduler) Crashed(process int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.crashed[process]
}

// Now counts the calls that were let go on so far: a clock for histories.
func (s *Scheduler) Now() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clock
}

func (s *Scheduler) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trace = append(s.trace, line)
}

// Trace lists the calls in the order in which they went on.
func (s *Scheduler) Trace() []string { return s.trace }
