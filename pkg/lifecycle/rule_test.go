// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/catalog/catalogpb"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// anyObject draws objects of the keys, tags and sizes that anyFilter has a chance to accept.
var anyObject = rapid.Custom(func(t *rapid.T) lifecycle.Object {
	o := lifecycle.Object{
		Kind: rapid.SampledFrom([]lifecycle.ObjectKind{lifecycle.Current, lifecycle.Marker, lifecycle.Noncurrent, lifecycle.Upload}).Draw(t, "kind"),
		Key:  "k" + anyText.Draw(t, "key"), ModifiedAt: anyTime.Draw(t, "modified"),
		Sole: rapid.Bool().Draw(t, "sole"), NewerNoncurrent: rapid.IntRange(0, 4).Draw(t, "newer"),
	}
	if o.Kind == lifecycle.Current || o.Kind == lifecycle.Noncurrent {
		o.Size = rapid.Int64Range(0, 20).Draw(t, "size")
		o.Tags = rapid.MapOf(rapid.SampledFrom([]string{"0", "1", "2"}), rapid.SampledFrom([]string{"", "a", "b"})).Draw(t, "tags")
	}
	if o.Kind == lifecycle.Noncurrent && rapid.Bool().Draw(t, "displaced") {
		o.NoncurrentSince = anyTime.Draw(t, "since")
	}
	return o
})

// likely draws rules that accept a good part of the objects.
func likely(t *rapid.T, i int) lifecycle.Rule {
	r := anyRule(t, false)
	r.ID, r.Enabled = fmt.Sprint(i), rapid.IntRange(0, 3).Draw(t, "disabled") > 0
	prefixOnly := r.AbortIncompleteMultipartUpload != nil || r.Expiration != nil && r.Expiration.ExpiredObjectDeleteMarker != nil
	r.Filter = lifecycle.Filter{Prefix: rapid.SampledFrom([]*string{nil, ptr(""), ptr("k"), ptr("ka"), ptr("x")}).Draw(t, "prefix")}
	if !prefixOnly {
		if rapid.IntRange(0, 3).Draw(t, "tagged") == 0 {
			r.Filter.Tags = []lifecycle.Tag{{Key: "0", Value: rapid.SampledFrom([]string{"", "a"}).Draw(t, "value")}}
		}
		r.Filter.SizeGreaterThan = rapid.SampledFrom([]*int64{nil, nil, nil, ptr(int64(0)), ptr(int64(10))}).Draw(t, "greater")
		r.Filter.SizeLessThan = rapid.SampledFrom([]*int64{nil, nil, nil, ptr(int64(15))}).Draw(t, "less")
	}
	if n := r.NoncurrentVersionExpiration; n != nil && n.NewerNoncurrentVersions != nil {
		n.NewerNoncurrentVersions = ptr(rapid.IntRange(1, 3).Draw(t, "newer"))
	}
	return r
}

// earliest is what S3's guide says, written down without a thought for how it is done elsewhere: the earliest time at which a rule ends o.
func earliest(rules []lifecycle.Rule, o *lifecycle.Object, c lifecycle.Calendar) (first time.Time, id string) {
	consider := func(r *lifecycle.Rule, at time.Time) {
		if id == "" || at.Before(first) {
			first, id = at, r.ID
		}
	}
	for i := range rules {
		r := &rules[i]
		f := r.Filter
		if !r.Enabled || f.Prefix != nil && !strings.HasPrefix(o.Key, *f.Prefix) || f.SizeGreaterThan != nil && !(o.Size > *f.SizeGreaterThan) || f.SizeLessThan != nil && !(o.Size < *f.SizeLessThan) {
			continue
		}
		tagged := true
		for _, tag := range f.Tags {
			value, there := o.Tags[tag.Key]
			tagged = tagged && there && value == tag.Value
		}
		if !tagged {
			continue
		}
		displaced := o.NoncurrentSince
		if displaced.IsZero() {
			displaced = o.ModifiedAt
		}
		e, n, a := r.Expiration, r.NoncurrentVersionExpiration, r.AbortIncompleteMultipartUpload
		switch {
		case o.Kind == lifecycle.Current && e != nil && e.Days != nil:
			consider(r, c.Due(*e.Days, o.ModifiedAt))
		case o.Kind == lifecycle.Current && e != nil && e.Date != nil:
			consider(r, *e.Date)
		case o.Kind == lifecycle.Marker && o.Sole && e != nil && e.Days != nil:
			consider(r, c.Due(*e.Days, o.ModifiedAt))
		case o.Kind == lifecycle.Marker && o.Sole && e != nil && e.ExpiredObjectDeleteMarker != nil && *e.ExpiredObjectDeleteMarker:
			consider(r, o.ModifiedAt)
		case o.Kind == lifecycle.Noncurrent && n != nil && (n.NewerNoncurrentVersions == nil || o.NewerNoncurrent >= *n.NewerNoncurrentVersions):
			if n.NoncurrentDays != nil {
				consider(r, c.Due(*n.NoncurrentDays, displaced))
			} else {
				consider(r, displaced)
			}
		case o.Kind == lifecycle.Upload && a != nil:
			consider(r, c.Due(a.DaysAfterInitiation, o.ModifiedAt))
		}
	}
	return first, id
}

