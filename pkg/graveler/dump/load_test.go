// SPDX-License-Identifier: Apache-2.0

package dump_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/memtrees"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

// rich is a store whose repository has something of every kind.
func rich(t *testing.T, trees graveler.Trees) store {
	ctx := t.Context()
	s := newLake(t, trees)
	s.set(t, "main", "a", "1")
	first := s.commit(t, "main")
	_, err := s.CreateBranch(ctx, "lake", "dev", "main")
	require.NoError(t, err)
	s.set(t, "dev", "b", "2")
	s.commit(t, "dev")
	_, err = s.Merge(ctx, "lake", "dev", "main", graveler.MergeParams{})
	require.NoError(t, err)
	require.NoError(t, s.DeleteBranch(ctx, "lake", "dev", false))
	_, err = s.CreateTag(ctx, "lake", "v1", "main")
	require.NoError(t, err)
	s.set(t, "main", "c", "3")
	require.NoError(t, s.Delete(ctx, "lake", "main", key("a")))

	r, err := s.refs.GetRepository(ctx, "lake")
	require.NoError(t, err)
	_, err = s.refs.PutSetting(ctx, r, "rules", bytes.Repeat([]byte("x"), 300<<10), nil)
	require.NoError(t, err)
	b, err := s.GetBranch(ctx, "lake", "main")
	require.NoError(t, err)
	require.NoError(t, s.refs.PutPin(ctx, r, graveler.Pin{Owner: "reader", Trees: []graveler.MetaRangeID{first.Tree}, Logs: map[string]int64{b.UID: 1}}))
	require.NoError(t, s.refs.PutExpiration(ctx, r, graveler.Expiration{Commit: first.ID, At: 7}))
	require.NoError(t, s.refs.PutLogStart(ctx, r, b.UID, 5))
	return s
}

func TestEverythingComesBack(t *testing.T) {
	trees := memtrees.New()
	s := rich(t, trees)
	text := s.dump(t, "lake")
	to := newStore(t, mem.New(), trees)
	require.NoError(t, to.load("lake", text, dump.LoadParams{}))
	require.Equal(t, look(t, s, "lake"), look(t, to, "lake"))
	require.Equal(t, body(text), body(to.dump(t, "lake")))
	for _, kind := range []string{"setting", "pin", "tag", "branch", "deleted_branch", "move", "entry", "commit", "expiration", "log_start"} {
		require.Contains(t, string(text), `{"`+kind+`":`, "the repository has one")
	}

	// Beside the repository, too, and independent of it.
	require.NoError(t, s.load("copy", text, dump.LoadParams{}))
	require.Equal(t, look(t, s, "lake"), look(t, s, "copy"))
	require.NoError(t, s.DeleteRepository(t.Context(), "lake"))
	require.Equal(t, look(t, to, "lake"), look(t, s, "copy"))
	require.ErrorIs(t, s.load("copy", text, dump.LoadParams{}), graveler.ErrExists)
}

func TestAReadOnlyRepositoryCanBeDumpedAndLoaded(t *testing.T) {
	ctx, trees := t.Context(), memtrees.New()
	s := newStore(t, mem.New(), trees)
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{ReadOnly: true, DefaultBranch: "trunk"})
	require.NoError(t, err)
	require.NoError(t, s.load("copy", s.dump(t, "lake"), dump.LoadParams{Namespace: "below"}))
	r, err := s.GetRepository(ctx, "copy")
	require.NoError(t, err)
	require.True(t, r.ReadOnly)
	require.EqualValues(t, "trunk", r.DefaultBranch)
	require.Equal(t, "below/"+r.Partition(), r.Namespace)
	require.ErrorIs(t, s.Set(ctx, "copy", "trunk", key("a"), value("1")), graveler.ErrReadOnly)
}

