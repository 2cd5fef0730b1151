// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Actions is a set of what can be done to a branch.
type Actions uint8

// The numbers are stored; they never change.
const (
	// ActionStage is every change of what is uncommitted: writes, deletions, also of a prefix, and resets of staged changes.
	ActionStage Actions = 1 << iota
	ActionCommit
	// ActionMove is every move of the head but a commit: merge, revert, cherry-pick, import, change of its tree, and reset to a ref.
	ActionMove
	ActionDelete
)

func actionNames() map[string]Actions {
	return map[string]Actions{"stage": ActionStage, "commit": ActionCommit, "move": ActionMove, "delete": ActionDelete}
}

// ParseAction returns the action that a name stands for: stage, commit, move or delete. Another name is ErrInvalidValue.
func ParseAction(name string) (Actions, error) {
	a, ok := actionNames()[name]
	if !ok {
		return 0, fmt.Errorf("%w: action %q is none of stage, commit, move, delete", ErrInvalidValue, name)
	}
	return a, nil
}

// Names returns the names of the actions in the set, in the order in which they are declared.
func (a Actions) Names() []string {
	var names []string
	for name, one := range actionNames() {
		if a&one != 0 {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(x, y string) int { return int(actionNames()[x]) - int(actionNames()[y]) })
	return names
}

// allow is the one place in which it is decided whether something may be done to a branch. 0 stands for upkeep, which always may.
func (b *Branch) allow(a Actions) error {
	switch {
	case a == 0:
		return nil
	case b.ReadOnly:
		return fmt.Errorf("the repository is %w", ErrReadOnly)
	case b.Protected&a != 0:
		return fmt.Errorf("%w: %s is forbidden", ErrProtected, strings.Join((b.Protected&a).Names(), ", "))
	}
	return nil
}

// ProtectionRule forbids actions on the branches whose names match a pattern, now and in the future. In a pattern '*' stands for
// any characters, slashes included, and '?' for one.
type ProtectionRule struct {
	Pattern string
	Forbid  Actions
}

func (r ProtectionRule) validate() error {
	why := unmatchable(r.Pattern)
	switch {
	case why != "":
		return fmt.Errorf("%w: no branch name can match the pattern %q: it %s", ErrInvalidValue, r.Pattern, why)
	case r.Forbid == 0 || len((r.Forbid).Names()) == 0:
		return fmt.Errorf("%w: protection rule %q forbids nothing", ErrInvalidValue, r.Pattern)
	}
	return nil
}

// unmatchable says why a pattern matches no name, whatever its '*' and '?' stand for: which rule of names the rest breaks.
func unmatchable(pattern string) string {
	return brokenRefRule(strings.NewReplacer("*", "x", "?", "x").Replace(pattern))
}

// matches reports whether a branch name matches a pattern. After a mismatch it goes back to the last '*' and lets that take one character more.
func matches(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, resume := -1, 0
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, resume = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			resume++
			i, j = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(string(p[i:]), "*") == ""
}

// protectionSetting is the setting that holds the rules.
const protectionSetting = "branch-protection"

// maxProtectionRules keeps the document small, which is read for every branch that is created.
const maxProtectionRules = 1000

type protectionDocument struct {
	Rules []protectionEntry `json:"rules"`
}

type protectionEntry struct {
	Branches string   `json:"branches"`
	Forbid   []string `json:"forbid"`
}

// BranchProtection returns the protection rules of a repository. What any of the matching rules forbids is forbidden.
func (g *Graveler) BranchProtection(ctx context.Context, repo RepositoryID) ([]ProtectionRule, error) {
	r, err := g.repository(ctx, repo)
	if err != nil {
		return nil, err
	}
	return g.protectionRules(ctx, r)
}

// ProtectBranches replaces the protection rules of a repository by what change makes of them, which is called again where others
// change them at the same time; what it returns an error for stays as it was. When it returns nil no process can do any more what
// the new rules forbid. After another error the rules may have changed for some branches: repeat it. It costs a write for every
// branch of the repository.
func (g *Graveler) ProtectBranches(ctx context.Context, repo RepositoryID, change func([]ProtectionRule) ([]ProtectionRule, error)) error {
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	err = g.updateSetting(ctx, r, protectionSetting, func(old []byte) ([]byte, error) {
		before, err := decodeProtection(old)
		var rules []ProtectionRule
		if err == nil {
			rules, err = change(before)
		}
		if err != nil {
			return nil, err
		}
		return encodeProtection(rules)
	})
	if err == nil {
		err = g.protectAll(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("protect branches of %s: %w", repo, err)
	}
	return nil
}

// protectAll writes into every branch record what rules and repository say of it. Each record is written, also where nothing
// changes: a process that is about to write what earlier rules said must fail.
func (g *Graveler) protectAll(ctx context.Context, r *Repository) error {
	for b, err := range g.refs.ScanBranches(ctx, r, "") {
		if err == nil && b.State == BranchLive {
			err = g.protect(ctx, r, b.ID)
		}
		if err != nil && !errors.Is(err, ErrBranchNotFound) {
			return err
		}
	}
	return nil
}

// protect reads the rules after the record: if they change later, who changes them comes to the record later too. Where writes
// are not fenced with the record, those that are on their way under the token of now must end where nobody looks: it is sealed
// and folded.
func (g *Graveler) protect(ctx context.Context, r *Repository, id BranchID) error {
	unfenced := !g.staging.Limits().CheapFences
	_, err := g.moveBranch(ctx, r, id, 0, func(cur *Branch) (plan, error) {
		seal := func(*Branch) (*Commit, error) { return nil, nil }
		if unfenced {
			p, err := g.addItems(ctx, r, cur)
			if err != nil {
				return nil, err
			}
			seal = p
		}
		return func(next *Branch) (*Commit, error) {
			if err := g.setProtection(ctx, r, next); err != nil {
				return nil, err
			}
			return seal(next)
		}, nil
	})
	if err == nil && unfenced {
		_, err = g.compact(ctx, r, id, 1)
	}
	return err
}

// setProtection sets what rules and repository say of a branch.
func (g *Graveler) setProtection(ctx context.Context, r *Repository, b *Branch) error {
	now, err := g.refs.GetRepository(ctx, r.ID)
	if err != nil {
		return err
	}
	rules, err := g.protectionRules(ctx, r)
	b.ReadOnly, b.Protected = now.ReadOnly, rules.forbid(b.ID)
	return err
}

// protectionRules are the rules of a repository.
type protectionRules []ProtectionRule

// forbid returns what the rules forbid on a branch.
func (rules protectionRules) forbid(id BranchID) Actions {
	var forbidden Actions
	for _, rule := range rules {
		if matches(rule.Pattern, string(id)) {
			forbidden |= rule.Forbid
		}
	}
	return forbidden
}

// Forbidden returns what rules forbid on a branch.
func Forbidden(rules []ProtectionRule, id BranchID) Actions { return protectionRules(rules).forbid(id) }

// protectNew makes sure that a branch has what the rules said after it was written: who changed them before may not have seen it.
func (g *Graveler) protectNew(ctx context.Context, r *Repository, b *Branch) (*Branch, error) {
	now := b.Clone()
	if err := g.setProtection(ctx, r, now); err != nil || now.Protected == b.Protected && now.ReadOnly == b.ReadOnly {
		return b, err
	}
	if err := g.protect(ctx, r, b.ID); err != nil {
		return nil, err
	}
	return g.liveBranch(ctx, r, b.ID)
}

func (g *Graveler) protectionRules(ctx context.Context, r *Repository) (protectionRules, error) {
	data, _, err := g.refs.GetSetting(ctx, r, protectionSetting)
	if err != nil && !errors.Is(err, ErrSettingNotFound) {
		return nil, err
	}
	return decodeProtection(data)
}

func encodeProtection(rules []ProtectionRule) ([]byte, error) {
	if len(rules) > maxProtectionRules {
		return nil, fmt.Errorf("%w: %d protection rules, at most %d are allowed", ErrTooLarge, len(rules), maxProtectionRules)
	}
	d := protectionDocument{Rules: []protectionEntry{}}
	for _, r := range rules {
		if err := r.validate(); err != nil {
			return nil, err
		}
		d.Rules = append(d.Rules, protectionEntry{Branches: r.Pattern, Forbid: r.Forbid.Names()})
	}
	return json.Marshal(d)
}

// decodeProtection refuses what it does not understand: to overlook a rule would be to lift a protection.
func decodeProtection(data []byte) (protectionRules, error) {
	if data == nil {
		return nil, nil
	}
	rules, err := parseProtection(data)
	if err != nil {
		return nil, fmt.Errorf("setting %s: %w: %w", protectionSetting, ErrCorrupt, err)
	}
	return rules, nil
}

func parseProtection(data []byte) (protectionRules, error) {
	var d protectionDocument
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return nil, err
	}
	var rules protectionRules
	for _, e := range d.Rules {
		r := ProtectionRule{Pattern: e.Branches}
		for _, name := range e.Forbid {
			a, err := ParseAction(name)
			if err != nil {
				return nil, err
			}
			r.Forbid |= a
		}
		if err := r.validate(); err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// SetReadOnly makes a repository read-only, or writable again. When it returns nil no process changes anything in a read-only one
// any more. After an error it may be so for some branches: repeat it. It costs a write for every branch.
func (g *Graveler) SetReadOnly(ctx context.Context, repo RepositoryID, readOnly bool) error {
	r, err := g.repository(ctx, repo)
	for err == nil {
		next := *r
		next.ReadOnly, next.Nonce = readOnly, newNonce()
		if _, err = g.refs.PutRepository(ctx, &next); !errors.Is(err, ErrChanged) {
			break
		}
		r, err = g.repository(ctx, repo)
	}
	if err == nil {
		g.repositories.forget(repo)
		err = g.protectAll(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("make repository %s read-only: %t: %w", repo, readOnly, err)
	}
	return nil
}
