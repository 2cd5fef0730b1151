// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// origin is a repository of the source: its row and branches, and the graph of its commits.
type origin struct {
	*reader
	repositoryRow
	began    int64
	branches []originBranch // by name
	refused  []branchRow    // branches that cannot be carried over
	history  *history
	// root is the first commit that a repository is given which has neither commits nor branches.
	root *graveler.Commit
	// tree turns the metarange of a commit, which has a place in the history, into a tree.
	tree func(at int32, metarange string) (graveler.MetaRangeID, error)
	// value turns what is staged into what the target has of it.
	value func(stagedRow) (graveler.Entry, error)
}

type originBranch struct {
	name        string
	tokens      []string
	hidden      bool
	head, start int32 // where its log begins and ends, in the history
}

// openOrigin reads the branches of a repository, and makes its graph of rows, which come in any order. What is wrong is noted,
// and left out if note wants to go on.
func (m *Migration) openOrigin(ctx context.Context, s *source, r *reader, row repositoryRow, commits iter.Seq2[commitRow, error], began int64, note noteRow) (*origin, error) {
	emptyTree := m.emptyTree()
	o := &origin{reader: r, repositoryRow: row, began: began, value: stagedRow.entry, tree: func(_ int32, metarange string) (graveler.MetaRangeID, error) {
		return ownTree(metarange, emptyTree), nil
	}}
	if s.trees != nil {
		o.value = func(v stagedRow) (graveler.Entry, error) { return lakeFSEntry(v, row.namespace) }
	}
	var err error
	if o.history, err = readHistory(commits, began, m.converts(s), func(id string, reason error) error {
		return note(o.rowError(commitItem, id, reason))
	}); err != nil {
		return nil, err
	}
	if err := o.readBranches(ctx, note); err != nil {
		return nil, err
	}
	created, err := timeOf(row.created)
	if err != nil {
		return o, note(o.rowError(settingItem, "", err))
	}
	if len(o.history.commits) == 0 && len(o.branches)+len(o.refused) == 0 {
		o.root = rootCommit(row.id, created, min(max(created.UnixNano(), 1), began), emptyTree)
		return o, nil
	}
	if slices.ContainsFunc(o.refused, func(b branchRow) bool { return b.id == row.defaultBranch }) {
		return o, nil // which has been noted
	}
	if !slices.ContainsFunc(o.branches, func(b originBranch) bool { return b.name == row.defaultBranch }) {
		return o, note(o.rowError(settingItem, "", fmt.Errorf("its default branch %s does not exist", quoted(row.defaultBranch))))
	}
	o.startLogs()
	return o, nil
}

// ownTree is the tree that a metarange of ours is: the same, except that the tables have "" for the empty one.
func ownTree(metarange string, emptyTree graveler.MetaRangeID) graveler.MetaRangeID {
	if metarange == "" {
		return emptyTree
	}
	return graveler.MetaRangeID(metarange)
}

