// SPDX-License-Identifier: Apache-2.0

package stest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
)

const token = graveler.StagingToken("lake-main:t1")

func value(identity, data string) *graveler.Value {
	return &graveler.Value{Identity: []byte(identity), Data: []byte(data)}
}

func put(key, identity string) graveler.StagedWrite {
	return graveler.StagedWrite{Key: graveler.Key(key), Value: value(identity, "data of "+identity)}
}

func iff(w graveler.StagedWrite, stamp graveler.Stamp) graveler.StagedWrite {
	w.Conditional, w.If = true, stamp
	return w
}

// staged copies what is staged under a token.
func staged(t require.TestingT, s graveler.Staging, token graveler.StagingToken, from, prefix graveler.Key) []graveler.Entry {
	it, err := s.Scan(context.Background(), token, from, prefix)
	require.NoError(t, err)
	all := []graveler.Entry{}
	for it.Next() {
		all = append(all, it.Item().Clone())
	}
	require.NoError(t, it.Err())
	require.NoError(t, it.Close())
	require.NoError(t, it.Close())
	return all
}

// fenced writes a branch record and returns the fence that it is.
func fenced(t *testing.T, refs graveler.Refs) *graveler.Fence {
	repo := Repository(t, refs)
	b := &graveler.Branch{ID: "feature/x", UID: "cv0example0000000001", State: graveler.BranchLive, Token: token, Nonce: "n1"}
	stamp, err := refs.PutBranch(t.Context(), repo, b)
	require.NoError(t, err)
	b.Stamp = stamp
	return &graveler.Fence{Repository: repo, Branch: b}
}

func stagedEntriesComeBack(t *testing.T, _ graveler.Refs, s graveler.Staging) {
	ctx := t.Context()
	key, v := graveler.Key("\x00a/\xff"), value("id", "data")
	require.NoError(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{
		{Key: key, Value: v},
		{Key: graveler.Key("deleted")},
		{Key: graveler.Key("empty"), Value: value("id", "")},
	}))
	got, err := s.Get(ctx, token, key)
	require.NoError(t, err)
	require.Equal(t, v, got.Value)
	require.NotNil(t, got.Stamp)

	got.Value.Identity[0]++ // what is handed out is the caller's, stamp apart
	got.Value.Data[0]++
	require.NoError(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{iff(graveler.StagedWrite{Key: key, Value: got.Value}, got.Stamp)}))

	deleted, err := s.Get(ctx, token, graveler.Key("deleted"))
	require.NoError(t, err)
	require.Nil(t, deleted.Value)
	require.NotNil(t, deleted.Stamp)

	empty, err := s.Get(ctx, token, graveler.Key("empty"))
	require.NoError(t, err)
	require.Empty(t, empty.Value.Data)

	nothing, err := s.Get(ctx, token, graveler.Key("nothing"))
	require.NoError(t, err)
	require.Zero(t, nothing)
	nothing, err = s.Get(ctx, "lake-main:t2", key)
	require.NoError(t, err)
	require.Zero(t, nothing)
}

func fencedWritesLandWhileTheBranchIsAsRead(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx, fence := t.Context(), fenced(t, refs)
	require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{put("a", "1")}))
	require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{put("b", "1"), put("c", "1")}))
	require.NoError(t, s.Apply(ctx, fence, token, nil))

	sealed := fence.Branch.Clone()
	sealed.Nonce = "n2"
	_, err := refs.PutBranch(ctx, fence.Repository, sealed)
	require.NoError(t, err)
	for _, writes := range [][]graveler.StagedWrite{
		{put("a", "2")}, {put("d", "2"), {Key: graveler.Key("b")}}, nil, {iff(put("e", "2"), nil)}, {put("f", "2"), iff(put("g", "2"), nil)},
	} {
		require.ErrorIs(t, s.Apply(ctx, fence, token, writes), graveler.ErrFenceFailed)
	}
	require.Equal(t, []graveler.Entry{
		{Key: graveler.Key("a"), Value: value("1", "data of 1")},
		{Key: graveler.Key("b"), Value: value("1", "data of 1")},
		{Key: graveler.Key("c"), Value: value("1", "data of 1")},
	}, staged(t, s, token, nil, nil))
}

