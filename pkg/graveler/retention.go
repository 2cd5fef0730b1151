// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// RetentionRule says how much of the past is kept of the branches whose names match a pattern, live or deleted. In a pattern '*'
// stands for any characters, slashes included, and '?' for one.
type RetentionRule struct {
	Pattern string
	// Days is how many days of the branch's history are kept: its log, and the commits made within them, with those that they followed. 0: all of it.
	Days int
}

// MaxRetentionDays is the largest number of days that a rule can name.
const MaxRetentionDays = 36_500

// Matches reports whether the rule is about a branch of this name, unless one before it is.
func (r RetentionRule) Matches(id BranchID) bool { return matches(r.Pattern, string(id)) }

func (r RetentionRule) validate() error {
	why := unmatchable(r.Pattern)
	switch {
	case why != "":
		return fmt.Errorf("%w: no branch name can match the pattern %q: it %s", ErrInvalidValue, r.Pattern, why)
	case r.Days < 0 || r.Days > MaxRetentionDays:
		return fmt.Errorf("%w: retention of %q for %d days: from 1 to %d can be kept, or 0 for all", ErrInvalidValue, r.Pattern, r.Days, MaxRetentionDays)
	}
	return nil
}

// retentionSetting is the setting that holds the rules.
const retentionSetting = "retention"

const maxRetentionRules = 1000

type retentionDocument struct {
	Rules []retentionEntry `json:"rules"`
}

type retentionEntry struct {
	Branches string `json:"branches"`
	Days     int    `json:"days"`
}

// retentionRules are the rules of a repository. The first that matches a branch counts; of one that none matches everything is kept.
type retentionRules []RetentionRule

// horizon returns the time before which the history of a branch goes, in nanoseconds since the epoch; 0 where it is kept.
func (rules retentionRules) horizon(id BranchID, now time.Time) int64 {
	for _, r := range rules {
		if !r.Matches(id) {
			continue
		}
		if r.Days == 0 {
			return 0
		}
		return max(0, now.Add(-time.Duration(r.Days)*24*time.Hour).UnixNano())
	}
	return 0
}

// Retention returns the retention rules of a repository: the first that matches a branch's name counts, and of a branch that none
// matches everything is kept.
func (g *Graveler) Retention(ctx context.Context, repo RepositoryID) ([]RetentionRule, error) {
	r, err := g.repository(ctx, repo)
	if err != nil {
		return nil, err
	}
	return g.retentionRules(ctx, r)
}

// SetRetention replaces the retention rules of a repository; nothing is removed before Retain is called.
func (g *Graveler) SetRetention(ctx context.Context, repo RepositoryID, rules []RetentionRule) error {
	r, err := g.writable(ctx, repo)
	if err != nil {
		return err
	}
	data, err := encodeRetention(rules)
	if err == nil {
		err = g.updateSetting(ctx, r, retentionSetting, func([]byte) ([]byte, error) { return data, nil })
	}
	if err != nil {
		return fmt.Errorf("set retention of %s: %w", repo, err)
	}
	return nil
}

func (g *Graveler) retentionRules(ctx context.Context, r *Repository) (retentionRules, error) {
	data, _, err := g.refs.GetSetting(ctx, r, retentionSetting)
	if errors.Is(err, ErrSettingNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	rules, err := decodeRetention(data)
	if err != nil { // to overlook a rule would be to remove what it keeps
		return nil, fmt.Errorf("setting %s: %w: %w", retentionSetting, ErrCorrupt, err)
	}
	return rules, nil
}

func encodeRetention(rules []RetentionRule) ([]byte, error) {
	if len(rules) > maxRetentionRules {
		return nil, fmt.Errorf("%w: %d retention rules, at most %d are allowed", ErrTooLarge, len(rules), maxRetentionRules)
	}
	d := retentionDocument{Rules: []retentionEntry{}}
	for _, r := range rules {
		if err := r.validate(); err != nil {
			return nil, err
		}
		d.Rules = append(d.Rules, retentionEntry{Branches: r.Pattern, Days: r.Days})
	}
	return json.Marshal(d)
}

func decodeRetention(data []byte) (retentionRules, error) {
	var d retentionDocument
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return nil, err
	}
	var rules retentionRules
	for _, e := range d.Rules {
		r := RetentionRule{Pattern: e.Branches, Days: e.Days}
		if err := r.validate(); err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}
