// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate/migratepb"
)

func treeKey(uid, metarange string) string { return treesPrefix + uid + "/" + metarange }

// trees returns what metaranges of a repository became, "" for those that have not become a tree yet.
func (r records) trees(ctx context.Context, uid string, metaranges []string) ([]graveler.MetaRangeID, error) {
	places := make(map[string]int, len(metaranges))
	for i, m := range metaranges {
		places[m] = i
	}
	trees := make([]graveler.MetaRangeID, len(metaranges))
	prefix := treeKey(uid, "")
	notes := kv.ScanMessages(ctx, r.kv, []byte(Partition), kv.ScanOptions{Prefix: []byte(prefix)}, func() *migratepb.MigratedTreeData { return &migratepb.MigratedTreeData{} })
	for n, err := range notes {
		if err != nil {
			return nil, wrapf(err, "read what trees became")
		}
		if at, wanted := places[strings.TrimPrefix(string(n.Key), prefix)]; wanted {
			trees[at] = graveler.MetaRangeID(n.Message.Tree)
		}
	}
	return trees, nil
}

// losses returns the files of a repository that were left out, by ID.
func (r records) losses(ctx context.Context, uid string) (map[string]Lost, error) {
	files := map[string]Lost{}
	prefix := lossesPrefix + uid + "/"
	notes := kv.ScanMessages(ctx, r.kv, []byte(Partition), kv.ScanOptions{Prefix: []byte(prefix)}, func() *migratepb.LostFileData { return &migratepb.LostFileData{} })
	for n, err := range notes {
		if err != nil {
			return nil, wrapf(err, "read which files are lost")
		}
		id, m := strings.TrimPrefix(string(n.Key), prefix), n.Message
		files[id] = Lost{Repository: m.Repository, File: id, Reason: m.Reason, Entries: m.Entries, First: m.First, Last: m.Last, Commit: graveler.CommitID(m.Commit)}
	}
	return files, nil
}

func (r records) putLoss(ctx context.Context, uid, id string, m *migratepb.LostFileData) error {
	return r.put(ctx, lossesPrefix+uid+"/"+id, m)
}

// forget removes what is noted of the trees of a copy that is begun anew.
func (r records) forget(ctx context.Context, uid string) error {
	for _, prefix := range []string{treesPrefix, lossesPrefix} {
		it, err := r.kv.Scan(ctx, []byte(Partition), kv.ScanOptions{Prefix: []byte(prefix + uid + "/")})
		if err != nil {
			return wrapf(err, "read notes")
		}
		var removals []kv.Write
		for it.Next() {
			removals = append(removals, kv.Write{Key: append([]byte(nil), it.Key()...)})
		}
		if err := it.Close(); err != nil {
			return wrapf(err, "read notes")
		}
		for len(removals) > 0 {
			n := min(len(removals), notedTrees)
			if err := kv.SetMany(ctx, r.kv, []byte(Partition), removals[:n]); err != nil {
				return wrapf(err, "remove notes")
			}
			removals = removals[n:]
		}
	}
	return nil
}