func TestTheEarliestExpiryIsPredicted(t *testing.T) {
	predicted := map[lifecycle.ActionKind]int{}
	rapid.Check(t, func(t *rapid.T) {
		var rules []lifecycle.Rule
		for i := range rapid.IntRange(0, 5).Draw(t, "rules") {
			rules = append(rules, likely(t, i))
		}
		c := anyCalendar.Draw(t, "calendar")
		for range 100 {
			o := anyObject.Draw(t, "object")
			want, id := earliest(rules, &o, c)
			got, ok := lifecycle.PredictExpiry(rules, &o, c)
			require.Equal(t, id != "", ok)
			if !ok {
				require.Zero(t, got)
				continue
			}
			require.Equal(t, id, got.Rule.ID)
			require.True(t, want.Equal(got.At), "%s, not %s", got.At, want)
			predicted[got.Kind]++
		}
	})
	require.Len(t, predicted, 6, "some kind is never the first: %v", predicted)
}

func TestARuleAsksForItsActions(t *testing.T) {
	rules := everything.Clone().Rules
	rules = append(rules,
		lifecycle.Rule{Expiration: &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(false)}},
		lifecycle.Rule{NoncurrentVersionExpiration: &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: ptr(2)}})
	var got []lifecycle.Action
	for i := range rules {
		got = append(got, rules[i].Actions()...)
	}
	require.Equal(t, []lifecycle.Action{
		{Kind: lifecycle.ExpirationDays, Rule: &rules[0], Delay: 30},
		{Kind: lifecycle.NoncurrentDays, Rule: &rules[0], Delay: 7, NewerNoncurrent: 3},
		{Kind: lifecycle.AbortMPU, Rule: &rules[1], Delay: 1},
		{Kind: lifecycle.ExpiredDeleteMarker, Rule: &rules[1]},
		{Kind: lifecycle.ExpirationDate, Rule: &rules[2], Date: at(t, "2027-01-02T00:00:00Z")},
		{Kind: lifecycle.NewerNoncurrent, Rule: &rules[4], NewerNoncurrent: 2},
	}, got)
}

func parse(t *testing.T, filter, actions string) *lifecycle.Rule {
	t.Helper()
	c, err := lifecycle.ParseXML([]byte(filtered(filter, actions)))
	require.NoError(t, err)
	return &c.Rules[0]
}

func only(t *testing.T, filter, actions string) *lifecycle.Action {
	t.Helper()
	all := parse(t, filter, actions).Actions()
	require.Len(t, all, 1)
	return &all[0]
}

// Two predicates without an And: whoever drops the prefix deletes too much.
func TestAPrefixBesideATagIsNeverDropped(t *testing.T) {
	_, err := lifecycle.ParseXML([]byte(filtered("<Prefix>logs/</Prefix>"+tagA, days)))
	requireRefused(t, err, catalog.MalformedXML, "a", "Filter", "needs an And")
	_, err = lifecycle.ParseXML([]byte(filtered("<Prefix/>"+tagA, days)))
	requireRefused(t, err, catalog.MalformedXML, "a", "Filter", "needs an And")
}

