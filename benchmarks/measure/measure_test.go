// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	blockmem "github.com/moraine-store/moraine/pkg/block/mem"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/mem"
)

func TestOperationsCountInThePhaseAndTheIntervalInWhichTheyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRecorder(time.Second, "first")
		began := time.Now()
		time.Sleep(500 * time.Millisecond)
		require.NoError(t, r.Add("write", began))
		time.Sleep(600 * time.Millisecond)
		r.Begin("second")
		require.NoError(t, r.Add("write", time.Now().Add(-time.Millisecond)))
		time.Sleep(3 * time.Second) // nothing happens
		require.NoError(t, r.Add("write", time.Now().Add(-2*time.Millisecond)))
		require.NoError(t, r.Add("read", time.Now()))
		time.Sleep(time.Second)
		phases, points, err := r.Finish()
		require.NoError(t, err)

		require.Len(t, phases, 2)
		require.Equal(t, "first", phases[0].Name)
		require.Equal(t, []float64{0, 1.1, 1.1, 5.1}, []float64{phases[0].From, phases[0].To, phases[1].From, phases[1].To})
		require.Len(t, phases[0].Operations, 1)
		first, second := phases[0].Operations[0], phases[1].Operations[0]
		require.EqualValues(t, 1, first.Count)
		require.InDelta(t, 0.5, first.Max, 0.001)
		require.InDelta(t, 1/1.1, first.PerSecond, 1e-9)
		require.EqualValues(t, 2, second.Count)
		require.InDelta(t, 0.002, second.P99, 1e-5)
		require.Equal(t, "read", phases[1].Operations[1].Name)
		h, err := hdrhistogram.Decode([]byte(second.Histogram))
		require.NoError(t, err)
		require.EqualValues(t, 2, h.TotalCount())

		var rates []float64
		for _, p := range points {
			if p.Operation == "write" {
				require.Equal(t, float64(len(rates)+1), p.Until)
				rates = append(rates, p.PerSecond)
			}
		}
		require.Equal(t, []float64{1, 1, 0, 0, 1}, rates, "a standstill shows")
	})
}

func TestSubjectsAreMeasuredInTurnAndInReverse(t *testing.T) {
	var order []string
	subject := func(name string, figure float64) Subject {
		return Subject{Name: name, Measure: func(_ context.Context, round int) (float64, error) {
			order = append(order, name)
			return figure + float64(round), nil
		}}
	}
	samples, err := Alternate(t.Context(), 3, subject("a", 10), subject("b", 20))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b", "b", "a", "a", "b"}, order)
	require.Equal(t, [][]float64{{10, 11, 12}, {20, 21, 22}}, samples)

	broken := errors.New("broken")
	_, err = Alternate(t.Context(), 3, Subject{Name: "c", Measure: func(context.Context, int) (float64, error) { return 0, broken }})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "c: ")
}

func TestCallsOfAnEngineAreCounted(t *testing.T) {
	ctx := t.Context()
	s := &Store{Store: mem.New()}
	p, k := []byte("p"), []byte("k")
	require.NoError(t, s.Set(ctx, p, k, []byte("value")))
	require.NoError(t, s.SetIf(ctx, p, []byte("f"), []byte("v"), kv.Absent))
	var retries int64
	counted := CountRetries(ctx, &retries)
	require.ErrorIs(t, s.SetIf(counted, p, []byte("f"), []byte("v"), kv.Absent), kv.ErrPredicateFailed)
	fence := &kv.Fence{Partition: p, Key: []byte("f"), Predicate: kv.Equals([]byte("other"))}
	require.ErrorIs(t, s.Apply(counted, p, []kv.Write{{Key: k, Value: k}}, fence), kv.ErrFenceFailed)
	require.ErrorIs(t, s.DeleteIf(ctx, p, []byte("f"), kv.Absent), kv.ErrPredicateFailed)
	require.NoError(t, kv.SetMany(ctx, s, p, []kv.Write{{Key: []byte("m"), Value: k}}))
	_, err := s.Get(ctx, p, k)
	require.NoError(t, err)
	it, err := s.Scan(ctx, p, kv.ScanOptions{})
	require.NoError(t, err)
	require.NoError(t, it.Close())
	require.NoError(t, s.Delete(ctx, p, k))
	require.NoError(t, kv.DropPartition(ctx, s, p))
	require.NoError(t, kv.Publish(ctx, s, []kv.Record{{Partition: p, Key: k, Value: k}}, kv.Record{Partition: p, Key: []byte("l"), Value: k}, kv.Absent))
	require.NoError(t, s.Close())

	require.EqualValues(t, 2, retries, "of the context's own calls")
	require.Equal(t, map[string]int64{
		"kv.get": 1, "kv.set": 1, "kv.set_if": 2, "kv.delete": 1, "kv.delete_if": 1, "kv.scan": 1, "kv.apply": 1, "kv.set_many": 1, "kv.drop_partition": 1, "kv.publish": 1,
		"kv.bytes_written": 6 + 2 + 2 + 2 + 2 + 4, "kv.conditions_failed": 3,
	}, s.Counts())
	require.EqualValues(t, 9, s.Writes())
	require.EqualValues(t, 11, s.Calls(), "with the get and the scan")
}