// Of a dump that was altered or cut off anywhere nothing is loaded.
func TestAnAlteredOrTruncatedDumpIsRefused(t *testing.T) {
	trees := memtrees.New()
	s := newLake(t, trees)
	s.set(t, "main", "a", "1")
	s.commit(t, "main")
	s.set(t, "main", "b", "2")
	text := s.dump(t, "lake")
	refused := func(what string, at int, parts ...[]byte) {
		t.Helper()
		to := newStore(t, mem.New(), trees)
		require.Error(t, to.load("copy", bytes.Join(parts, nil), dump.LoadParams{}), "%s %d", what, at)
		require.Empty(t, slices.Collect(all(t, to.ListRepositories(t.Context(), ""))))
	}
	for at := 0; at < len(text); at += 4 {
		altered := bytes.Clone(text)
		altered[at] ^= []byte{0x01, 0x20, 0x80}[at%3]
		refused("altered at", at, altered)
		if at%3 == 0 {
			refused("cut off at", at, text[:at])
		}
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	for i, line := range lines[:len(lines)-1] {
		before, behind := bytes.Join(lines[:i], nil), bytes.Join(lines[i+1:], nil)
		refused("without line", i, before, behind)
		refused("twice line", i, before, line, line, behind)
		refused("an empty line before", i, before, []byte("\n"), line, behind)
		refused("at the end also line", i, text, line)
	}
	require.NoError(t, s.load("copy", text, dump.LoadParams{}), "as it was")
}

// A dump whose checksum is right can still be wrong. The error says where, or what is missing.
func TestADumpThatContradictsItselfIsRefused(t *testing.T) {
	trees := memtrees.New()
	s := rich(t, trees)
	lines := slices.Clip(unsealed(s.dump(t, "lake")))
	line := func(kind string) int {
		for i, l := range lines {
			if strings.HasPrefix(l, `{"`+kind+`":`) {
				return i
			}
		}
		t.Fatal(kind)
		return 0
	}
	replace := func(kind, old, with string) []string {
		changed := append([]string{}, lines...)
		i := line(kind)
		require.Contains(t, changed[i], old)
		changed[i] = strings.Replace(changed[i], old, with, 1)
		return changed
	}
	without := func(kind string) []string {
		i := line(kind)
		return append(append([]string{}, lines[:i]...), lines[i+1:]...)
	}
	moved := func(kind string, to int) []string {
		i := line(kind)
		rest := without(kind)
		return append(append(append([]string{}, rest[:to]...), lines[i]), rest[to:]...)
	}
	missing := "0000000000000000000000000000000000000000000000000000000000000000"
	tagged := lines[line("tag")]
	head := tagged[strings.Index(tagged, `"commit":"`)+10:][:64]

	elsewhere := slices.Clone(lines)
	for i, l := range elsewhere {
		if before, _, ok := strings.Cut(l, `"op":"OP_DELETE"`); ok {
			elsewhere[i] = before + `"op":"OP_DELETE","old":"` + head + "\"}}\n"
		}
	}

	for name, c := range map[string]struct {
		lines []string
		says  string
	}{
		"another format":                  {replace("header", `"format":1`, `"format":2,"more":{}`), "line 1: not a valid dump: its format is 2, this program reads format 1"},
		"a field that is not known":       {replace("tag", `{"id"`, `{"later":1,"id"`), "unknown field"},
		"a record that is not known":      {append(lines, "{\"later\":{}}\n"), "unknown field"},
		"an empty record":                 {append(lines, "{}\n"), "it has no record"},
		"no JSON":                         {append(lines, "moraine\n"), "not a valid dump"},
		"no header":                       {without("header"), "it does not begin with a header"},
		"a commit altered":                {replace("commit", `"log_time":"1`, `"log_time":"2`), "its fields have the ID"},
		"a commit's ID":                   {replace("commit", `"id":"`, `"id":"x`), "an ID has 64 hexadecimal digits"},
		"a commit missing":                {slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, `{"commit":{"id":"`+head) }), head + " is missing"},
		"a tag of a missing commit":       {replace("tag", head, missing), "tag v1: invalid value: commit 0000000000000000000000000000000000000000000000000000000000000000 is missing"},
		"a head other than the last move": {replace("branch", head, missing), "but its last move went to"},
		"a bad name":                      {replace("tag", `"v1"`, `"v..1"`), "invalid name"},
		"a bad default branch":            {replace("header", `"main"`, `"-"`), "line 1: not a valid dump"},
		"no default branch":               {replace("header", `"main"`, `"trunk"`), "there is no default branch trunk"},
		"a bad UID":                       {replace("deleted_branch", `"uid":"`, `"uid":"/`), "branch UID"},
		"a bad setting":                   {replace("setting", `"rules"`, `"Rules"`), "invalid name"},
		"a move without operation":        {replace("move", `"op":"OP_CREATE",`, ``), "by operation 0"},
		"a move missing":                  {without("move"), "is missing"},
		"a move that begins elsewhere":    {elsewhere, "does not begin where the one before it ended"},
		"a move twice":                    {slices.Insert(slices.Clone(lines), line("move"), lines[line("move")]), "out of order"},
		"an entry before its branch":      {moved("entry", 1), "out of order"},
		"a tag after the branches":        {moved("tag", line("commit")), "out of order"},
		"a key that is empty":             {replace("entry", `"key":"YQ=="`, ``), "out of order"},
		"data without identity":           {replace("entry", `"key":`, `"data":"MQ==","key":`), "an entry's identity must not be empty"},
		"a tree missing":                  {replace("pin", `"trees":["`, `"trees":["00`), "no tree 00"},
		"nothing":                         {[]string{lines[0]}, "there is no default branch"},
	} {
		t.Run(name, func(t *testing.T) {
			to := newStore(t, mem.New(), trees)
			err := to.load("copy", sealed(t, c.lines...), dump.LoadParams{})
			require.ErrorContains(t, err, c.says)
			require.True(t, errors.Is(err, dump.ErrInvalid) || errors.Is(err, graveler.ErrCorrupt), "%v", err)
			require.Empty(t, slices.Collect(all(t, to.ListRepositories(t.Context(), ""))))
		})
	}
	require.NoError(t, s.load("copy", sealed(t, lines...), dump.LoadParams{}))
}