func conditionalWritesLandOnWhatWasRead(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx := t.Context()
	for name, fence := range map[string]*graveler.Fence{"fenced": fenced(t, refs), "unfenced": nil} {
		key := graveler.Key(name)
		write := func(identity string, stamp graveler.Stamp, others ...graveler.StagedWrite) error {
			return s.Apply(ctx, fence, token, append(others, iff(put(name, identity), stamp)))
		}
		require.NoError(t, write("1", nil))
		require.ErrorIs(t, write("2", nil), graveler.ErrChanged)
		first, err := s.Get(ctx, token, key)
		require.NoError(t, err)
		require.NoError(t, write("2", first.Stamp))
		require.ErrorIs(t, write("3", first.Stamp, put("other", "1")), graveler.ErrChanged)

		second, err := s.Get(ctx, token, key)
		require.NoError(t, err)
		require.Equal(t, "2", string(second.Value.Identity))
		require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{iff(graveler.StagedWrite{Key: key}, second.Stamp)}))
		require.ErrorIs(t, write("3", nil), graveler.ErrChanged, "a tombstone is something")

		other, err := s.Get(ctx, token, graveler.Key("other"))
		require.NoError(t, err)
		require.Zero(t, other, "all or none")

		tombstone, err := s.Get(ctx, token, key)
		require.NoError(t, err)
		require.NoError(t, write("3", tombstone.Stamp))
	}
}

func conditionalWritesOfAllKindsLandTogether(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx, fence := t.Context(), fenced(t, refs)
	require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{put("a", "1"), {Key: graveler.Key("b")}, put("c", "1")}))
	stamps := map[string]graveler.Stamp{}
	for _, key := range []string{"a", "b"} {
		got, err := s.Get(ctx, token, graveler.Key(key))
		require.NoError(t, err)
		stamps[key] = got.Stamp
	}
	all := []graveler.StagedWrite{
		iff(put("z", "2"), nil), iff(put("b", "2"), stamps["b"]), put("c", "2"), iff(graveler.StagedWrite{Key: graveler.Key("a")}, stamps["a"]), iff(put("y", "2"), nil),
	}
	for i := range all {
		broken := slices.Clone(all)
		switch {
		case !broken[i].Conditional:
			continue
		case broken[i].If == nil:
			broken[i].If = stamps["a"]
		default:
			broken[i].If = nil
		}
		require.ErrorIs(t, s.Apply(ctx, fence, token, broken), graveler.ErrChanged)
		require.Len(t, staged(t, s, token, nil, nil), 3, "all or none")
	}
	require.NoError(t, s.Apply(ctx, fence, token, all))
	require.Equal(t, []graveler.Entry{
		{Key: graveler.Key("a")},
		{Key: graveler.Key("b"), Value: value("2", "data of 2")},
		{Key: graveler.Key("c"), Value: value("2", "data of 2")},
		{Key: graveler.Key("y"), Value: value("2", "data of 2")},
		{Key: graveler.Key("z"), Value: value("2", "data of 2")},
	}, staged(t, s, token, nil, nil))
}

func badWritesAreRefused(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	fence := fenced(t, refs)
	fence.Branch.Stamp = nil
	for name, c := range map[string]struct {
		fence  *graveler.Fence
		token  graveler.StagingToken
		writes []graveler.StagedWrite
		want   error
	}{
		"no identity":     {nil, token, []graveler.StagedWrite{put("a", "1"), {Key: graveler.Key("b"), Value: value("", "data")}}, graveler.ErrInvalidValue},
		"no key":          {nil, token, []graveler.StagedWrite{put("", "1")}, graveler.ErrInvalidValue},
		"no token":        {nil, "", []graveler.StagedWrite{put("a", "1")}, graveler.ErrInvalidValue},
		"a key twice":     {nil, token, []graveler.StagedWrite{put("a", "1"), put("a", "2")}, graveler.ErrInvalidValue},
		"fence unread":    {fence, token, []graveler.StagedWrite{put("a", "1")}, graveler.ErrInvalidValue},
		"key too large":   {nil, token, []graveler.StagedWrite{{Key: make(graveler.Key, kv.MaxKeyBytes+1)}}, graveler.ErrTooLarge},
		"value too large": {nil, token, []graveler.StagedWrite{{Key: graveler.Key("a"), Value: value("1", string(make([]byte, kv.MaxValueBytes)))}}, graveler.ErrTooLarge},
	} {
		require.ErrorIs(t, s.Apply(t.Context(), c.fence, c.token, c.writes), c.want, name)
	}
	require.Empty(t, staged(t, s, token, nil, nil))
}

