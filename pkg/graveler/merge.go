// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Strategy says what becomes of an entry that both sides of a merge have changed, and not in the same way.
type Strategy int

const (
	// StrategyNone makes it a conflict.
	StrategyNone Strategy = iota
	SourceWins
	DestWins
)

// PrefixStrategy is a strategy for the keys with a prefix.
type PrefixStrategy struct {
	Prefix   Key
	Strategy Strategy
}

// MergeParams says how to merge. The zero value makes a merge commit, and conflicts are errors.
type MergeParams struct {
	CommitParams // AllowEmpty makes a merge commit also where the destination has everything already
	// Strategy is for the keys that no element of StrategyFor covers; of several that do the longest prefix counts.
	Strategy    Strategy
	StrategyFor []PrefixStrategy
	// Squash makes an ordinary commit, which has the destination as its only parent.
	Squash bool
	// FastForward makes the source the head, without a commit, where the source has all that the destination has.
	FastForward bool
	// AllowDirty keeps uncommitted changes of the destination, on top of the result.
	AllowDirty bool
}

func (p MergeParams) validate() error {
	for _, s := range append([]PrefixStrategy{{Strategy: p.Strategy}}, p.StrategyFor...) {
		if s.Strategy < StrategyNone || s.Strategy > DestWins {
			return fmt.Errorf("%w: unknown merge strategy %d", ErrInvalidValue, s.Strategy)
		}
	}
	return p.CommitParams.Validate()
}

// Conflict is an entry that source and destination have both changed since their merge base, and not in the same way. nil: absent.
type Conflict struct {
	Key               Key
	Base, Left, Right *Value // Left is the destination's, Right the source's
}

// ErrConflict is what a ConflictError matches.
var ErrConflict = errors.New("merge conflict")

// ConflictError says how many conflicts kept a merge, revert or cherry-pick from being made, and which the first ones are.
// MergeConflicts, RevertConflicts and CherryPickConflicts have them all.
type ConflictError struct {
	Count int64
	First []Conflict // ten at most
}