func TestCommitsOfRulesThatAreNotKnownAreTakenAsTheyAre(t *testing.T) {
	trees := memtrees.New()
	s := newLake(t, trees)
	s.commit(t, "main")
	lines := unsealed(s.dump(t, "lake"))
	for i := range lines {
		lines[i] = strings.Replace(lines[i], `"version":"1"`, `"version":"0"`, 1)
		lines[i] = strings.Replace(lines[i], "Repository created", "something else", 1)
	}
	require.NoError(t, s.load("copy", sealed(t, lines...), dump.LoadParams{}))
	c, err := s.ResolveRef(t.Context(), "copy", "main~1")
	require.NoError(t, err)
	require.Equal(t, "something else", c.Message)

	// But they must be younger than their parents.
	for old, with := range map[string]string{`"generation":"2"`: `"generation":"1"`, `"log_time":"1`: `"log_time":"`} {
		var older []string
		for _, l := range lines {
			if strings.Contains(l, `"generation":"2"`) {
				l = strings.Replace(l, old, with, 1)
			}
			older = append(older, l)
		}
		require.ErrorContains(t, s.load("older", sealed(t, older...), dump.LoadParams{}), "is not greater than that of its parent")
	}
}

// What retention has removed may be missing: the commits of old moves, and those that have expired, with their trees.
func TestWhatRetentionRemovedMayBeMissing(t *testing.T) {
	trees := memtrees.New()
	s := newLake(t, trees)
	s.set(t, "main", "a", "1")
	first := s.commit(t, "main")
	s.set(t, "main", "a", "2")
	second := s.commit(t, "main")
	b, err := s.GetBranch(t.Context(), "lake", "main")
	require.NoError(t, err)
	lines := unsealed(s.dump(t, "lake"))
	var kept []string
	for _, l := range lines {
		if !strings.HasPrefix(l, `{"commit":`) || strings.Contains(l, `"id":"`+string(second.ID)) {
			kept = append(kept, l)
		}
	}
	require.ErrorContains(t, s.load("copy", sealed(t, kept...), dump.LoadParams{}), "is missing")
	start := graveler.Move{Time: b.LastMove.Time}
	kept = append(kept, `{"expiration":{"commit":"`+string(first.ID)+`","at":"7"}}`+"\n")
	require.ErrorContains(t, s.load("copy", sealed(t, kept...), dump.LoadParams{}), "is missing", "the first move's")
	kept = append(kept, `{"log_start":{"branch":"main","branch_uid":"`+b.UID+`","time":"`+timeText(start.Time)+`"}}`+"\n")
	require.NoError(t, s.load("copy", sealed(t, kept...), dump.LoadParams{}))
	var text strings.Builder
	list(t, &text, s, "copy", "main")
	require.Contains(t, text.String(), `"2"`)
}

func timeText(ns int64) string { return strconv.FormatInt(ns, 10) }

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestALineIsReadOnlyUpToABound(t *testing.T) {
	s := newLake(t, memtrees.New())
	line := &endless{}
	_, err := dump.Load(t.Context(), s.Graveler, "copy", line, dump.LoadParams{})
	require.ErrorIs(t, err, dump.ErrInvalid)
	require.Less(t, line.read, 64<<20)
}

func TestAReaderThatFailsIsNotAnEnd(t *testing.T) {
	s := newLake(t, memtrees.New())
	text := s.dump(t, "lake")
	broken := errors.New("broken")
	_, err := dump.Load(t.Context(), s.Graveler, "copy", io.MultiReader(bytes.NewReader(text), failing{broken}), dump.LoadParams{})
	require.ErrorIs(t, err, broken)
	_, err = s.GetRepository(t.Context(), "copy")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestAMissingFileIsNamedAndNothingIsLoaded(t *testing.T) {
	ctx := context.Background()
	s := rich(t, memtrees.New())
	text := s.dump(t, "lake")
	to := newStore(t, mem.New(), memtrees.New())
	err := to.load("copy", text, dump.LoadParams{})
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	_, err = to.GetRepository(ctx, "copy")
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	_, err = to.CreateRepository(ctx, "copy", graveler.CreateRepositoryParams{})
	require.NoError(t, err, "the name is free")
}

// What is forbidden on a branch is forbidden on the loaded one from the first moment.
func TestProtectionIsLoaded(t *testing.T) {
	s := newLake(t, memtrees.New())
	require.NoError(t, s.ProtectBranches(t.Context(), "lake", func([]graveler.ProtectionRule) ([]graveler.ProtectionRule, error) {
		return []graveler.ProtectionRule{{Pattern: "m*", Forbid: graveler.ActionStage}}, nil
	}))
	require.NoError(t, s.load("copy", s.dump(t, "lake"), dump.LoadParams{}))
	require.ErrorIs(t, s.Set(t.Context(), "copy", "main", key("k"), value("v")), graveler.ErrProtected)
}