// MinIO #9769.
func TestATagValueMatchesAsAWhole(t *testing.T) {
	a := only(t, "<Tag><Key>a</Key><Value>temp</Value></Tag>", days)
	for value, want := range map[string]bool{"temp": true, "temporary": false, "te": false, "": false, "Temp": false, "a temp": false} {
		require.Equal(t, want, a.Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "k", Tags: map[string]string{"a": value}}), value)
	}
	require.False(t, a.Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "k", Tags: map[string]string{"temp": "a"}}))
	require.False(t, only(t, "<Tag><Key>a</Key><Value/></Tag>", days).Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "k"}), "no tag is not an empty one")
}

func TestAllTagsMustMatch(t *testing.T) {
	a := only(t, "<And>"+tagA+tagB+"</And>", days)
	for _, c := range []struct {
		tags map[string]string
		want bool
	}{
		{map[string]string{"a": "1", "b": "2", "c": "3"}, true},
		{map[string]string{"a": "1", "b": "2"}, true},
		{map[string]string{"a": "1"}, false},
		{map[string]string{"a": "2", "b": "1"}, false},
		{nil, false},
	} {
		require.Equal(t, c.want, a.Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "k", Tags: c.tags}), c.tags)
	}
}

// RustFS #7456.
func TestARuleThatOnlyAbortsUploadsIsAccepted(t *testing.T) {
	a := only(t, "<Prefix>a/</Prefix>", abort)
	require.Equal(t, lifecycle.AbortMPU, a.Kind)
	require.True(t, a.Accepts(&lifecycle.Object{Kind: lifecycle.Upload, Key: "a/b"}))
	require.False(t, a.Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "a/b"}))
}

// NooBaa #8550.
func TestRuleIDsAreUnique(t *testing.T) {
	one := "<Rule><ID>a</ID><Filter/><Status>Enabled</Status>" + days + "</Rule>"
	_, err := lifecycle.ParseXML([]byte(whole(one, strings.Replace(one, "Enabled", "Disabled", 1))))
	requireRefused(t, err, catalog.InvalidArgument, "a", "ID", "Found same ID for more than one rule")
}

// terraform-provider-aws #28851.
func TestASizeOfZeroIsNotAnAbsentOne(t *testing.T) {
	r := parse(t, "<ObjectSizeGreaterThan>0</ObjectSizeGreaterThan>", days)
	require.Equal(t, ptr(int64(0)), r.Filter.SizeGreaterThan)
	for _, form := range []struct {
		write func(lifecycle.Configuration) ([]byte, error)
		parse func([]byte) (lifecycle.Configuration, error)
	}{{lifecycle.Configuration.XML, lifecycle.ParseXML}, {lifecycle.Configuration.JSON, lifecycle.ParseJSON}} {
		data, err := form.write(lifecycle.Configuration{Rules: []lifecycle.Rule{*r}})
		require.NoError(t, err)
		got, err := form.parse(data)
		require.NoError(t, err)
		require.Equal(t, []lifecycle.Rule{*r}, got.Rules)
	}
	a := &r.Actions()[0]
	require.False(t, a.Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "k"}))
	require.True(t, a.Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "k", Size: 1}))
}

func TestSizesCompareStrictly(t *testing.T) {
	a := only(t, "<And><ObjectSizeGreaterThan>10</ObjectSizeGreaterThan><ObjectSizeLessThan>12</ObjectSizeLessThan></And>", days)
	for size, want := range map[int64]bool{9: false, 10: false, 11: true, 12: false, 13: false} {
		require.Equal(t, want, a.Accepts(&lifecycle.Object{Kind: lifecycle.Current, Key: "k", Size: size}), size)
	}
}

// SeaweedFS #6619, as far as times go: each object has its own.
func TestEachObjectIsDueByItsOwnAge(t *testing.T) {
	a := only(t, "", "<Expiration><Days>30</Days></Expiration>")
	for _, modified := range []string{"2026-01-01T12:00:00Z", "2026-01-29T12:00:00Z"} {
		o := lifecycle.Object{Kind: lifecycle.Current, Key: "k", ModifiedAt: at(t, modified)}
		due, ok := lifecycle.Due(a, &o, lifecycle.Calendar{})
		require.True(t, ok)
		require.Equal(t, at(t, modified).Add(31*24*time.Hour).Truncate(24*time.Hour), due)
	}
}

