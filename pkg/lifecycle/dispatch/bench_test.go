// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// BenchmarkMove carries out 100,000 removals as one move, and makes the same change of the tree without asking anything. They
// take turns, on equal trees of twice as many keys; what is reported are items per second and how much longer the one takes than
// the other.
func BenchmarkMove(b *testing.B) {
	const removed = 100_000
	for _, c := range []struct {
		name   string
		state  catalog.Versioning
		action *lifecycle.Action
		key    func(n int) (entry graveler.Key, logical, version string)
	}{
		{"objects", off, days, func(n int) (graveler.Key, string, string) {
			k := fmt.Sprintf("data/%07d", n)
			return graveler.Key(k), k, ""
		}},
		{"noncurrent", enabled, noncurrent, aside},
		{"noncurrent, counted", enabled, keepDays(1), aside},
	} {
		b.Run(c.name, func(b *testing.B) {
			ctx := context.Background()
			g, err := moraine.Open(ctx, moraine.Options{Store: "mem:", Blocks: "mem:"})
			require.NoError(b, err)
			defer func() { require.NoError(b, g.Close()) }()
			buckets, err := catalog.New(catalog.Config{Store: g})
			require.NoError(b, err)
			require.NoError(b, buckets.CreateBucket(ctx, bucket, catalog.CreateBucketParams{}))
			if c.state != off {
				require.NoError(b, buckets.SetVersioning(ctx, bucket, c.state))
			}
			var entries []graveler.Entry
			var items []dispatch.Item
			for n := range 2 * removed {
				key, logical, version := c.key(n)
				o := catalog.Object{PhysicalAddress: "s3://bucket/data/" + logical, Checksum: "d41d8cd98f00b204e9800998ecf8427e", Size: 1 << 20, ContentType: "text/plain", ModifiedAt: time.Unix(1, 0), VersionID: version}
				v, err := catalog.Encode(o)
				require.NoError(b, err)
				entries = append(entries, graveler.Entry{Key: key, Value: &v})
				if n%2 == 1 {
					items = append(items, dispatch.Item{Action: c.action, Key: key, LogicalKey: logical, VersionID: version, ContentIdentity: o.ContentIdentity()})
				}
			}
			full, err := g.Import(ctx, bucket, "main", sequence(entries), graveler.ImportParams{CommitParams: graveler.CommitParams{Committer: "bench"}})
			require.NoError(b, err)
			branch, err := g.GetBranch(ctx, bucket, "main")
			require.NoError(b, err)
			mover := dispatch.Mover{Store: g, Buckets: buckets, Committer: "lifecycle"}
			source := dispatch.Source{Repository: bucket, Branch: "main", UID: branch.UID}
			var moves, plain []time.Duration
			for range b.N {
				for _, run := range []struct {
					took *[]time.Duration
					do   func() error
				}{{&moves, func() error {
					results, err := mover.Dispatch(ctx, source, []dispatch.Batch{{Items: items}})
					if err == nil {
						require.Equal(b, lifecycle.Done, results[0][removed-1].Outcome)
					}
					return err
				}}, {&plain, func() error {
					_, err := g.ChangeTree(ctx, bucket, "main", graveler.ChangeTreeParams{CommitParams: graveler.CommitParams{Committer: "bench"}, Op: graveler.OpLifecycle}, func(context.Context, *graveler.Tree) (iter.Seq2[graveler.Entry, error], error) {
						var changes []graveler.Entry
						for i := range items {
							changes = append(changes, graveler.Entry{Key: items[i].Key})
						}
						return sequence(changes), nil
					})
					return err
				}}} {
					began := time.Now()
					require.NoError(b, run.do())
					*run.took = append(*run.took, time.Since(began))
					_, err := g.Reset(ctx, bucket, "main", string(full.ID), graveler.ResetParams{})
					require.NoError(b, err)
				}
			}
			slices.Sort(moves)
			slices.Sort(plain)
			median := moves[b.N/2]
			b.ReportMetric(removed/median.Seconds(), "items/s")
			b.ReportMetric(median.Seconds()/plain[b.N/2].Seconds(), "times-plain")
		})
	}
}

// aside is the place of a version that is not current, of which each key has two.
func aside(n int) (graveler.Key, string, string) {
	k, id := fmt.Sprintf("data/%07d", n/2), fmt.Sprintf("7%023x", n)
	return graveler.Key("\x00v" + k + "\x00\x01v" + id), k, id
}

func sequence(entries []graveler.Entry) iter.Seq2[graveler.Entry, error] {
	return func(yield func(graveler.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}
