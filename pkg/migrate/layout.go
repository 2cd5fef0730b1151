// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"iter"
	"slices"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// layout is how a deployment keeps its rows: in tables (tables.go), or as keys and values (keyvalue.go). It reads them over one
// connection, and so one thing at a time.
type layout interface {
	rowReader
	surveyor
}

// rowReader reads what is carried over.
type rowReader interface {
	// table names where rows of a kind are, for people; those of settingItem are where the repositories are.
	table(k kind) string
	// repositories yields those that are in use, by ID.
	repositories(ctx context.Context) iter.Seq2[repositoryRow, error]
	settings(ctx context.Context, repo repositoryRow) (settingsRow, error)
	branches(ctx context.Context, repo repositoryRow) iter.Seq2[branchRow, error] // by ID
	tags(ctx context.Context, repo repositoryRow) iter.Seq2[tagRow, error]        // by ID
	commits(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error]  // by ID
	// unsortedCommits yields the commits in any order: sorting them takes the database longer than the rest.
	unsortedCommits(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error]
	// commitLinks yields them in any order, with what their graph needs and no more.
	commitLinks(ctx context.Context, repo repositoryRow) iter.Seq2[commitRow, error]
	// staged yields what is staged under tokens, by key. Of a key that several have it is the row of the first.
	staged(ctx context.Context, tokens []string) iter.Seq2[stagedRow, error]
}

// surveyor answers what a plan asks besides.
type surveyor interface {
	// countStaged counts the rows under tokens.
	countStaged(ctx context.Context, tokens []string) (int64, error)
	// suspects yields the rows under tokens that a branch has whose keys, or values of more than so many bytes, are looked at more closely.
	suspects(ctx context.Context, owned func(token string) bool, valueBytes int) iter.Seq2[suspectRow, error]
	// hasKey reports whether there is a row of a key under tokens.
	hasKey(ctx context.Context, tokens []string, key []byte) (bool, error)
	// leftBehind yields what is not carried over; owned says whether a branch has a token.
	leftBehind(ctx context.Context, owned func(token string) bool) iter.Seq2[LeftBehind, error]
	// unreadable says which branches show more than what their tokens have.
	unreadable(ctx context.Context) iter.Seq2[*RowError, error]
	// bytes is how much the rows take, with their indexes.
	bytes(ctx context.Context) (int64, error)
}

// foundLayout is one that a database has.
type foundLayout struct {
	on      func(connection) layout
	version int64
	table   string // one that has to be there
}

// suspectRow is a staged row with the token that it is under.
type suspectRow struct {
	token string
	stagedRow
	unreadable error // why its value cannot be read
}

// settingsRow is what a repository is set to besides.
type settingsRow struct {
	metadata map[string]string
	rules    []graveler.ProtectionRule
	badRules error // why they cannot be said here
}

// protect adds a rule to those of its pattern.
func (s *settingsRow) protect(pattern string, forbid graveler.Actions) {
	at := slices.IndexFunc(s.rules, func(r graveler.ProtectionRule) bool { return r.Pattern == pattern })
	switch {
	case forbid == 0:
	case at >= 0:
		s.rules[at].Forbid |= forbid
	default:
		s.rules = append(s.rules, graveler.ProtectionRule{Pattern: pattern, Forbid: forbid})
	}
}