// MinIO #12961.
func TestANoncurrentVersionIsAsOldAsItsDisplacement(t *testing.T) {
	a := only(t, "", "<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>")
	o := lifecycle.Object{Kind: lifecycle.Noncurrent, Key: "k", ModifiedAt: at(t, "2020-01-01T12:00:00Z"), NoncurrentSince: at(t, "2026-01-01T12:00:00Z")}
	due, ok := lifecycle.Due(a, &o, lifecycle.Calendar{})
	require.True(t, ok)
	require.Equal(t, at(t, "2026-01-03T00:00:00Z"), due)

	o.NoncurrentSince = time.Time{}
	due, ok = lifecycle.Due(a, &o, lifecycle.Calendar{})
	require.True(t, ok)
	require.Equal(t, at(t, "2020-01-03T00:00:00Z"), due)
}

// An object whose age is not known could have been stored a moment ago.
func TestAnObjectOfUnknownAgeIsNotDue(t *testing.T) {
	for _, c := range []struct {
		actions string
		kind    lifecycle.ObjectKind
	}{
		{days, lifecycle.Current}, {abort, lifecycle.Upload}, {"<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>", lifecycle.Noncurrent},
	} {
		_, ok := lifecycle.Due(only(t, "", c.actions), &lifecycle.Object{Kind: c.kind, Key: "k", Sole: true}, lifecycle.Calendar{})
		require.False(t, ok, c.actions)
	}
}

func TestSiblingsDecide(t *testing.T) {
	const keep = "<NewerNoncurrentVersions>2</NewerNoncurrentVersions></NoncurrentVersionExpiration>"
	for _, c := range []struct {
		actions string
		object  lifecycle.Object
		want    bool
	}{
		{days, lifecycle.Object{Kind: lifecycle.Current}, true},
		{days, lifecycle.Object{Kind: lifecycle.Marker}, false},
		{days, lifecycle.Object{Kind: lifecycle.Marker, Sole: true}, true},
		{lone, lifecycle.Object{Kind: lifecycle.Marker}, false},
		{lone, lifecycle.Object{Kind: lifecycle.Marker, Sole: true}, true},
		{lone, lifecycle.Object{Kind: lifecycle.Noncurrent, DeleteMarker: true, Sole: true}, false},
		{"<Expiration><Date>2026-01-01</Date></Expiration>", lifecycle.Object{Kind: lifecycle.Marker, Sole: true}, false},
		{"<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays></NoncurrentVersionExpiration>", lifecycle.Object{Kind: lifecycle.Noncurrent, DeleteMarker: true}, true},
		{"<NoncurrentVersionExpiration>" + keep, lifecycle.Object{Kind: lifecycle.Noncurrent, NewerNoncurrent: 1}, false},
		{"<NoncurrentVersionExpiration>" + keep, lifecycle.Object{Kind: lifecycle.Noncurrent, NewerNoncurrent: 2}, true},
		{"<NoncurrentVersionExpiration>" + keep, lifecycle.Object{Kind: lifecycle.Noncurrent, NewerNoncurrent: 7}, true},
		{"<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays>" + keep, lifecycle.Object{Kind: lifecycle.Noncurrent, NewerNoncurrent: 1}, false},
		{"<NoncurrentVersionExpiration><NoncurrentDays>1</NoncurrentDays>" + keep, lifecycle.Object{Kind: lifecycle.Noncurrent, NewerNoncurrent: 2}, true},
	} {
		a := only(t, "", c.actions)
		require.Equal(t, c.want, a.Applies(&c.object), "%s: %+v", c.actions, c.object)
		require.Equal(t, c.object.Kind == lifecycle.Marker || strings.Contains(c.actions, "Newer"), a.Siblings(c.object.Kind), c.actions)
	}
}

