// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

var (
	someKeys     = rapid.SampledFrom([]string{"a", "a/b", "a/b/c", "b", "b/\xff", "\x00v", "c/x", "d"})
	someTexts    = rapid.SampledFrom([]string{"", "1", "2", "\xff\x00"})
	someBranches = rapid.SampledFrom([]graveler.BranchID{"main", "dev", "dev/x", "dev-x"})
)

// change does something to a repository at random. What is refused is fine: branches need not exist.
func change(t *rapid.T, s store) {
	ctx := context.Background()
	b, k, n := someBranches.Draw(t, "branch"), someKeys.Draw(t, "key"), rapid.IntRange(0, 99).Draw(t, "n")
	var err error
	switch do := rapid.SampledFrom([]string{
		"set", "set", "set", "delete", "delete prefix", "commit", "commit", "commit part", "branch", "delete branch", "restore", "merge", "reset", "reset staged", "compact", "tag", "untag", "setting", "hide",
	}).Draw(t, "do"); do {
	case "set":
		err = s.Set(ctx, "lake", b, key(k), value(someTexts.Draw(t, "text")))
	case "delete":
		err = s.SetMany(ctx, "lake", b, []graveler.Entry{{Key: key(k)}}) // a tombstone, whether or not there is something
	case "delete prefix":
		err = s.DeletePrefix(ctx, "lake", b, key(k[:n%len(k)]))
	case "commit":
		_, err = s.Commit(ctx, "lake", b, graveler.CommitParams{Message: "m \u2028<&>", Committer: "ann", Metadata: map[string]string{"k": "v", "j": "w"}, AllowEmpty: n%2 == 0})
	case "commit part":
		_, err = s.Commit(ctx, "lake", b, graveler.CommitParams{Prefixes: []graveler.Key{key(k)}})
	case "branch":
		_, err = s.CreateBranch(ctx, "lake", b, string(someBranches.Draw(t, "from")))
	case "delete branch":
		err = s.DeleteBranch(ctx, "lake", b, true)
	case "restore":
		_, err = s.RestoreBranch(ctx, "lake", b, "")
	case "merge":
		_, err = s.Merge(ctx, "lake", string(someBranches.Draw(t, "source")), b, graveler.MergeParams{Strategy: graveler.SourceWins, AllowDirty: n%2 == 0})
	case "reset":
		_, err = s.Reset(ctx, "lake", b, fmt.Sprint(someBranches.Draw(t, "to"), "~", n%3), graveler.ResetParams{AllowDirty: true})
	case "reset staged":
		err = s.ResetStaged(ctx, "lake", b, key(k))
	case "compact":
		err = s.Compact(ctx, "lake", b)
	case "tag":
		_, err = s.CreateTag(ctx, "lake", graveler.TagID(fmt.Sprint("v", n%3)), string(b))
	case "untag":
		err = s.DeleteTag(ctx, "lake", graveler.TagID(fmt.Sprint("v", n%3)))
	default:
		err = changeRecord(s, do, b, n)
	}
	for _, fine := range []error{graveler.ErrNotFound, graveler.ErrExists, graveler.ErrNoChanges, graveler.ErrDirtyBranch, graveler.ErrDefaultBranch} {
		if errors.Is(err, fine) {
			return
		}
	}
	require.NoError(t, err)
}

// changeRecord does what has no operation yet.
func changeRecord(s store, do string, id graveler.BranchID, n int) error {
	ctx := context.Background()
	r, err := s.refs.GetRepository(ctx, "lake")
	if err != nil {
		return err
	}
	if do == "hide" {
		b, err := s.refs.GetBranch(ctx, r, id)
		if err == nil {
			b.Hidden = !b.Hidden
			_, err = s.refs.PutBranch(ctx, r, b)
		}
		return err
	}
	name := fmt.Sprint("setting-", n%3)
	_, stamp, err := s.refs.GetSetting(ctx, r, name)
	if err != nil && !errors.Is(err, graveler.ErrSettingNotFound) {
		return err
	}
	if stamp != nil && n%2 == 0 {
		return s.refs.RemoveSetting(ctx, r, name, stamp)
	}
	_, err = s.refs.PutSetting(ctx, r, name, fmt.Append(nil, n, "\xff"), stamp)
	return err
}

