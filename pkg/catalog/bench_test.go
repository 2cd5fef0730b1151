// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
)

// BenchmarkPut compares puts with a staged write of the same value. They take turns, so that what else the machine does is the
// same for all; what is reported are medians, and what they are of that of Set.
func BenchmarkPut(b *testing.B) {
	for name, url := range map[string]string{"bolt": "bolt:" + b.TempDir() + "/store", "postgres": testpg.Start(b).NewDatabase(b)} {
		e := openEngine(b, url)
		ctx := context.Background()
		object := Object{PhysicalAddress: "s3://bucket/data/0123456789", Checksum: "d41d8cd98f00b204e9800998ecf8427e", Size: 1 << 20, ContentType: "text/plain"}
		value, err := Encode(object)
		require.NoError(b, err)
		off, on := e.bucket(b), e.bucket(b)
		on.enable(b, VersioningEnabled)
		put := func(f *fixture, key string) error {
			_, err := f.Put(ctx, f.bucket(), key, object, Conditions{})
			return err
		}
		writes := []struct {
			name  string
			write func(i int) error
		}{
			{"Set", func(i int) error { return off.Set(ctx, off.name, "main", currentKey(fmt.Sprint("set", i)), value) }},
			{"put", func(i int) error { return put(off, fmt.Sprint("put", i)) }},
			{"versioned-new", func(i int) error { return put(on, fmt.Sprint("new", i)) }},
			{"versioned-over", func(i int) error { return put(on, fmt.Sprint("k", i%100)) }},
		}
		b.Run(name, func(b *testing.B) {
			took := make([][]float64, len(writes))
			for i := range b.N {
				for j, w := range writes {
					began := time.Now()
					require.NoError(b, w.write(i))
					took[j] = append(took[j], float64(time.Since(began)))
				}
			}
			for j, w := range writes {
				slices.Sort(took[j])
				median := took[j][b.N/2]
				b.ReportMetric(median/1e3, w.name+"-us")
				b.ReportMetric(median/took[0][b.N/2], w.name+"/Set")
			}
		})
	}
}

// BenchmarkDelete deletes a thousand objects per operation.
func BenchmarkDelete(b *testing.B) {
	for name, url := range map[string]string{"bolt": "bolt:" + b.TempDir() + "/store", "postgres": testpg.Start(b).NewDatabase(b)} {
		f := openEngine(b, url).bucket(b)
		ctx := context.Background()
		ids := make([]ObjectID, MaxDeletes)
		for i := range ids {
			ids[i].Key = fmt.Sprintf("%04d", i)
		}
		for _, c := range []struct {
			name   string
			remove func() error
		}{
			{"one by one", func() error {
				for _, id := range ids {
					if _, err := f.Catalog.Delete(ctx, f.bucket(), id.Key, DeleteParams{}); err != nil {
						return err
					}
				}
				return nil
			}},
			{"many", func() error {
				_, err := f.DeleteMany(ctx, f.bucket(), ids, false)
				return err
			}},
		} {
			b.Run(name+"/"+c.name, func(b *testing.B) {
				for range b.N {
					b.StopTimer()
					for _, id := range ids {
						f.put(b, id.Key, "x")
					}
					b.StartTimer()
					require.NoError(b, c.remove())
				}
			})
		}
	}
}
