// SPDX-License-Identifier: Apache-2.0

package lakegen

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs/lakefspb"
)

// LargeParams says how large a repository is to be.
type LargeParams struct {
	Seed       uint64
	Entries    int
	Commits    int // beside the first one, which is empty, and the second one, which adds all entries
	Changes    int // entries that each commit changes, side by side
	Raggedness int // records of a range, on average
}

// Large writes the files of a repository with one line of commits into a storage that is its folder, and returns the repository
// without the entries of its commits. Ranges that do not change are written once. Memory: 20 bytes an entry, and one range.
func Large(ctx context.Context, storage block.Storage, p LargeParams) (*Repository, error) {
	r := &Repository{Repository: lakefs.Repository{ID: "large", Namespace: "local://large", DefaultBranch: "main", UID: "0000000000000000large", CreatedAt: largeDate(0)}}
	l := &large{p: p, versions: make([]uint32, p.Entries), rng: rand.New(rand.NewPCG(p.Seed, 0))}
	parent := lakefs.Commit{ID: hash("root of", p), Message: "Repository created", CreatedAt: largeDate(0), Version: 1, Generation: 1}
	r.Commits = append(r.Commits, &Commit{Commit: parent})
	for i := 1; i <= p.Commits+1; i++ {
		first, last := 0, p.Entries
		if i > 1 {
			first = l.rng.IntN(p.Entries - p.Changes + 1)
			last = first + p.Changes
		}
		for e := first; e < last; e++ {
			l.versions[e]++
		}
		metarange, err := l.write(first, last, func(id string, data []byte) error { return storage.Put(ctx, FileName(id), data) })
		if err != nil {
			return nil, fmt.Errorf("write the tree of commit %d: %w", i, err)
		}
		parent = lakefs.Commit{
			ID: hash("commit", i, parent.ID), Committer: "ann", Message: fmt.Sprintf("Change %d", i), CreatedAt: largeDate(i), Metarange: metarange, Parents: []string{parent.ID}, Version: 1, Generation: i + 1,
		}
		r.Commits = append(r.Commits, &Commit{Commit: parent})
	}
	r.Branches = []*Branch{{Branch: lakefs.Branch{ID: "main", Commit: parent.ID, Token: "large-main:1"}}}
	return r, nil
}

func largeDate(commit int) time.Time {
	return time.Date(2020, 1, 1, 0, 0, commit, 0, time.UTC)
}

// large is the tree of the last commit: of each entry its version, and the ranges.
type large struct {
	p        LargeParams
	rng      *rand.Rand
	versions []uint32
	ranges   []lakefs.Range
	ends     []int // of the ranges, in numbers of entries
}

// write writes the ranges that have entries from first to before last, all where there are none yet, and the metarange.
func (l *large) write(first, last int, put func(id string, data []byte) error) (metarange string, err error) {
	w := NewTreeWriter(l.p.Raggedness, put)
	begin := 0
	for i, r := range l.ranges {
		end := l.ends[i]
		if end <= first || begin >= last {
			err = w.Reuse(r)
		} else {
			err = l.add(w, begin, end)
		}
		if err != nil {
			return "", err
		}
		begin = end
	}
	if err := l.add(w, begin, l.p.Entries); err != nil {
		return "", err
	}
	metarange, l.ranges, err = w.Finish()
	l.ends = l.ends[:0]
	n := 0
	for _, r := range l.ranges {
		n += int(r.Count)
		l.ends = append(l.ends, n)
	}
	return metarange, err
}

func (l *large) add(w *TreeWriter, begin, end int) error {
	for i := begin; i < end; i++ {
		if err := w.Add(l.record(i)); err != nil {
			return err
		}
	}
	return nil
}

// record is an entry in its version of now.
func (l *large) record(i int) lakefs.Record {
	identity := sha256.Sum256(fmt.Appendf(nil, "%d %d %d", l.p.Seed, i, l.versions[i]))
	return lakefs.Record{
		Key:      fmt.Appendf(nil, "tables/part-%04d/%09d.parquet", i/1000, i),
		Identity: identity[:],
		Data: marshal(&lakefspb.EntryData{
			Address: fmt.Sprintf("data/%x", identity[:10]), AddressType: lakefspb.AddressType_ADDRESS_RELATIVE, Size: int64(i), Etag: fmt.Sprintf("%x", identity[10:26]),
			ModifiedAt: &lakefspb.Instant{Seconds: 1_577_836_800 + int64(l.versions[i])}, ContentType: "application/octet-stream",
		}),
	}
}
