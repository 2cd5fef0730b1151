// SPDX-License-Identifier: Apache-2.0

package dailyrun_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

// BenchmarkRemovals makes a pass that finds all objects of a bucket due, on bolt and files.
func BenchmarkRemovals(b *testing.B) {
	const objects = 400_000
	for _, v := range []catalog.Versioning{catalog.VersioningOff, catalog.VersioningEnabled} {
		b.Run("versioning "+string(v), func(b *testing.B) {
			var took time.Duration
			for range b.N {
				ctx, dir := b.Context(), b.TempDir()
				clock := time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
				now := func() time.Time { return clock }
				records, err := kv.Open(ctx, "bolt:"+filepath.Join(dir, "meta.db"), kv.Engines{"bolt": bolt.Open}, kv.OpenOptions{})
				require.NoError(b, err)
				s, err := moraine.Open(ctx, moraine.Options{KV: records, Blocks: "file:" + filepath.Join(dir, "blocks"), Now: now})
				require.NoError(b, err)
				c, err := catalog.New(catalog.Config{Store: s, Now: now})
				require.NoError(b, err)
				require.NoError(b, c.CreateBucket(ctx, bucket, catalog.CreateBucketParams{}))
				if v != catalog.VersioningOff {
					require.NoError(b, c.SetVersioning(ctx, bucket, v))
				}
				days := 1
				rules := lifecycle.Configuration{Rules: []lifecycle.Rule{{ID: "all", Enabled: true, Expiration: &lifecycle.Expiration{Days: &days}}}}
				require.NoError(b, dailyrun.SetConfiguration(ctx, s, bucket, rules))
				_, err = s.Import(ctx, bucket, "main", func(yield func(graveler.Entry, error) bool) {
					for i := range objects {
						v, err := catalog.Encode(catalog.Object{PhysicalAddress: fmt.Sprintf("s3://bucket/objects/%032d", i), Checksum: "d41d8cd98f00b204e9800998ecf8427e", Size: 1 << 20, ContentType: "text/plain", ModifiedAt: clock, VersionID: "null"})
						if !yield(graveler.Entry{Key: fmt.Appendf(nil, "tables/events/part-%09d", i), Value: &v}, err) {
							return
						}
					}
				}, graveler.ImportParams{CommitParams: graveler.CommitParams{Committer: "user"}})
				require.NoError(b, err)
				clock = clock.AddDate(0, 0, 2)
				began := time.Now()
				b.StartTimer()
				r, err := dailyrun.Run(ctx, dailyrun.Config{Store: s.Graveler, Records: records, DayBoundary: lifecycle.Exact, Now: now})
				b.StopTimer()
				took += time.Since(began)
				require.NoError(b, err)
				require.Equal(b, objects, r.Outcomes[dailyrun.Dispatched{Repository: bucket, Kind: lifecycle.ExpirationDays, Outcome: lifecycle.Done}])
				require.NoError(b, errors.Join(s.Close(), records.Close()))
			}
			b.ReportMetric(float64(b.N*objects)/took.Seconds(), "removals/s")
		})
	}
}