func whatIsWithinTheLimitsIsNotTooLarge(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	fence, limits := fenced(t, refs), s.Limits()
	fill := func(key, data int) []graveler.StagedWrite {
		var writes []graveler.StagedWrite
		for size := 0; len(writes) < limits.Writes; {
			w := graveler.StagedWrite{Key: fmt.Appendf(nil, "%0*d", key, len(writes))}
			if data > 0 {
				w.Value = &graveler.Value{Identity: []byte("i"), Data: bytes.Repeat([]byte("d"), data-1)}
			}
			if size += w.Size(); size > limits.Bytes {
				break
			}
			writes = append(writes, w)
		}
		return writes
	}
	for _, c := range []struct{ key, data int }{{8, 0}, {8, 200}, {kv.MaxKeyBytes, 0}, {kv.MaxKeyBytes, 3000}, {kv.MaxKeyBytes, graveler.MaxValueBytes}} {
		writes := fill(c.key, c.data)
		require.NotEmpty(t, writes)
		require.NoError(t, s.Apply(t.Context(), fence, token, writes), c)
	}
	more := make([]graveler.StagedWrite, limits.Writes+1)
	for i := range more {
		more[i].Key = fmt.Appendf(nil, "%d", i)
	}
	require.ErrorIs(t, s.Apply(t.Context(), fence, token, more), graveler.ErrTooLarge)
}

// aScanGoesOnPastAPage has more entries than a page, and more bytes.
func aScanGoesOnPastAPage(t *testing.T, _ graveler.Refs, s graveler.Staging) {
	var want []graveler.Entry
	var writes []graveler.StagedWrite
	for n := range 900 {
		w := graveler.StagedWrite{Key: fmt.Appendf(nil, "%05d", n), Value: &graveler.Value{Identity: []byte{byte(n), 1}, Data: bytes.Repeat([]byte{byte(n)}, 4000)}}
		writes, want = append(writes, w), append(want, graveler.Entry{Key: w.Key, Value: w.Value})
	}
	require.NoError(t, s.Apply(t.Context(), nil, token, writes))
	require.NoError(t, s.Apply(t.Context(), nil, "lake-main:t2", writes[:2]))
	got := staged(t, s, token, nil, nil)
	require.Len(t, got, len(want))
	for i := range got {
		require.Equal(t, want[i], got[i])
	}
	require.Len(t, staged(t, s, "lake-main:t2", nil, nil), 2)
	require.Empty(t, staged(t, s, "lake-main:t", nil, nil))
}

// bytesFew draws from few bytes, the extreme ones among them, so that prefixes are shared.
func bytesFew(shortest int) *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0x00, 'a', '/', 0xfe, 0xff}), shortest, 4)
}

func below(entries []graveler.Entry, from, prefix []byte) []graveler.Entry {
	return slices.DeleteFunc(append([]graveler.Entry{}, entries...), func(e graveler.Entry) bool {
		return bytes.Compare(e.Key, from) < 0 || !bytes.HasPrefix(e.Key, prefix)
	})
}

func scansSeeWhatIsStagedBelowThePrefix(t *testing.T, _ graveler.Refs, s graveler.Staging) {
	tokens := 0
	rapid.Check(t, func(t *rapid.T) {
		tokens++
		token := graveler.StagingToken(fmt.Sprintf("lake-main:%d", tokens))
		var entries []graveler.Entry
		var writes []graveler.StagedWrite
		for _, key := range rapid.SliceOfNDistinct(bytesFew(1), 0, 40, func(key []byte) string { return string(key) }).Draw(t, "keys") {
			w := graveler.StagedWrite{Key: key}
			if rapid.Bool().Draw(t, "value") {
				w.Value = &graveler.Value{
					Identity: rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "identity"),
					Data:     rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "data"),
				}
			}
			writes, entries = append(writes, w), append(entries, graveler.Entry{Key: w.Key, Value: w.Value})
		}
		require.NoError(t, s.Apply(context.Background(), nil, token, writes))
		slices.SortFunc(entries, func(a, b graveler.Entry) int { return bytes.Compare(a.Key, b.Key) })
		from, prefix := bytesFew(0).Draw(t, "from"), bytesFew(0).Draw(t, "prefix")
		want := below(entries, from, prefix)
		require.Equal(t, want, staged(t, s, token, from, prefix))

		it, err := s.Scan(context.Background(), token, from, prefix)
		require.NoError(t, err)
		t.Repeat(map[string]func(*rapid.T){
			"next": func(t *rapid.T) {
				require.Equal(t, len(want) > 0, it.Next())
				if len(want) > 0 {
					require.Equal(t, want[0], it.Item())
					want = want[1:]
				}
			},
			"seek": func(t *rapid.T) {
				key := bytesFew(0).Draw(t, "key")
				it.SeekGE(key)
				want = below(entries, key, prefix)
			},
		})
		require.NoError(t, it.Err())
		require.NoError(t, it.Close())
		require.False(t, it.Next())
	})
}

