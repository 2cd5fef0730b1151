// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// Mode is how the objects of an action are found.
type Mode int

const (
	// EventDriven: by what the branch log says about the past.
	EventDriven Mode = iota + 1
	// Scan: by walking the tree.
	Scan
)

func (m Mode) String() string {
	switch m {
	case EventDriven:
		return "event-driven"
	case Scan:
		return "scan"
	default:
		return fmt.Sprintf("Mode(%d)", int(m))
	}
}

// CompiledAction is an action of a rule of a repository.
type CompiledAction struct {
	lifecycle.Action
	Repository graveler.RepositoryID
	// Versioning is the state of the repository's bucket.
	Versioning catalog.Versioning
	// Active is set where the rule is enabled.
	Active bool
	Mode   Mode
	// RuleHash covers what the rule means for this action: its filter, and what makes the action due. Neither the rule's ID nor
	// how it was written down counts.
	RuleHash Hash
}

// Repository is what Compile needs of a repository.
type Repository struct {
	Configuration lifecycle.Configuration
	Versioning    catalog.Versioning
}

// Snapshot is an immutable set of compiled actions, safe for concurrent use. The actions that it hands out are not to be changed.
type Snapshot struct {
	calendar lifecycle.Calendar
	actions  map[graveler.RepositoryID][]*CompiledAction // without repositories that have none
}

// Compile returns the actions of all rules, disabled ones included. It keeps no reference to the configurations. A configuration
// that is not valid is an error that names the repository. Without any action the result is nil.
func Compile(repositories map[graveler.RepositoryID]Repository, c lifecycle.Calendar) (*Snapshot, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("compile lifecycle rules: %w", err)
	}
	s := &Snapshot{calendar: c, actions: map[graveler.RepositoryID][]*CompiledAction{}}
	for _, id := range slices.Sorted(maps.Keys(repositories)) {
		r := repositories[id]
		if err := r.Configuration.Validate(); err != nil {
			return nil, fmt.Errorf("compile lifecycle rules of repository %s: %w", id, err)
		}
		rules := r.Configuration.Clone().Rules
		for i := range rules {
			for _, a := range rules[i].Actions() {
				mode := Scan
				if a.Kind.Replay() {
					mode = EventDriven
				}
				s.actions[id] = append(s.actions[id], &CompiledAction{
					Action: a, Repository: id, Versioning: r.Versioning, Active: rules[i].Enabled, Mode: mode, RuleHash: ruleHash(&a),
				})
			}
		}
	}
	return s.unlessEmpty(), nil
}

func (s *Snapshot) unlessEmpty() *Snapshot {
	if len(s.actions) == 0 {
		return nil
	}
	return s
}

// Repositories returns those that have actions, by name.
func (s *Snapshot) Repositories() []graveler.RepositoryID {
	if s == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(s.actions))
}

// Actions returns the actions of one repository, in the order of its rules.
func (s *Snapshot) Actions(id graveler.RepositoryID) []*CompiledAction {
	if s == nil {
		return nil
	}
	return s.actions[id]
}

// Of returns the part of s that is about one repository, sharing its actions, or nil where there is none: so every hash and bound
// of a snapshot can be had for one repository.
func (s *Snapshot) Of(id graveler.RepositoryID) *Snapshot {
	actions := s.Actions(id)
	if len(actions) == 0 {
		return nil
	}
	return &Snapshot{calendar: s.calendar, actions: map[graveler.RepositoryID][]*CompiledAction{id: actions}}
}