func (e *ConflictError) Error() string {
	if e.Count == 1 {
		return fmt.Sprintf("%v: %s", ErrConflict, printable(e.First[0].Key))
	}
	return fmt.Sprintf("%v: %d entries, the first is %s", ErrConflict, e.Count, printable(e.First[0].Key))
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Merge brings the changes that the commit source has since its merge base with a branch into that branch, as one move of its
// head, and returns the new head. Two entries are the same if key and identity are. It returns a ConflictError where both sides
// changed an entry and no strategy decides, ErrDirtyBranch where the branch has uncommitted changes and they are not allowed, and
// ErrNoChanges where the branch has all of source already. Nothing is changed then. It costs what differs from the merge base on
// either side.
func (g *Graveler) Merge(ctx context.Context, repo RepositoryID, source string, dest BranchID, p MergeParams) (c Commit, err error) {
	defer g.observe("merge", time.Now(), &err)
	head, err := g.merge(ctx, repo, source, dest, p)
	if err != nil {
		return Commit{}, mergeError(repo, source, dest, err)
	}
	return *head.Clone(), nil
}

func (g *Graveler) merge(ctx context.Context, repo RepositoryID, source string, dest BranchID, p MergeParams) (*Commit, error) {
	r, from, err := g.mergeSource(ctx, repo, source, dest, p)
	if err == nil {
		err = checkWritable(r)
	}
	if err != nil {
		return nil, err
	}
	return g.changeHead(ctx, r, dest, headMove{op: OpMerge, actor: p.Committer, allowDirty: p.AllowDirty, build: func(head *Commit) (*Commit, error) {
		return g.buildMerge(ctx, r, head, from, p)
	}})
}

// mergeSource checks what a merge was given, and finds the commit to merge.
func (g *Graveler) mergeSource(ctx context.Context, repo RepositoryID, source string, dest BranchID, p MergeParams) (*Repository, *Commit, error) {
	if err := p.validate(); err != nil {
		return nil, nil, err
	}
	if err := ValidateBranchID(dest); err != nil {
		return nil, nil, err
	}
	return g.resolve(ctx, repo, source)
}

func mergeError(repo RepositoryID, source string, dest BranchID, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("merge %s/%s into %s/%s: %w", repo, source, repo, dest, err)
}

func (g *Graveler) buildMerge(ctx context.Context, repo *Repository, head, source *Commit, p MergeParams) (*Commit, error) {
	m, err := g.merging(ctx, repo, head, source, p)
	if err != nil {
		return nil, err
	}
	switch {
	case m.upToDate(source):
		return nil, ErrNoChanges
	case m.fastForward(head, source):
		return source, nil
	}
	tree, err := m.apply(ctx)
	if err != nil {
		return nil, err
	}
	if p.Squash {
		return child(p.CommitParams, tree, head), nil
	}
	return child(p.CommitParams, tree, head, source), nil
}

// merging is a three-way merge under way.
type merging struct {
	g                         *Graveler
	repo                      *Repository
	base                      CommitID // "" where there is none
	baseTree, leftTree, right MetaRangeID
	params                    MergeParams
}

func (g *Graveler) merging(ctx context.Context, repo *Repository, head, source *Commit, p MergeParams) (*merging, error) {
	m := &merging{g: g, repo: repo, baseTree: g.trees.EmptyTree(), leftTree: head.Tree, params: p}
	base, err := g.mergeBase(ctx, repo, head, source)
	if err == nil && base != nil {
		m.base = base.ID
		m.baseTree, err = g.readableTree(ctx, repo, base)
	}
	if err == nil {
		m.right, err = g.readableTree(ctx, repo, source)
	}
	return m, err
}

// upToDate reports whether the destination has all of the source, and nothing is to be done about it.
func (m *merging) upToDate(source *Commit) bool { return m.base == source.ID && !m.params.AllowEmpty }

// fastForward reports whether the source becomes the head as it is.
func (m *merging) fastForward(head, source *Commit) bool {
	return m.base == head.ID && m.base != source.ID && m.params.FastForward && !m.params.Squash
}

// apply returns the merged tree, or a ConflictError.
func (m *merging) apply(ctx context.Context) (MetaRangeID, error) {
	changes := m.join(ctx)
	tree, err := m.g.trees.Apply(ctx, m.repo.Namespace, m.leftTree, rightSides{changes})
	err = closing(err, changes)
	if errors.Is(err, ErrConflict) {
		return "", cmp.Or(m.refuseConflicts(ctx), err)
	}
	return tree, m.g.unlessGone(ctx, m.repo, err)
}

// refuseConflicts returns a ConflictError where there are conflicts.
func (m *merging) refuseConflicts(ctx context.Context) error {
	all := &ConflictError{}
	err := m.conflicts(ctx, func(c Conflict) bool {
		if all.Count++; len(all.First) < 10 {
			all.First = append(all.First, c)
		}
		return true
	})
	if err == nil && all.Count > 0 {
		return all
	}
	return err
}

// conflicts emits every conflict.
func (m *merging) conflicts(ctx context.Context, emit func(Conflict) bool) error {
	changes := m.join(ctx)
	changes.onConflict = emit
	for changes.Next() { // all that it finds besides conflicts is of no interest
	}
	return m.g.unlessGone(ctx, m.repo, changes.Close())
}

// changes emits what becomes of the destination, or returns a ConflictError and emits nothing.
func (m *merging) changes(ctx context.Context, emit func(Diff) bool) error {
	if err := m.refuseConflicts(ctx); err != nil {
		return err
	}
	changes := m.join(ctx)
	return m.g.unlessGone(ctx, m.repo, closing(emitDiffs(changes, nil, emit), changes))
}

func (m *merging) join(ctx context.Context) *mergeChanges {
	return &mergeChanges{
		theirs: m.g.trees.Diff(ctx, m.repo.Namespace, m.baseTree, m.right),
		ours:   m.g.trees.Diff(ctx, m.repo.Namespace, m.baseTree, m.leftTree),
		params: m.params,
	}
}

// mergeChanges iterates over what a merge changes in the destination, from what that has to what it will have: the source's
// changes since the base, but for those that the destination has made too, and those that it has made otherwise and the strategy
// leaves to it. It joins two sorted streams of differences from the base, one of either side.
type mergeChanges struct {
	theirs, ours Iterator[Diff]
	params       MergeParams
	// onConflict is told each conflict and says whether to go on; nil: the first one ends the iteration with ErrConflict.
	onConflict func(Conflict) bool

	oursReady, oursDone bool
	cur                 Diff
	err                 error
}

func (m *mergeChanges) Next() bool {
	for m.err == nil && m.theirs.Next() {
		d := m.theirs.Item()
		m.cur = d
		own, changed := m.own(d.Key)
		switch {
		case m.err != nil:
			return false
		case !changed:
			return true
		case own.Right.Same(d.Right):
			continue
		}
		m.cur.Left = own.Right
		switch m.strategy(d.Key) {
		case SourceWins:
			return true
		case DestWins:
			continue
		}
		c := Conflict{Key: bytes.Clone(d.Key), Base: d.Left.Clone(), Left: own.Right.Clone(), Right: d.Right.Clone()}
		if m.onConflict == nil {
			m.err = fmt.Errorf("%w: %s", ErrConflict, printable(c.Key))
		} else if !m.onConflict(c) {
			return false
		}
	}
	if m.err == nil {
		m.err = m.theirs.Err()
	}
	return false
}

// own returns the destination's change of key, if it has made one.
func (m *mergeChanges) own(key Key) (Diff, bool) {
	for !m.oursDone && (!m.oursReady || bytes.Compare(m.ours.Item().Key, key) < 0) {
		m.oursReady = m.ours.Next()
		if !m.oursReady {
			m.oursDone = true
			m.err = m.ours.Err()
		}
	}
	if m.oursDone || !bytes.Equal(m.ours.Item().Key, key) {
		return Diff{}, false
	}
	return m.ours.Item(), true
}

func (m *mergeChanges) strategy(key Key) Strategy {
	strategy, longest := m.params.Strategy, -1
	for _, p := range m.params.StrategyFor {
		if bytes.HasPrefix(key, p.Prefix) && len(p.Prefix) > longest {
			strategy, longest = p.Strategy, len(p.Prefix)
		}
	}
	return strategy
}

func (m *mergeChanges) SeekGE(key Key) {
	m.theirs.SeekGE(key)
	m.ours.SeekGE(key)
	m.oursReady, m.oursDone = false, false
}

func (m *mergeChanges) Item() Diff { return m.cur }
func (m *mergeChanges) Err() error { return m.err }

func (m *mergeChanges) Close() error { return closing(m.err, m.theirs, m.ours) }
