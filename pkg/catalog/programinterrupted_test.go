// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// doInterrupted applies a part of a transition, as an engine that is not atomic or a reset of some keys would leave it. In the
// order in which the transition gives them, what a key has then is, to the next who writes to it, what it had before the
// transition, or after; in any other order nothing that has no part in it is touched.
func (p *program) doInterrupted(t *rapid.T) {
	_, now, b, model := p.on(t)
	ref := cmpOr(b.Ref, "main")
	key := programKeys.Draw(t, "key")
	tr := Transition{reader{p.Graveler, p.name, ref}, p.versioning, now}
	before := model[key]
	after := before.clone()
	var entries []graveler.Entry
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "transition") {
	case 0:
		var o Object
		o, entries, err = tr.Put(context.Background(), key, p.object(t, now))
		if err == nil {
			require.NoError(t, after.add(p.versioning, modelOf(o), now))
		}
	case 1:
		var d Deleted
		d, entries, err = tr.Delete(context.Background(), key)
		if err == nil && p.versioning == VersioningOff {
			after.versions = nil
		} else if err == nil {
			require.NoError(t, after.add(p.versioning, modelVersion{id: d.DeleteMarkerVersionID, marker: true}, now))
		}
	case 2:
		id, bad := p.drawVersion(t, before)
		if id == "" || bad != nil {
			return
		}
		_, entries, err = tr.DeleteVersion(context.Background(), key, id, true)
		if err == nil {
			require.NoError(t, after.remove(id, now, true))
		}
	}
	if err != nil {
		require.ErrorIs(t, err, AccessDenied)
		return
	}
	if len(entries) == 0 {
		return
	}
	order := rapid.SampledFrom([]string{"given", "by key", "backward"}).Draw(t, "order")
	moved := map[string]bool{}
	for _, e := range entries {
		moved[string(e.Key)] = true
	}
	switch order {
	case "by key":
		slices.SortFunc(entries, func(x, y graveler.Entry) int { return bytes.Compare(x.Key, y.Key) })
	case "backward":
		slices.SortFunc(entries, func(x, y graveler.Entry) int { return bytes.Compare(y.Key, x.Key) })
	}
	p.loose = true
	for _, e := range entries[:rapid.IntRange(0, len(entries)).Draw(t, "steps")] {
		require.NoError(t, p.SetMany(context.Background(), p.name, graveler.BranchID(ref), []graveler.Entry{e}))
	}
	p.checkInterrupted(t, ref, key, order, before, after)
}

// checkInterrupted makes the next change of the key, and takes what the key has then into the model.
func (p *program) checkInterrupted(t *rapid.T, ref, key, order string, before, after modelKey) {
	ids := func(k modelKey) (all []string) {
		for _, v := range k.versions {
			all = append(all, v.id+v.address)
		}
		return all
	}
	shown, err := p.show(ref, false)
	require.NoError(t, err)
	union := append(ids(before), ids(after)...)
	for _, id := range ids(shown[key]) {
		require.Contains(t, union, id, "%s appeared", id)
	}
	var news string
	if o, err := p.Put(context.Background(), Bucket{p.name, ref}, key, Object{PhysicalAddress: "next", Checksum: "next"}, Conditions{}); err == nil {
		news = modelOf(o).id
	} else {
		require.ErrorIs(t, err, AccessDenied)
	}
	got, err := p.show(ref, false)
	require.NoError(t, err)
	if order == "given" && news != "" {
		var wanted [][]string
		for _, k := range []modelKey{before.clone(), after.clone()} {
			k.versions = slices.DeleteFunc(k.versions, func(v modelVersion) bool {
				return v.id == NullVersion && p.versioning == VersioningSuspended || p.versioning == VersioningOff
			})
			k.versions = append([]modelVersion{{id: news, address: "next"}}, k.versions...)
			all := ids(k)
			slices.Sort(all)
			wanted = append(wanted, all)
		}
		all := ids(got[key])
		slices.Sort(all)
		require.Contains(t, wanted, all, "interrupted between\n%v\n%v", before, after)
	}
	p.branches[ref][key] = got[key]
	require.Empty(t, got.differ(p.branches[ref]), "another key was touched")
}

// doMend mends a branch, and takes the markers that it has made into the model.
func (p *program) doMend(t *rapid.T) {
	c, _, b, _ := p.on(t)
	ref := cmpOr(b.Ref, "main")
	before, err := p.show(ref, false)
	require.NoError(t, err)
	_, err = c.Mend(context.Background(), b)
	require.NoError(t, err)
	after, err := p.show(ref, false)
	require.NoError(t, err)
	requireMended(t, before, after)
	for key, n := range p.formOf(t, ref) {
		require.Equal(t, 1, n, key)
	}
	p.branches[ref] = after
}
