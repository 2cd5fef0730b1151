// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

var programKeys = rapid.SampledFrom([]string{"a", "a\x00b", "b\xff"})

// TestObjectsBehaveAsS3Documents runs random programs and compares all that a bucket has with a model of what S3 documents, after every step.
func TestObjectsBehaveAsS3Documents(t *testing.T) {
	for name, url := range engineURLs(t) {
		t.Run(name, func(t *testing.T) {
			e := openEngine(t, url)
			if name == "mem" {
				for range rounds() {
					rapid.Check(t, func(t *rapid.T) { runProgram(t, e) })
				}
				return
			}
			few(t, func(t *rapid.T) { runProgram(t, e) })
		})
	}
}

// rounds is how often the tests in memory are repeated: by night, with as many checks as `make nightly` asks for, it makes 100,000 programs.
func rounds() int {
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		return 5
	}
	return 1
}

// few runs a property on an engine on disk, by day for a tenth of the checks.
func few(t *testing.T, property func(t *rapid.T)) {
	checks := flag.Lookup("rapid.checks").Value
	if n, err := strconv.Atoi(checks.String()); err == nil && os.Getenv("MORAINE_NIGHTLY") == "" {
		require.NoError(t, checks.Set(strconv.Itoa(max(n/10, 1))))
		defer func() { require.NoError(t, checks.Set(strconv.Itoa(n))) }()
	}
	rapid.Check(t, property)
}

// program is a run on a bucket with two branches, beside the model of it.
type program struct {
	*fixture
	versioning Versioning
	locks      bool
	branches   map[string]modelBranch // what they show
	heads      map[string]modelBranch // what is committed
	names      int
	loose      bool // something was interrupted: what is out of form is not an error any more
}

func runProgram(t *rapid.T, e *engine) {
	p := &program{fixture: e.bucket(t), branches: map[string]modelBranch{"main": {}}, heads: map[string]modelBranch{"main": {}}}
	if rapid.Bool().Draw(t, "object lock") {
		require.NoError(t, p.SetVersioning(context.Background(), p.name, VersioningEnabled))
		require.NoError(t, p.SetObjectLock(context.Background(), p.name, ObjectLockConfig{Enabled: true}))
		p.versioning, p.locks = VersioningEnabled, true
	}
	t.Repeat(map[string]func(*rapid.T){
		"put":              p.doPut,
		"put again":        p.doPut,
		"delete":           p.doDelete,
		"delete version":   p.doDeleteVersion,
		"delete many":      p.doDeleteMany,
		"delete prefix":    p.doDeletePrefix,
		"copy":             p.doCopy,
		"edit":             p.doEdit,
		"set versioning":   p.doVersioning,
		"commit":           p.doCommit,
		"branch":           p.doBranch,
		"reset":            p.doReset,
		"interrupted move": p.doInterrupted,
		"":                 p.compare,
	})
}

// on draws a process, and a branch with its bucket and its model.
func (p *program) on(t *rapid.T) (c *Catalog, now time.Time, b Bucket, model modelBranch) {
	p.clock.Add(int64(rapid.SampledFrom([]time.Duration{0, 1, time.Second, 2 * apart, 48 * time.Hour}).Draw(t, "later")))
	i := rapid.IntRange(0, 1).Draw(t, "process")
	name := "main"
	if len(p.branches) > 1 && rapid.Bool().Draw(t, "other branch") {
		name = "other"
	}
	b = Bucket{Repository: p.name, Ref: name}
	if name == "main" && rapid.Bool().Draw(t, "by default") {
		b.Ref = ""
	}
	return p.both[i], p.now().Add(time.Duration(i) * apart), b, p.branches[name]
}

func (p *program) object(t *rapid.T, now time.Time) Object {
	p.names++
	o := Object{PhysicalAddress: fmt.Sprint(p.names), Checksum: fmt.Sprint(p.names)}
	if rapid.IntRange(0, 3).Draw(t, "own time") == 0 {
		o.ModifiedAt = now.Add(-time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "ago")))
	}
	if p.locks {
		o.Lock = drawLock(t, now)
	}
	return o
}

func drawLock(t *rapid.T, now time.Time) Lock {
	l := Lock{LegalHold: rapid.IntRange(0, 5).Draw(t, "hold") == 0}
	if l.Mode = LockMode(rapid.IntRange(0, 2).Draw(t, "mode")); l.Mode != LockNone {
		l.RetainUntil = now.Add(time.Duration(rapid.IntRange(1, 72).Draw(t, "hours")) * time.Hour)
	}
	return l
}