func (o *origin) readBranches(ctx context.Context, note noteRow) error {
	for row, err := range o.layout.branches(ctx, o.repositoryRow) {
		if bad := badRecord(err); bad != nil {
			if err := note(bad); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		b, err := o.branch(row)
		if err != nil {
			if err := note(o.rowError(branchItem, row.id, err)); err != nil {
				return err
			}
			o.refused = append(o.refused, row)
			continue
		}
		o.branches = append(o.branches, b)
	}
	return nil
}

func (o *origin) branch(row branchRow) (b originBranch, err error) {
	if err := graveler.ValidateBranchID(graveler.BranchID(row.id)); err != nil {
		return b, err
	}
	if len(row.tokens) == 0 {
		return b, errors.New("it has no staging token")
	}
	if row.commit == "" {
		return b, errors.New("it has no commit")
	}
	id, err := parseCommitID(row.commit)
	if err != nil {
		return b, err
	}
	head := o.history.find(id)
	if head < 0 {
		return b, fmt.Errorf("its commit %s does not exist", row.commit)
	}
	return originBranch{name: row.id, tokens: row.tokens, hidden: row.hidden, head: int32(head)}, nil
}

// startLogs divides the history among the logs, the default branch's first.
func (o *origin) startLogs() {
	order := make([]*originBranch, 0, len(o.branches))
	for i := range o.branches {
		order = append(order, &o.branches[i])
	}
	slices.SortStableFunc(order, func(a, b *originBranch) int {
		switch {
		case a.name == o.defaultBranch:
			return -1
		case b.name == o.defaultBranch:
			return 1
		}
		return 0
	})
	heads := make([]int32, len(order))
	for i, b := range order {
		heads[i] = b.head
	}
	for i, start := range o.history.logs(heads) {
		order[i].start = start
	}
}

// items yields all that the repository has. The first row that cannot be carried over is the last thing that it yields, as an
// error. What it yields may be kept.
func (o *origin) items(ctx context.Context) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) {
		for _, part := range []func(context.Context, func(*item) bool) error{o.settingItems, o.tagItems, o.commitItems, o.branchItems} {
			more := true
			err := part(ctx, func(i *item) bool {
				more = yield(i, nil)
				return more
			})
			if !more {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

func (o *origin) rowError(k kind, key string, reason error) *RowError {
	return &RowError{Table: o.table(k), Repository: o.id, Key: key, Reason: reason}
}

func (o *origin) settingItems(ctx context.Context, emit func(*item) bool) error {
	settings, err := o.documents(ctx)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if !emit(&item{kind: settingItem, key: s.Name, document: s.Document}) {
			return nil
		}
	}
	return nil
}

// documents returns the settings as the target keeps them, by name.
func (o *origin) documents(ctx context.Context) ([]graveler.Setting, error) {
	row, err := o.settings(ctx, o.repositoryRow)
	if err != nil {
		return nil, err
	}
	var settings []graveler.Setting
	add := func(s graveler.Setting, err error) error {
		if err != nil {
			return o.rowError(settingItem, "", err)
		}
		settings = append(settings, s)
		return nil
	}
	if row.badRules != nil {
		return nil, o.rowError(settingItem, protectionKey, row.badRules)
	}
	if len(row.rules) > 0 {
		if err := add(graveler.ProtectionSetting(row.rules)); err != nil {
			return nil, err
		}
	}
	if len(row.metadata) > 0 {
		if err := add(graveler.MetadataSetting(row.metadata)); err != nil {
			return nil, err
		}
	}
	return settings, nil
}

func (o *origin) tagItems(ctx context.Context, emit func(*item) bool) error {
	for row, err := range o.tags(ctx, o.repositoryRow) {
		if err != nil {
			return err
		}
		if _, err := o.taggedCommit(row); err != nil {
			return o.rowError(tagItem, row.id, err)
		}
		if !emit(&item{kind: tagItem, key: row.id, head: graveler.CommitID(row.commit)}) {
			return nil
		}
	}
	return nil
}

// taggedCommit returns the place of the commit that a tag is on.
func (o *origin) taggedCommit(row tagRow) (int32, error) {
	if err := graveler.ValidateTagID(graveler.TagID(row.id)); err != nil {
		return 0, err
	}
	if _, taken := slices.BinarySearchFunc(o.branches, row.id, func(b originBranch, name string) int { return strings.Compare(b.name, name) }); taken {
		return 0, errors.New("there is a branch of that name")
	}
	id, err := parseCommitID(row.commit)
	at := o.history.find(id)
	if err == nil && at < 0 {
		err = fmt.Errorf("its commit %s does not exist", row.commit)
	}
	return int32(at), err
}

func (o *origin) commitItems(ctx context.Context, emit func(*item) bool) error {
	if o.root != nil {
		emit(&item{kind: commitItem, key: string(o.root.ID), commit: o.root, digest: o.root.Digest()})
		return nil
	}
	at := int32(0)
	for row, err := range o.commits(ctx, o.repositoryRow) {
		if err != nil {
			return err
		}
		c, err := o.commit(row, at)
		if err != nil {
			return o.rowError(commitItem, row.id, err)
		}
		if !emit(&item{kind: commitItem, key: row.id, commit: c, digest: c.Nonce}) {
			return nil
		}
		at++
	}
	return nil
}

// commit returns the commit that a row becomes, which is the one at a place in the history.
func (o *origin) commit(row commitRow, at int32) (*graveler.Commit, error) {
	if err := row.check(); err != nil {
		return nil, err
	}
	if int(at) >= len(o.history.commits) || string(o.history.id(at)) != row.id {
		return nil, errors.New("it was not there when the history was read")
	}
	created, err := timeOf(row.created)
	if err != nil {
		return nil, err
	}
	tree, err := o.tree(at, row.tree)
	if err != nil {
		return nil, err
	}
	c := &graveler.Commit{
		ID: graveler.CommitID(row.id), Version: graveler.CarriedVersion + row.version, Committer: row.committer, Message: row.message, Tree: tree,
		CreatedAt: created, Metadata: row.metadata, Generation: int64(o.history.commits[at].generation), LogTime: o.history.commits[at].logTime,
	}
	for _, p := range o.history.parentsOf(at) {
		c.Parents = append(c.Parents, o.history.id(p))
	}
	c.Nonce = c.Digest()
	return c, nil
}

func (o *origin) branchItems(ctx context.Context, emit func(*item) bool) error {
	settings, err := o.settings(ctx, o.repositoryRow)
	if err != nil {
		return err
	}
	if o.root != nil {
		m := graveler.Move{Time: o.root.LogTime, Op: graveler.OpCreate, New: o.root.ID}
		emit(&item{kind: branchItem, branch: o.defaultBranch, head: o.root.ID, move: m, protected: graveler.Forbidden(settings.rules, graveler.BranchID(o.defaultBranch)), readOnly: o.readOnly})
		return nil
	}
	for _, b := range o.branches {
		chain := o.history.chain(b.start, b.head)
		last := len(chain) - 1
		forbidden := graveler.Forbidden(settings.rules, graveler.BranchID(b.name))
		if !emit(&item{kind: branchItem, branch: b.name, head: o.history.id(b.head), hidden: b.hidden, move: o.history.move(chain, last), protected: forbidden, readOnly: o.readOnly}) {
			return nil
		}
		for i := range last {
			m := o.history.move(chain, i)
			if !emit(&item{kind: moveItem, branch: b.name, key: timeKey(m.Time), move: m}) {
				return nil
			}
		}
		for row, err := range o.staged(ctx, b.tokens) {
			if err != nil {
				return err
			}
			e, err := o.value(row)
			if err != nil {
				return o.rowError(entryItem, "branch "+b.name+", key "+string(row.key), err)
			}
			if !emit(&item{kind: entryItem, branch: b.name, key: string(e.Key), value: e.Value}) {
				return nil
			}
		}
	}
	return nil
}

// nameHash is what is made up instead of chance, so that it is the same each time.
func nameHash(parts ...string) [32]byte {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return [32]byte(h.Sum(nil))
}

func hexOf(b [32]byte) string { return hex.EncodeToString(b[:]) }