func TestALockBarsWhatIsPermanent(t *testing.T) {
	a := only(t, "", days)
	for _, c := range []struct {
		object lifecycle.Object
		want   bool
	}{
		{lifecycle.Object{Kind: lifecycle.Current, Versioning: catalog.VersioningOff}, true},
		{lifecycle.Object{Kind: lifecycle.Current, Versioning: catalog.VersioningEnabled, VersionID: "1"}, false},
		{lifecycle.Object{Kind: lifecycle.Current, Versioning: catalog.VersioningEnabled}, false},
		{lifecycle.Object{Kind: lifecycle.Current, Versioning: catalog.VersioningSuspended, VersionID: "1"}, false},
		{lifecycle.Object{Kind: lifecycle.Current, Versioning: catalog.VersioningSuspended, VersionID: "null"}, true},
		{lifecycle.Object{Kind: lifecycle.Noncurrent, Versioning: catalog.VersioningEnabled}, true},
		{lifecycle.Object{Kind: lifecycle.Marker, Versioning: catalog.VersioningEnabled}, true},
		{lifecycle.Object{Kind: lifecycle.Upload, Versioning: catalog.VersioningEnabled}, true},
	} {
		require.Equal(t, c.want, a.Permanent(&c.object), "%+v", c.object)
	}

	now := at(t, "2026-01-01T00:00:00Z")
	for _, c := range []struct {
		lock   catalog.Lock
		until  time.Time
		locked bool
	}{
		{catalog.Lock{}, time.Time{}, false},
		{catalog.Lock{Mode: catalog.LockGovernance, RetainUntil: now.Add(1)}, now.Add(1), true},
		{catalog.Lock{Mode: catalog.LockCompliance, RetainUntil: now}, time.Time{}, false},
		{catalog.Lock{Mode: catalog.LockCompliance, RetainUntil: now.Add(1), LegalHold: true}, time.Time{}, true},
		{catalog.Lock{LegalHold: true}, time.Time{}, true},
	} {
		until, locked := (&lifecycle.Object{Lock: c.lock}).Locked(now)
		require.Equal(t, c.locked, locked, "%+v", c.lock)
		require.Equal(t, c.until, until)
	}
	for _, o := range []lifecycle.Object{{Kind: lifecycle.Upload}, {Kind: lifecycle.Marker, DeleteMarker: true}, {Kind: lifecycle.Noncurrent, DeleteMarker: true}} {
		o.Lock.LegalHold = true
		_, locked := o.Locked(now)
		require.False(t, locked, "%+v", o)
	}
}

