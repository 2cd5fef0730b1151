// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"errors"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// branchState is what a branch shows, what its head holds, and what matters of the head's history. The zero value is a branch that does not exist.
type branchState struct {
	exists     bool
	view, head string
	merged     bool // the head has "src" among its ancestors
	atMain     bool // the head is that of "main"
}

const baseView = "b=0"

func newBranchState() branchState {
	return branchState{exists: true, view: baseView, head: baseView, atMain: true}
}

// branchSpec says which states may follow a state by an event: the whole contract of a branch, in the plainest words.
var branchSpec = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{newBranchState()} },
	Step: func(state, input, output any) []any {
		s := state.(branchState)
		if repeated, ok := input.(echo); ok {
			states := []any{s}
			if s.exists {
				k := repeated.of.key
				states = append(states, s.after(repeated.of.step), s.after(step{"delete", k, ""}))
				for _, text := range repeated.others {
					states = append(states, s.after(step{"set", k, text}))
				}
			}
			return states
		}
		if made, ok := input.(publication); ok {
			s.head, s.atMain = made.head, false
			return []any{s}
		}
		e := output.(*event)
		if e.unknown {
			return append(s.keeping(e, s.unknown(e.step)), s)
		}
		if next, ok := s.next(e); ok {
			return s.keeping(e, next)
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// publication is the moment at which a commit becomes the head. What it holds was frozen before, and others may see the branch in between.
type publication struct{ head string }

// keeping returns the states after an event: next, and, where the event gave the branch another head or dropped what is
// uncommitted, those in which a key that others were writing at the same time stayed as it was.
func (s branchState) keeping(e *event, next branchState) []any {
	states := []any{next}
	if !s.exists || !next.exists || !strings.HasPrefix(e.do, "merge") && !strings.HasPrefix(e.do, "reset") && e.do != "change-tree" {
		return states
	}
	for _, k := range e.overlapped {
		for _, state := range slices.Clone(states) {
			kept := state.(branchState)
			view := entriesOf(kept.view)
			copyPart(view, entriesOf(s.view), func(other string) bool { return other == k })
			kept.view = viewOf(view)
			states = append(states, kept)
		}
	}
	return states
}

// next returns the state after an event with a known outcome, and whether that outcome is right in state s.
func (s branchState) next(e *event) (branchState, bool) {
	switch {
	case e.do == "maintain":
		return s, e.err == nil
	case e.do == "create-branch":
		if errors.Is(e.err, graveler.ErrExists) {
			return s, s.exists
		}
		return newBranchState(), e.err == nil && !s.exists
	case errors.Is(e.err, graveler.ErrBranchNotFound), errors.Is(e.err, graveler.ErrRefNotFound):
		return s, !s.exists
	case !s.exists:
		return s, false
	}
	old, present := s.get(e.key)
	switch e.do {
	case "get":
		if errors.Is(e.err, graveler.ErrEntryNotFound) {
			return s, !present
		}
		return s, e.err == nil && present && old == e.value
	case "list":
		return s, e.err == nil && e.view == s.view
	case "commit", "commit-empty":
		if errors.Is(e.err, graveler.ErrNoChanges) {
			return s, e.do == "commit" && (e.views[s.view] || e.movedAway)
		}
		return s, e.err == nil && s.commits(e)
	case "commit-part":
		if errors.Is(e.err, graveler.ErrNoChanges) {
			return s, true // the head had all of the part at some time since the commit's seal, which the model does not know
		}
		part := func(view string) string {
			chosen := map[string]string{}
			copyPart(chosen, entriesOf(view), func(k string) bool { return strings.HasPrefix(k, e.key) })
			return viewOf(chosen)
		}
		return s, e.err == nil && part(e.view) == part(s.view)
	case "merge", "merge-dirty", "reset", "reset-dirty":
		if errors.Is(e.err, graveler.ErrNoChanges) {
			return s, strings.HasPrefix(e.do, "merge") && s.merged || strings.HasPrefix(e.do, "reset") && s.atMain
		}
		if errors.Is(e.err, graveler.ErrDirtyBranch) {
			return s, !strings.HasSuffix(e.do, "-dirty") && s.view != s.head
		}
	case "set-if-absent", "set-if":
		wrong := e.do == "set-if-absent" && present || e.do == "set-if" && old != "0"
		if errors.Is(e.err, graveler.ErrPreconditionFailed) {
			return s, wrong
		}
		return s.after(e.step), e.err == nil && !wrong
	case "put-unless":
		_, wrong := s.get(partner(e.key))
		if errors.Is(e.err, graveler.ErrPreconditionFailed) {
			return s, wrong
		}
		return s.after(e.step), e.err == nil && !wrong
	case "get-both":
		return s, e.err == nil && e.view == s.both(e.key)
	case "delete-branch":
		return branchState{}, e.err == nil
	}
	return s.after(e.step), e.err == nil
}

// both is what a key and its partner hold.
func (s branchState) both(key string) string {
	part := map[string]string{}
	copyPart(part, entriesOf(s.view), func(k string) bool { return k == key || k == partner(key) })
	return viewOf(part)
}

// commits reports whether a commit can hold what it does. What is written while it is under way need not be in it: where the head
// is moved then too, below its changes and what was written since, the head shows there.
func (s branchState) commits(e *event) bool {
	views := []string{s.view}
	for _, k := range e.overlapped {
		for _, view := range slices.Clone(views) {
			without := entriesOf(view)
			copyPart(without, entriesOf(s.head), func(other string) bool { return other == k })
			views = append(views, viewOf(without))
		}
	}
	return slices.Contains(views, e.view)
}

// unknown returns the state if a step whose outcome is unknown took place after all.
func (s branchState) unknown(st step) branchState {
	old, present := s.get(st.key)
	_, unless := s.get(partner(st.key))
	switch {
	case st.do == "create-branch" && !s.exists:
		return newBranchState()
	case !s.exists:
		return s
	case st.do == "delete-branch":
		return branchState{}
	case st.do == "set-if-absent" && present, st.do == "set-if" && old != "0", st.do == "put-unless" && unless:
		return s
	}
	return s.after(st)
}

func (s branchState) get(k string) (text string, present bool) {
	text, present = entriesOf(s.view)[k]
	return text, present
}

// after returns the state after a step that changes it.
func (s branchState) after(st step) branchState {
	view, head := entriesOf(s.view), entriesOf(s.head)
	switch st.do {
	case "set", "set-if-absent", "set-if", "put-unless":
		view[st.key] = st.text
	case "set-both":
		view[st.key], view[partner(st.key)] = st.text, st.text
	case "swap":
		swapped := entriesOf(s.view)
		for to, from := range map[string]string{st.key: partner(st.key), partner(st.key): st.key} {
			delete(swapped, to)
			if text, ok := view[from]; ok {
				swapped[to] = text
			}
		}
		view = swapped
	case "change-tree":
		moved := entriesOf(s.head)
		if _, ok := moved[st.key]; ok {
			delete(moved, st.key)
		} else {
			moved[st.key] = st.text
		}
		view, head = rebased(view, head, moved), moved
		s.atMain = false
	case "delete":
		delete(view, st.key)
	case "delete-prefix":
		for k := range view {
			if strings.HasPrefix(k, st.key) {
				delete(view, k)
			}
		}
	case "reset-prefix":
		copyPart(view, head, func(k string) bool { return strings.HasPrefix(k, st.key) })
	case "reset-key":
		copyPart(view, head, func(k string) bool { return k == st.key })
	case "merge", "merge-dirty":
		moved := entriesOf(s.head)
		moved["a"] = "src"
		view, head = rebased(view, head, moved), moved
		s.merged, s.atMain = true, false
	case "reset", "reset-dirty":
		moved := entriesOf(baseView)
		view, head = rebased(view, head, moved), moved
		s.merged, s.atMain = false, true
	}
	s.view, s.head = viewOf(view), viewOf(head)
	return s
}

// copyPart makes the chosen keys of one map what they are in another.
func copyPart(to, from map[string]string, chosen func(string) bool) {
	for _, k := range []string{"a", "b", "b/c"} {
		if text, ok := from[k]; chosen(k) && ok {
			to[k] = text
		} else if chosen(k) {
			delete(to, k)
		}
	}
}

// rebased returns what a branch shows with its uncommitted changes on another head.
func rebased(view, head, moved map[string]string) map[string]string {
	result := entriesOf(viewOf(moved))
	copyPart(result, view, func(k string) bool {
		before, had := head[k]
		now, has := view[k]
		return had != has || before != now
	})
	return result
}

// entriesOf reads a view, as it is written in states.
func entriesOf(view string) map[string]string {
	entries := map[string]string{}
	for entry := range strings.FieldsSeq(view) {
		k, text, _ := strings.Cut(entry, "=")
		entries[k] = text
	}
	return entries
}

func viewOf(entries map[string]string) string {
	var lines []string
	for k, text := range entries {
		lines = append(lines, k+"="+text)
	}
	slices.Sort(lines)
	return strings.Join(lines, " ")
}