// look writes down everything that can be read of a repository, but for what is new in a copy.
func look(t fataler, s store, id graveler.RepositoryID) string {
	ctx := context.Background()
	var text strings.Builder
	r, err := s.refs.GetRepository(ctx, id)
	require.NoError(t, err)
	fmt.Fprintln(&text, r.DefaultBranch, r.CreatedAt, r.ReadOnly, r.State)
	for tag := range all(t, s.ListTags(ctx, id, "")) {
		fmt.Fprintln(&text, "tag", tag.ID, tag.Commit)
	}
	for name := range all(t, s.refs.ScanSettings(ctx, r)) {
		document, _, err := s.refs.GetSetting(ctx, r, name)
		require.NoError(t, err)
		fmt.Fprintf(&text, "setting %s %q\n", name, document)
	}
	for d := range all(t, s.ListDeletedBranches(ctx, id)) {
		fmt.Fprintln(&text, "deleted", d)
		for m := range all(t, s.DeletedBranchLog(ctx, id, d.ID, d.UID, 0)) {
			fmt.Fprintln(&text, m)
		}
	}
	for b := range all(t, s.refs.ScanBranches(ctx, r, "")) { // hidden ones, too
		if b.State == graveler.BranchLive {
			lookAtBranch(t, &text, s, id, b)
		}
	}
	for c := range all(t, s.refs.ScanCommits(ctx, r, "")) {
		fmt.Fprintln(&text, *c)
		if _, err := s.refs.GetExpiration(ctx, r, c.ID); err == nil {
			fmt.Fprintln(&text, "expired")
			continue
		}
		list(t, &text, s, id, string(c.ID))
	}
	return text.String()
}

func lookAtBranch(t fataler, text *strings.Builder, s store, id graveler.RepositoryID, b *graveler.Branch) {
	ctx := context.Background()
	fmt.Fprintln(text, "branch", b.ID, b.UID, b.Head, b.Hidden, b.ItemCounter, b.LastMove)
	for m := range all(t, s.BranchLog(ctx, id, b.ID, 0)) {
		fmt.Fprintln(text, m)
	}
	for c := range all(t, s.Log(ctx, id, string(b.ID), graveler.LogOptions{})) {
		fmt.Fprintln(text, c.ID)
	}
	list(t, text, s, id, string(b.ID))
	for d := range all(t, s.DiffUncommitted(ctx, id, b.ID, graveler.DiffOptions{})) {
		fmt.Fprintf(text, "%q %v %v\n", d.Key, d.Left, d.Right)
	}
	for d := range all(t, s.Diff(ctx, id, "main", string(b.ID), graveler.DiffOptions{})) {
		fmt.Fprintf(text, "%q %v %v\n", d.Key, d.Left, d.Right)
	}
}

func list(t fataler, text *strings.Builder, s store, id graveler.RepositoryID, ref string) {
	for l := range all(t, s.List(context.Background(), id, ref, graveler.ListOptions{})) {
		fmt.Fprintf(text, "%q %x %q\n", l.Key, l.Value.Identity, l.Value.Data)
	}
}

// all requires that there is no error.
func all[T any](t fataler, items iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		for item, err := range items {
			require.NoError(t, err)
			if !yield(item) {
				return
			}
		}
	}
}

// A copy of a repository in another store shows what the repository does, wherever one looks, and its dump is the same. It goes on to behave like it.
func TestALoadedDumpShowsWhatTheRepositoryDid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		trees := memtrees.New()
		s := newLake(t, trees)
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			change(t, s)
		}
		text := s.dump(t, "lake")
		to := newStore(t, mem.New(), trees)
		require.NoError(t, to.load("lake", text, dump.LoadParams{}))
		require.Equal(t, look(t, s, "lake"), look(t, to, "lake"))
		require.Equal(t, body(text), body(to.dump(t, "lake")))

		for _, both := range []store{s, to} {
			for _, b := range []graveler.BranchID{"main", "dev"} {
				if _, err := both.GetBranch(context.Background(), "lake", b); err == nil {
					both.set(t, b, "new", "1")
					both.commit(t, b)
				}
			}
		}
		for _, ref := range []string{"main", "dev"} {
			if _, err := s.ResolveRef(context.Background(), "lake", ref); err == nil {
				var one, other strings.Builder
				list(t, &one, s, "lake", ref+"@")
				list(t, &other, to, "lake", ref+"@")
				require.Equal(t, one.String(), other.String())
			}
		}
	})
}
