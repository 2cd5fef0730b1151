// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

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