func (k modelKey) conditions(t *rapid.T) Conditions {
	switch rapid.IntRange(0, 5).Draw(t, "condition") {
	case 0:
		return Conditions{IfNoneMatch: "*"}
	case 1:
		return Conditions{IfMatch: "*"}
	case 2:
		return Conditions{IfMatch: "1"}
	case 3:
		if cur := k.current(); cur != nil {
			return Conditions{IfMatch: cur.address}
		}
	}
	return Conditions{}
}

// expectPut makes a put that had the outcome o, err in the model.
func (p *program) expectPut(t *rapid.T, model modelBranch, key string, want error, now time.Time, given Object, o Object, err error) {
	k := model[key].clone()
	v := modelOf(o)
	if want == nil {
		v.address, v.tags, v.lock = given.PhysicalAddress, given.Tags, given.Lock
		want = k.add(p.versioning, v, now)
	}
	require.True(t, sameCode(err, want), "%v, not %v", err, want)
	if err != nil {
		return
	}
	p.checkTime(t, model[key], now, given.ModifiedAt, o)
	model[key] = k
}

// checkTime holds the time and the ID of a new version to what is said about them.
func (p *program) checkTime(t *rapid.T, before modelKey, now, given time.Time, o Object) {
	if given.IsZero() {
		given = now
	}
	if p.versioning == VersioningOff {
		require.Equal(t, "", o.VersionID)
		require.True(t, given.Equal(o.ModifiedAt))
		return
	}
	at := given.UnixNano()
	if len(before.versions) > 0 {
		at = max(at, before.versions[0].at+1)
	}
	if p.loose && o.ModifiedAt.UnixNano() > at { // it is later than a marker beside the object, too
		at = o.ModifiedAt.UnixNano()
	}
	require.Equal(t, at, o.ModifiedAt.UnixNano())
	if p.versioning == VersioningSuspended {
		require.Equal(t, NullVersion, o.VersionID)
		return
	}
	of, ok := versionTimeOf(o.VersionID)
	require.True(t, ok)
	require.Equal(t, at, of)
}

func (p *program) doPut(t *rapid.T) {
	c, now, b, model := p.on(t)
	key := programKeys.Draw(t, "key")
	given, conditions := p.object(t, now), model[key].conditions(t)
	o, err := c.Put(context.Background(), b, key, given, conditions)
	p.expectPut(t, model, key, model[key].judge(conditions), now, given, o, err)
}

func (p *program) doCopy(t *rapid.T) {
	c, now, b, model := p.on(t)
	from, key := programKeys.Draw(t, "from"), programKeys.Draw(t, "key")
	version, want := p.drawVersion(t, model[from])
	conditions := model[key].conditions(t)
	i := 0
	if version == "" {
		if model[from].current() == nil {
			want = NoSuchKey
		} else if from == key {
			want = InvalidRequest
		}
	} else if i = model[from].find(version); want == nil && i < 0 {
		want = NoSuchVersion
	} else if want == nil && model[from].versions[i].marker {
		want = MethodNotAllowed
	}
	if want == nil {
		want = model[key].judge(conditions)
	}
	o, err := c.Copy(context.Background(), b, from, b, key, CopyParams{VersionID: version, Target: conditions})
	var given Object
	if want == nil {
		given = Object{PhysicalAddress: model[from].versions[i].address, Tags: model[from].versions[i].tags}
	}
	p.expectPut(t, model, key, want, now, given, o, err)
}

// drawVersion draws a version of a key, one that does not exist, or the current one ("").
func (p *program) drawVersion(t *rapid.T, k modelKey) (id string, err error) {
	switch i := rapid.IntRange(-3, 5).Draw(t, "version"); {
	case i == -3:
		return "", nil
	case i == -2:
		return NullVersion, nil
	case i == -1:
		return newVersionID(1), nil
	case i < len(k.versions):
		return k.versions[i].id, nil
	case i == 5:
		return "no version", InvalidArgument
	}
	return "", nil
}

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

// markerTime returns the time of a new marker of a key. One that is made where an interruption has left another beside the object is later than that, too.
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

