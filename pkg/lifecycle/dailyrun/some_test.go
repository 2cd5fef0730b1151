// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/walker"
)

// beside returns the name of another repository that is walked by who walks one.
func beside(repo graveler.RepositoryID) graveler.RepositoryID {
	for n := 0; ; n++ {
		other := graveler.RepositoryID(fmt.Sprint("other-", n))
		if lifecycle.ShardOf(other, "") == lifecycle.ShardOf(repo, "") {
			return other
		}
	}
}

// What is remembered of the others, and of all together, stays as it was, and the next pass over all does what it would have done.
func TestAPassOverSomeRepositoriesLeavesTheOthersAlone(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	other := beside(bucket)
	f.bucket(other, catalog.VersioningOff)
	f.config.Walker, f.config.WalkerInterval = walker.New(f.Graveler), 24*time.Hour
	f.config.RetentionWindow = 3 * 24 * time.Hour
	both := []graveler.RepositoryID{bucket, other}
	for _, repo := range both {
		f.rules(repo, expire(1), `"Filter":{"Prefix":"old/"},"Expiration":{"Days":5}`) // the second one by walks
		f.putIn(repo, "a", "old/b")
	}
	f.run()
	remembered := func() map[string]string {
		all := stored(t, f.records, cursor.Partition)
		r, err := f.GetRepository(t.Context(), bucket)
		require.NoError(t, err)
		for key := range all {
			if strings.Contains(key, r.UID) {
				delete(all, key)
			}
		}
		return all
	}
	before := remembered()
	require.Len(t, before, 16+16+1)
	f.days(6)
	f.config.Repositories = []graveler.RepositoryID{bucket}
	for _, walked := range []bool{true, false} { // the second time it is not due
		r := f.run()
		require.Empty(t, f.keys(bucket))
		require.Len(t, r.Sources, 1)
		require.Equal(t, walked, r.Sources[0].Walked)
		require.Equal(t, []string{"a", "old/b"}, f.keys(other))
		require.Equal(t, before, remembered())
	}
	f.config.Repositories = nil
	f.run()
	require.Empty(t, f.keys(other))
	require.NotEqual(t, before, remembered())

	f.config.Repositories = []graveler.RepositoryID{bucket, "none"}
	f.put("a")
	f.days(2)
	r, err := f.tryRun()
	require.ErrorIs(t, err, graveler.ErrRepositoryNotFound)
	require.Nil(t, r)
	require.Equal(t, []string{"a"}, f.keys(bucket), "nothing was done")
	f.config.Repositories = []graveler.RepositoryID{}
	require.Empty(t, f.run().Sources, "none is not all")
}

// The walk goes on, and the others are walked as if there had been no such pass.
func TestAPassOverSomeRepositoriesThatIsCutOffKeepsNoOtherFromItsWalk(t *testing.T) {
	f := newFixture(t, catalog.VersioningOff)
	other := beside(bucket)
	f.bucket(other, catalog.VersioningOff)
	f.config.WalkerInterval, f.config.RetentionWindow = 24*time.Hour, 2*24*time.Hour
	for _, repo := range []graveler.RepositoryID{bucket, other} {
		f.rules(repo, expire(5))
		f.putIn(repo, "a")
	}
	f.config.Walker = walker.New(f.Graveler)
	f.run()
	f.days(6)
	ctx, cut := context.WithCancel(t.Context())
	defer cut()
	f.config.Repositories, f.config.Walker = []graveler.RepositoryID{bucket}, cutting{walker.New(f.Graveler), cut}
	f.clock = f.clock.Add(time.Second)
	_, err := dailyrun.Run(ctx, f.config)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"a"}, f.keys(bucket))
	f.config.Repositories, f.config.Walker = nil, walker.New(f.Graveler)
	f.run()
	require.Empty(t, f.keys(bucket))
	require.Empty(t, f.keys(other))
}

// cutting ends the pass as soon as it walks.
type cutting struct {
	dailyrun.Walker
	cut func()
}

func (c cutting) Walk(ctx context.Context, repo graveler.RepositoryID, tree graveler.MetaRangeID, v catalog.Versioning, after string) iter.Seq2[*walker.Group, error] {
	c.cut()
	return c.Walker.Walk(ctx, repo, tree, v, after)
}
