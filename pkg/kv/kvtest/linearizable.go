// SPDX-License-Identifier: Apache-2.0

package kvtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/moraine-store/moraine/pkg/kv"
)

// call is what was asked of a store. The key of a Get stands in its only write.
type call struct {
	method string
	writes []kv.Write
	fence  *kv.Predicate
}

// done is a call with its answer, and its place in time.
type done struct {
	call
	caller     int
	begin, end int64
	value      *string // for a Get
	err        error
}

// answered says that the outcome is known.
func (d done) answered() bool {
	return d.err == nil || errors.Is(d.err, kv.ErrNotFound) ||
		errors.Is(d.err, kv.ErrPredicateFailed) || errors.Is(d.err, kv.ErrFenceFailed)
}

type history []done

// searchTime bounds the search for an order, which takes milliseconds unless something is very wrong.
const searchTime = time.Minute

// check looks for an order of the calls that respects time and explains every answer, with the keys
// of a history as one object: so it finds an Apply that was seen in part too, not only single keys
// that went astray. The search is porcupine's, after G. Lowe, "Testing for linearizability" (2017).
func (h history) check() error {
	operations := make([]porcupine.Operation, len(h))
	for i, d := range h {
		operations[i] = porcupine.Operation{ClientId: d.caller, Input: d, Call: d.begin, Return: d.end}
	}
	model := porcupine.Model{
		Init:  func() any { return contents{} },
		Step:  func(s, d, _ any) (bool, any) { return s.(contents).explain(d.(done)) },
		Equal: func(a, b any) bool { return maps.Equal(a.(contents), b.(contents)) },
	}
	switch porcupine.CheckOperationsTimeout(model, operations, searchTime) {
	case porcupine.Ok:
		return nil
	case porcupine.Illegal:
		return fmt.Errorf("no order of these calls explains their answers:\n%s", h)
	default:
		return fmt.Errorf("whether an order of these calls explains their answers was not found out within %s:\n%s", searchTime, h)
	}
}

// contents is what the keys hold between two calls. It is never modified.
type contents map[string]string

func (s contents) holds(key string, p *kv.Predicate) bool {
	value, found := s[key]
	return p == nil || p.Holds([]byte(value), found)
}

// explain says whether the answer of a call is possible here, and what the keys hold afterwards. A
// write of unknown outcome does what it can; where in time it does so is for the search to find, and
// that it never happened is the same as its being last.
func (s contents) explain(d done) (bool, contents) {
	if d.method == "Get" {
		value, found := s[string(d.writes[0].Key)]
		if d.value == nil {
			return !found, s
		}
		return found && value == *d.value, s
	}
	fenced := s.holds(fenceKey, d.fence)
	allowed := !slices.ContainsFunc(d.writes, func(w kv.Write) bool { return !s.holds(string(w.Key), w.If) })
	switch {
	case errors.Is(d.err, kv.ErrFenceFailed):
		return !fenced, s
	case errors.Is(d.err, kv.ErrPredicateFailed):
		return !allowed, s
	case fenced && allowed:
		return true, s.with(d.writes)
	default:
		return !d.answered(), s
	}
}

func (s contents) with(writes []kv.Write) contents {
	s = maps.Clone(s)
	for _, w := range writes {
		if w.Value == nil {
			delete(s, string(w.Key))
		} else {
			s[string(w.Key)] = string(w.Value)
		}
	}
	return s
}

func (h history) String() string {
	var b strings.Builder
	sorted := slices.SortedFunc(slices.Values(h), func(x, y done) int { return cmp.Compare(x.begin, y.begin) })
	for _, d := range sorted {
		end := fmt.Sprint(d.end)
		if d.end == math.MaxInt64 {
			end = "?"
		}
		fmt.Fprintf(&b, "%4d to %4s  caller %d: %s: %s\n", d.begin, end, d.caller, d.call, d.answer())
	}
	return b.String()
}

func (d done) answer() string {
	switch {
	case d.err != nil:
		return d.err.Error()
	case d.value != nil:
		return *d.value
	default:
		return "done"
	}
}

func (c call) String() string {
	var b strings.Builder
	b.WriteString(c.method)
	for _, w := range c.writes {
		fmt.Fprintf(&b, " %s", w.Key)
		if w.Value != nil {
			fmt.Fprintf(&b, "=%s", w.Value)
		}
		if w.If != nil {
			fmt.Fprintf(&b, " (if %s)", describe(*w.If))
		}
	}
	if c.fence != nil {
		fmt.Fprintf(&b, " fence (if %s)", describe(*c.fence))
	}
	return b.String()
}

func describe(p kv.Predicate) string {
	switch p {
	case kv.Absent:
		return "absent"
	case kv.Present:
		return "present"
	default:
		return fmt.Sprintf("equal to %s", p.Expected())
	}
}