func aTokenIsDroppedAlone(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx, repo := t.Context(), Repository(t, refs)
	for _, token := range []graveler.StagingToken{token, "lake-main:t", "lake-main:t10"} {
		require.NoError(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{put("a", "1"), {Key: graveler.Key("b")}}))
	}
	for range 2 {
		require.NoError(t, refs.DropPartition(ctx, string(token)))
	}
	require.NoError(t, refs.DropPartition(ctx, repo.Partition()))
	require.Empty(t, staged(t, s, token, nil, nil))
	require.Len(t, staged(t, s, "lake-main:t", nil, nil), 2)
	require.Len(t, staged(t, s, "lake-main:t10", nil, nil), 2)
}

// nothingIsStagedBehindASeal has writers who rely on the record, and somebody who changes it: what they were told has landed must
// have been there when he was told so.
func nothingIsStagedBehindASeal(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx, fence := t.Context(), fenced(t, refs)
	var landed atomic.Int64
	var writing sync.WaitGroup
	begun := make(chan struct{}, 100)
	for w := range 4 {
		writing.Go(func() {
			for n := 0; ; n++ {
				err := s.Apply(ctx, fence, token, []graveler.StagedWrite{put(fmt.Sprintf("%d/%d", w, n), "1")})
				if errors.Is(err, graveler.ErrFenceFailed) {
					return
				}
				if err != nil {
					t.Errorf("stage: %v", err)
					return
				}
				landed.Add(1)
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		})
	}
	for range 8 {
		<-begun
	}
	sealed := fence.Branch.Clone()
	sealed.Nonce = "n2"
	_, err := refs.PutBranch(ctx, fence.Repository, sealed)
	require.NoError(t, err)
	atSeal := staged(t, s, token, nil, nil)
	writing.Wait()
	require.Equal(t, atSeal, staged(t, s, token, nil, nil))
	require.Len(t, atSeal, int(landed.Load()))
}

func ofWritesOnOneConditionOneLands(t *testing.T, refs graveler.Refs, s graveler.Staging) {
	ctx, fence := t.Context(), fenced(t, refs)
	for round, others := range [][]graveler.StagedWrite{nil, {put("other", "1")}} {
		for range 3 {
			before, err := s.Get(ctx, token, graveler.Key("a"))
			require.NoError(t, err)
			var landed atomic.Int64
			var writing sync.WaitGroup
			for w := range 5 {
				writing.Go(func() {
					err := s.Apply(ctx, fence, token, append(slices.Clone(others), iff(put("a", fmt.Sprint(round, w)), before.Stamp)))
					if err == nil {
						landed.Add(1)
					} else if !errors.Is(err, graveler.ErrChanged) {
						t.Errorf("stage: %v", err)
					}
				})
			}
			writing.Wait()
			require.EqualValues(t, 1, landed.Load())
			require.NoError(t, s.Apply(ctx, fence, token, []graveler.StagedWrite{{Key: graveler.Key("a")}}))
		}
	}
}

func aCallOfACanceledContextStagesNothing(t *testing.T, _ graveler.Refs, s graveler.Staging) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Get(ctx, token, graveler.Key("a"))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, s.Apply(ctx, nil, token, []graveler.StagedWrite{put("a", "1")}), context.Canceled)
	require.Empty(t, staged(t, s, token, nil, nil))
}