func TestSyncsOfFilesAndTheirDirectoriesAreCounted(t *testing.T) {
	ctx := t.Context()
	files, err := local.OpenDir(t.TempDir(), block.OpenOptions{})
	require.NoError(t, err)
	s := &Storage{Storage: files}
	for _, name := range []string{"ns/ab/1", "ns/ab/2", "ns/cd/3"} {
		require.NoError(t, s.Put(ctx, name, []byte("data")))
	}
	require.EqualValues(t, 3, s.Syncs(), "one of each file")
	require.NoError(t, s.Sync(ctx, []string{"ns/ab/1", "ns/ab/2", "ns/cd/3"}))
	require.EqualValues(t, 3+4, s.Syncs(), "two directories, the one above, and the root")
	_, err = s.Get(ctx, "ns/ab/1")
	require.NoError(t, err)
	_, err = s.GetRange(ctx, "ns/ab/1", 0, 2)
	require.NoError(t, err)
	require.EqualValues(t, 12, s.BytesPut())
	require.Equal(t, map[string]int64{"block.files_put": 3, "block.bytes_put": 12, "block.reads": 2, "block.bytes_read": 6, "block.sync_calls": 1, "block.syncs": 7}, s.Counts())
	require.EqualValues(t, 6, s.Calls(), "three puts, two reads, one sync")
	require.NoError(t, s.Close())
	require.Zero(t, (&Storage{Storage: blockmem.New()}).Syncs(), "it makes none")
}

func TestBboltSaysHowManyTransactionsItHasSeen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	db, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	before, err := BoltTransactions(path)
	require.NoError(t, err)
	for range 5 {
		require.NoError(t, db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucketIfNotExists([]byte("b"))
			return err
		}))
	}
	after, err := BoltTransactions(path)
	require.NoError(t, err)
	require.EqualValues(t, 5, after-before)
	require.NoError(t, db.Close())
	_, err = BoltTransactions(path + "none")
	require.Error(t, err)
}

func TestThePeakOfAnonymousMemoryShows(t *testing.T) {
	m := SampleMemory()
	m.Mark()
	before := m.Peak()
	taken := make([]byte, 64<<20)
	for i := range taken {
		taken[i] = 1
	}
	peak := m.Peak()
	runtime.KeepAlive(taken)
	all := m.Stop()
	if runtime.GOOS != "linux" {
		require.Zero(t, all.PeakBytes)
		return
	}
	require.Greater(t, peak-before, int64(48<<20))
	require.GreaterOrEqual(t, all.PeakBytes, peak)
	require.NotEmpty(t, all.Samples)
}

func TestSamplesOfALongRunAreThinnedOut(t *testing.T) {
	m := &Memory{start: time.Now(), every: 1}
	for range 5 * keptSamples {
		m.take()
	}
	require.LessOrEqual(t, len(m.all.Samples), keptSamples)
	if runtime.GOOS == "linux" {
		require.Greater(t, len(m.all.Samples), keptSamples/4)
	}
}

func TestTheMachineIsDescribed(t *testing.T) {
	m := Machine(t.TempDir())
	require.Positive(t, m.Cores)
	require.NotEmpty(t, m.CPU)
	require.NotEmpty(t, m.Filesystem)
	require.Contains(t, m.System, runtime.GOOS)
	require.NotEmpty(t, Versions()["go"])
}