func (p *program) doEdit(t *rapid.T) {
	c, now, b, model := p.on(t)
	key := programKeys.Draw(t, "key")
	version, want := p.drawVersion(t, model[key])
	i := 0
	if version != "" {
		i = model[key].find(version)
	}
	switch {
	case want != nil:
	case version == "" && model[key].current() == nil:
		want = NoSuchKey
	case i < 0:
		want = NoSuchVersion
	case model[key].versions[i].marker:
		want = MethodNotAllowed
	}
	edited := modelKey{}
	var v *modelVersion = &modelVersion{}
	if want == nil {
		edited = model[key].clone()
		v = &edited.versions[i]
	}
	var err error
	lock, bypass := drawLock(t, now), rapid.Bool().Draw(t, "bypass")
	switch rapid.IntRange(0, 2).Draw(t, "what") {
	case 0:
		v.tags = map[string]string{"step": fmt.Sprint(p.names)}
		err = c.PutTagging(context.Background(), b, key, version, v.tags)
	case 1:
		if want == nil && !p.locks {
			want = InvalidRequest
		}
		v.lock.LegalHold = lock.LegalHold
		err = c.PutLegalHold(context.Background(), b, key, version, lock.LegalHold)
	case 2:
		if want == nil && !p.locks {
			want = InvalidRequest
		}
		if want == nil && v.lock.RetainUntil.After(now) && !(v.lock.Mode == LockGovernance && bypass) && (lock.Mode != v.lock.Mode || lock.RetainUntil.Before(v.lock.RetainUntil)) {
			want = AccessDenied
		}
		v.lock.Mode, v.lock.RetainUntil = lock.Mode, lock.RetainUntil
		err = c.PutRetention(context.Background(), b, key, version, Retention{lock.Mode, lock.RetainUntil}, bypass)
	}
	require.True(t, sameCode(err, want), "%v, not %v", err, want)
	if err == nil {
		model[key] = edited
	}
}

func (p *program) doVersioning(t *rapid.T) {
	c, _, _, _ := p.on(t)
	v := rapid.SampledFrom([]Versioning{VersioningEnabled, VersioningSuspended}).Draw(t, "versioning")
	err := c.SetVersioning(context.Background(), p.name, v)
	if p.locks && v == VersioningSuspended {
		require.ErrorIs(t, err, InvalidBucketState)
		return
	}
	require.NoError(t, err)
	p.versioning = v
}

func (p *program) doCommit(t *rapid.T) {
	for name := range p.branches {
		_, err := p.Graveler.Commit(context.Background(), p.name, graveler.BranchID(name), graveler.CommitParams{AllowEmpty: true})
		require.NoError(t, err)
		p.heads[name] = p.branches[name].clone()
	}
}

func (p *program) doBranch(t *rapid.T) {
	if len(p.branches) == 1 {
		_, err := p.CreateBranch(context.Background(), p.name, "other", "main")
		require.NoError(t, err)
		p.branches["other"], p.heads["other"] = p.heads["main"].clone(), p.heads["main"].clone()
	}
}

func (p *program) doReset(t *rapid.T) {
	require.NoError(t, p.ResetStaged(context.Background(), p.name, "main", nil))
	p.branches["main"] = p.heads["main"].clone()
}

// doInterrupted applies a part of a transition, as an engine that is not atomic or a reset of some keys would leave it. In the order in which the transition gives them, what a key has then is, to the next who writes to it,
// what it had before the transition, or after; in any other order nothing that has no part in it is touched.
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

// compare holds everything to the model that a bucket has, and that its operations show.
func (p *program) compare(t *rapid.T) {
	for name, model := range p.branches {
		for ref, want := range map[string]modelBranch{name: model, name + "@": p.heads[name]} {
			got, err := p.show(ref, !p.loose)
			require.NoError(t, err)
			require.Empty(t, got.differ(want), ref)
		}
	}
	c, _, b, model := p.on(t)
	key := programKeys.Draw(t, "key")
	o, err := c.Get(context.Background(), b, key, GetParams{})
	if cur := model[key].current(); cur != nil {
		require.NoError(t, err)
		require.Equal(t, cur.address, o.PhysicalAddress)
	} else {
		require.ErrorIs(t, err, NoSuchKey)
		require.Equal(t, len(model[key].versions) > 0 && !model[key].headless, o.DeleteMarker)
	}
	for _, v := range model[key].versions {
		o, err := c.Get(context.Background(), b, key, GetParams{VersionID: v.id})
		if v.marker {
			require.ErrorIs(t, err, MethodNotAllowed)
		} else {
			require.NoError(t, err)
		}
		got := modelOf(o)
		if v.marker {
			got.since = v.since
		}
		require.Equal(t, v.String(), got.String())
	}
	_, err = c.Get(context.Background(), b, key, GetParams{VersionID: newVersionID(1)})
	require.True(t, errors.Is(err, NoSuchVersion))
}