func TestAnEntryIsSeenAsAnObject(t *testing.T) {
	stored := catalog.Object{
		PhysicalAddress: "a", Size: 7, Tags: map[string]string{"a": "b"}, VersionID: "1", ModifiedAt: time.Unix(1, 0).UTC(), NoncurrentSince: time.Unix(2, 0).UTC(), Lock: catalog.Lock{LegalHold: true},
	}
	value, err := catalog.Encode(stored)
	require.NoError(t, err)
	want := lifecycle.Object{
		Key: "k", Size: 7, Tags: stored.Tags, ContentIdentity: stored.ContentIdentity(), ModifiedAt: stored.ModifiedAt, NoncurrentSince: stored.NoncurrentSince, Lock: stored.Lock, Versioning: catalog.VersioningEnabled,
	}
	for _, c := range []struct {
		place    catalog.Place
		kind     lifecycle.ObjectKind
		version  string
		identity []byte
	}{
		{catalog.Place{Kind: catalog.KindCurrent, Key: "k"}, lifecycle.Current, "1", want.ContentIdentity},
		{catalog.Place{Kind: catalog.KindNull, Key: "k", VersionID: "null"}, lifecycle.Noncurrent, "null", want.ContentIdentity},
		{catalog.Place{Kind: catalog.KindNoncurrent, Key: "k", VersionID: "v"}, lifecycle.Noncurrent, "v", want.ContentIdentity},
	} {
		want.Kind, want.VersionID, want.ContentIdentity = c.kind, c.version, c.identity
		got, err := lifecycle.NewObject(c.place, value, catalog.VersioningEnabled)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}

	data, err := proto.Marshal(&catalogpb.UploadData{Object: &catalogpb.ObjectData{}, InitiatedAt: proto.Int64(7)})
	require.NoError(t, err)
	upload := catalog.Place{Kind: catalog.KindUpload, Key: "k", UploadID: "u"}
	got, err := lifecycle.NewObject(upload, graveler.Value{Data: data}, catalog.VersioningEnabled)
	require.NoError(t, err)
	require.Equal(t, lifecycle.Object{
		Kind: lifecycle.Upload, Key: "k", ContentIdentity: []byte("u"), VersionID: "u", ModifiedAt: time.Unix(0, 7).UTC(), Versioning: catalog.VersioningEnabled,
	}, got)

	stored.DeleteMarker = true
	marker, err := catalog.Encode(stored)
	require.NoError(t, err)
	got, err = lifecycle.NewObject(catalog.Place{Kind: catalog.KindMarker, Key: "k"}, marker, catalog.VersioningEnabled)
	require.NoError(t, err)
	require.Equal(t, lifecycle.Marker, got.Kind)
	require.True(t, got.DeleteMarker)

	for name, c := range map[string]struct {
		place catalog.Place
		value graveler.Value
		want  error
	}{
		"no object":         {catalog.Place{Kind: catalog.KindCurrent, Key: "k"}, graveler.Value{Data: []byte("\xff")}, graveler.ErrInvalidValue},
		"no upload":         {upload, graveler.Value{Data: []byte("\xff")}, graveler.ErrInvalidValue},
		"a part":            {catalog.Place{Kind: catalog.KindPart, UploadID: "u", Part: 1}, value, graveler.ErrCorrupt},
		"a marker as entry": {catalog.Place{Kind: catalog.KindCurrent, Key: "k"}, marker, graveler.ErrCorrupt},
		"no marker":         {catalog.Place{Kind: catalog.KindMarker, Key: "k"}, value, graveler.ErrCorrupt},
	} {
		_, err := lifecycle.NewObject(c.place, c.value, catalog.VersioningEnabled)
		require.ErrorIs(t, err, c.want, name)
	}
}

// Positions are kept by shard, so these never change. Checked against sha256sum.
func TestShardsNeverChange(t *testing.T) {
	for key, want := range map[string]int{"": 0xe, "a": 0x6, "logs/2026/01/01": 0x6} {
		require.Equal(t, want, lifecycle.ShardOf("lake", key), key)
	}
	counts := map[int]int{}
	for i := range 16_000 {
		counts[lifecycle.ShardOf("lake", fmt.Sprint(i))]++
	}
	require.Len(t, counts, lifecycle.Shards)
	for shard, n := range counts {
		require.InDelta(t, 1000, n, 200, shard)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { lifecycle.ShardOf("lake", "logs/2026/01/01") }))
	require.Equal(t, lifecycle.ShardOf("lake", strings.Repeat("k", 4000)), lifecycle.ShardOf("lake", strings.Repeat("k", 4000)))
}

// All that a key has is of one shard, since the logical key decides.
func TestAKeyItsVersionsMarkersAndUploadsAreOfOneShard(t *testing.T) {
	const id = "0123456789abcdef01234567"
	for _, key := range []string{"a/b\x00c", "\x00va/b\x00\xffc\x00\x01c", "\x00va/b\x00\xffc\x00\x01n", "\x00va/b\x00\xffc\x00\x01v" + id, "\x00ua/b\x00\xffc\x00\x01" + id} {
		place, err := catalog.ParseKey(graveler.Key(key))
		require.NoError(t, err)
		require.Equal(t, lifecycle.ShardOf("lake", "a/b\x00c"), lifecycle.ShardOf("lake", place.Key), "%q", key)
	}
}

func TestOnlySettledOutcomesArePassed(t *testing.T) {
	for o, want := range map[lifecycle.Outcome]bool{
		0: false, lifecycle.Done: true, lifecycle.NoopResolved: true, lifecycle.SkippedObjectLock: true, lifecycle.RetryLater: false, lifecycle.Blocked: false, lifecycle.Blocked + 1: false,
	} {
		require.Equal(t, want, o.Settled(), o)
	}
}
