// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// expectDelete makes a deletion that had the outcome d, err in the model.
func (p *program) expectDelete(t *rapid.T, b Bucket, model modelBranch, now time.Time, id ObjectID, bypass bool, d Deleted, err error) {
	k := model[id.Key].clone()
	want := k.judge(Conditions{IfMatch: id.IfMatch})
	wanted := Deleted{Key: id.Key, VersionID: id.VersionID}
	switch {
	case id.VersionID != "" && id.IfMatch != "":
		want = NotImplemented
	case id.VersionID != "" && !isNull(id.VersionID) && !isVersionID(id.VersionID):
		want = InvalidArgument
	case want != nil:
	case id.VersionID != "":
		if i := k.find(id.VersionID); i >= 0 && k.versions[i].marker {
			wanted.DeleteMarker, wanted.DeleteMarkerVersionID = true, id.VersionID
		}
		want = k.remove(id.VersionID, now, bypass)
	case p.versioning == VersioningOff:
		if cur := k.current(); cur != nil && cur.locked(now, false) {
			want = AccessDenied
		} else {
			k.versions = nil
		}
	default:
		at := now.UnixNano()
		if len(k.versions) > 0 {
			at = max(at, k.versions[0].at+1)
		}
		if err == nil {
			at = p.markerTime(t, b, id.Key, d.DeleteMarkerVersionID, at)
		}
		wanted.DeleteMarker, wanted.DeleteMarkerVersionID = true, d.DeleteMarkerVersionID
		if want = k.add(p.versioning, modelVersion{id: d.DeleteMarkerVersionID, marker: true, at: at}, now); want == nil && err == nil {
			require.Equal(t, p.versioning == VersioningSuspended, d.DeleteMarkerVersionID == NullVersion)
			require.True(t, isNull(d.DeleteMarkerVersionID) || isVersionID(d.DeleteMarkerVersionID))
		}
	}
	require.True(t, sameCode(err, want), "%v, not %v", err, want)
	if err != nil {
		return
	}
	require.Equal(t, wanted, d)
	model[id.Key] = k
}

// markerTime returns the time of a new marker of a key. One that is made where an interruption has left another beside the object
// is later than that, too.
func (p *program) markerTime(t *rapid.T, b Bucket, key, id string, at int64) int64 {
	if !p.loose {
		return at
	}
	m, err := p.Catalog.Get(context.Background(), b, key, GetParams{VersionID: id})
	require.ErrorIs(t, err, MethodNotAllowed)
	return max(at, m.ModifiedAt.UnixNano())
}

func (p *program) drawObject(t *rapid.T, model modelBranch) ObjectID {
	id := ObjectID{Key: programKeys.Draw(t, "key")}
	if rapid.Bool().Draw(t, "by version") {
		id.VersionID, _ = p.drawVersion(t, model[id.Key])
	}
	if rapid.IntRange(0, 2).Draw(t, "conditional") == 0 {
		id.IfMatch = model[id.Key].conditions(t).IfMatch
	}
	return id
}

func (p *program) doDelete(t *rapid.T) {
	c, now, b, model := p.on(t)
	id := ObjectID{Key: programKeys.Draw(t, "key")}
	id.IfMatch = model[id.Key].conditions(t).IfMatch
	d, err := c.Delete(context.Background(), b, id.Key, DeleteParams{IfMatch: id.IfMatch})
	p.expectDelete(t, b, model, now, id, false, d, err)
}

func (p *program) doDeleteVersion(t *rapid.T) {
	c, now, b, model := p.on(t)
	id, bypass := p.drawObject(t, model), rapid.Bool().Draw(t, "bypass")
	d, err := c.Delete(context.Background(), b, id.Key, DeleteParams{id.VersionID, id.IfMatch, bypass})
	p.expectDelete(t, b, model, now, id, bypass, d, err)
}

func (p *program) doDeleteMany(t *rapid.T) {
	c, now, b, model := p.on(t)
	bypass := rapid.Bool().Draw(t, "bypass")
	ids := []ObjectID{}
	for range rapid.IntRange(0, 4).Draw(t, "objects") {
		id := p.drawObject(t, model)
		if p.loose && slices.ContainsFunc(ids, func(o ObjectID) bool { return o.Key == id.Key }) {
			continue // the time of a marker that is replaced in the same call could not be told
		}
		ids = append(ids, id)
	}
	results, err := c.DeleteMany(context.Background(), b, ids, bypass)
	require.NoError(t, err)
	require.Len(t, results, len(ids))
	for i, id := range ids {
		err := results[i].Err
		results[i].Err = nil
		p.expectDelete(t, b, model, now, id, bypass, results[i], err)
	}
}

func (p *program) doDeletePrefix(t *rapid.T) {
	c, now, b, model := p.on(t)
	prefix := rapid.SampledFrom([]string{"", "a", "b", "a\x00", "c"}).Draw(t, "prefix")
	before := model.clone()
	n, err := c.DeletePrefix(context.Background(), b, prefix)
	shown, showErr := p.show(cmpOr(b.Ref, "main"), !p.loose)
	require.NoError(t, showErr)
	deleted := 0
	for _, key := range []string{"a", "a\x00b", "b\xff"} {
		k := model[key].clone()
		if k.current() == nil || !bytes.HasPrefix([]byte(key), []byte(prefix)) {
			continue
		}
		marker := modelVersion{id: "?", marker: true, at: max(now.UnixNano(), k.versions[0].at+1)}
		if v := shown[key].versions; p.loose && len(v) > 0 && v[0].marker {
			marker.at = max(marker.at, v[0].at)
		}
		var refused error
		if p.versioning == VersioningOff {
			k.versions = nil
		} else if p.versioning == VersioningSuspended {
			marker.id = NullVersion
		}
		if p.versioning != VersioningOff {
			refused = k.add(p.versioning, marker, now)
		}
		if refused != nil {
			require.ErrorIs(t, err, refused)
			continue
		}
		deleted++
		model[key] = k
	}
	if deleted == n {
		for key, k := range model { // the IDs of the markers are not returned
			if len(k.versions) > 0 && k.versions[0].id == "?" && len(shown[key].versions) > 0 {
				k.versions[0].id = shown[key].versions[0].id
			}
		}
		return
	}
	t.Fatalf("%d deleted, not %d, of %v: %v", n, deleted, before, err)
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
