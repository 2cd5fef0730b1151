// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"errors"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// branchState is what a branch shows, or that it does not exist.
type branchState struct {
	exists bool
	view   string
}

const baseView = "b=0"

// branchSpec says which states may follow a state by an event: the whole contract of a branch, in the plainest words.
var branchSpec = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{branchState{true, baseView}} },
	Step: func(state, input, output any) []any {
		s := state.(branchState)
		if repeated, ok := input.(echo); ok {
			states := []any{s}
			if s.exists {
				k := repeated.of.key
				states = append(states, branchState{true, s.after(repeated.of.step)}, branchState{true, s.after(step{"delete", k, ""})})
				for _, text := range repeated.others {
					states = append(states, branchState{true, s.after(step{"set", k, text})})
				}
			}
			return states
		}
		e := output.(*event)
		if e.unknown {
			return []any{s, s.unknown(e.step)}
		}
		if next, ok := s.next(e); ok {
			return []any{next}
		}
		return nil
	},
	Equal: func(a, b any) bool { return a == b },
}).ToModel()

// next returns the state after an event with a known outcome, and whether that outcome is right in state s.
func (s branchState) next(e *event) (branchState, bool) {
	switch {
	case e.do == "maintain":
		return s, e.err == nil
	case e.do == "create-branch":
		if errors.Is(e.err, graveler.ErrExists) {
			return s, s.exists
		}
		return branchState{true, baseView}, e.err == nil && !s.exists
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
			return s, e.do == "commit" && e.views[s.view]
		}
		return s, e.err == nil && e.view == s.view
	case "commit-part": // whatever it takes, the branch shows what it did
		return s, e.err == nil || errors.Is(e.err, graveler.ErrNoChanges)
	case "set-if-absent", "set-if":
		wrong := e.do == "set-if-absent" && present || e.do == "set-if" && old != "0"
		if errors.Is(e.err, graveler.ErrPreconditionFailed) {
			return s, wrong
		}
		return branchState{true, s.after(e.step)}, e.err == nil && !wrong
	case "delete-branch":
		return branchState{}, e.err == nil
	}
	return branchState{true, s.after(e.step)}, e.err == nil
}

// unknown returns the state if a step whose outcome is unknown took place after all.
func (s branchState) unknown(st step) branchState {
	old, present := s.get(st.key)
	switch {
	case st.do == "create-branch" && !s.exists:
		return branchState{true, baseView}
	case !s.exists:
		return s
	case st.do == "delete-branch":
		return branchState{}
	case st.do == "set-if-absent" && present, st.do == "set-if" && old != "0":
		return s
	}
	return branchState{true, s.after(st)}
}

func (s branchState) get(k string) (text string, present bool) {
	for entry := range strings.FieldsSeq(s.view) {
		if text, ok := strings.CutPrefix(entry, k+"="); ok {
			return text, true
		}
	}
	return "", false
}

// after returns the view after a write.
func (s branchState) after(st step) string {
	var entries []string
	for entry := range strings.FieldsSeq(s.view) {
		name, _, _ := strings.Cut(entry, "=")
		gone := st.do == "delete-prefix" && strings.HasPrefix(name, st.key) || strings.Contains("delete set set-if-absent set-if", st.do) && name == st.key
		if !gone {
			entries = append(entries, entry)
		}
	}
	if strings.HasPrefix(st.do, "set") {
		entries = append(entries, st.key+"="+st.text)
	}
	slices.Sort(entries)
	return strings.Join(entries, " ")
}
