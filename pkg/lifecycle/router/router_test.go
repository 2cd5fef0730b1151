// SPDX-License-Identifier: Apache-2.0

package router_test

import (
	"fmt"
	"math"
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
	"github.com/moraine-store/moraine/pkg/lifecycle/engine"
	"github.com/moraine-store/moraine/pkg/lifecycle/router"
)

func ptr[T any](v T) *T { return &v }

func compiled(t require.TestingT, rules ...lifecycle.Rule) []*engine.CompiledAction {
	for i := range rules {
		rules[i].ID, rules[i].Enabled = fmt.Sprint(i), true
	}
	s, err := engine.Compile(map[graveler.RepositoryID]engine.Repository{"lake": {Configuration: lifecycle.Configuration{Rules: rules}, Versioning: catalog.VersioningEnabled}}, lifecycle.Calendar{})
	require.NoError(t, err)
	return s.RecoveryView().Actions("lake")
}

// Prefixes and keys are of few letters, so that many of them begin with another.
var (
	letters = rapid.SampledFrom([]string{"a", "b", "/", "\xff", "ä"})
	anyName = rapid.Map(rapid.SliceOfN(letters, 0, 5), func(s []string) string { return strings.Join(s, "") })
	anyKey  = rapid.Custom(func(t *rapid.T) string {
		rest := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "/", "\xff", "ä", "\x00", "\x01", "\x00\x01c", "\x00\xff", "c", "n", "v"}), 0, 5).Draw(t, "rest")
		return letters.Draw(t, "first") + strings.Join(rest, "")
	})
)

const id = "0123456789abcdef01234567"

// entryKey is the key of an entry of a kind, as the catalog lays them out.
func entryKey(kind catalog.Kind, key string) graveler.Key {
	escaped := strings.ReplaceAll(key, "\x00", "\x00\xff") + "\x00\x01"
	return graveler.Key(map[catalog.Kind]string{
		catalog.KindCurrent: key, catalog.KindMarker: "\x00v" + escaped + "c", catalog.KindNull: "\x00v" + escaped + "n", catalog.KindNoncurrent: "\x00v" + escaped + "v" + id,
		catalog.KindUpload: "\x00u" + escaped + id, catalog.KindPart: "\x00p" + id + "\x0000001",
	}[kind])
}

var anyKind = rapid.Map(rapid.IntRange(int(catalog.KindCurrent), int(catalog.KindPart)), func(n int) catalog.Kind { return catalog.Kind(n) })

var anyRule = rapid.Custom(func(t *rapid.T) lifecycle.Rule {
	r := lifecycle.Rule{}
	if rapid.IntRange(0, 5).Draw(t, "everything") > 0 {
		r.Filter.Prefix = ptr(strings.ToValidUTF8(anyName.Draw(t, "prefix"), ""))
	}
	switch rapid.IntRange(0, 5).Draw(t, "action") {
	case 0:
		r.Expiration = &lifecycle.Expiration{Days: ptr(1)}
	case 1:
		r.Expiration = &lifecycle.Expiration{Date: ptr(time.Unix(0, 0))}
	case 2:
		r.Expiration = &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(true)}
		return r
	case 3:
		r.AbortIncompleteMultipartUpload = &lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: 1}
		return r
	case 4:
		r.NoncurrentVersionExpiration = &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: ptr(1)}
	case 5:
		r.NoncurrentVersionExpiration = &lifecycle.NoncurrentVersionExpiration{NewerNoncurrentVersions: ptr(1)}
	}
	if rapid.IntRange(0, 3).Draw(t, "tagged") == 0 {
		r.Filter.Tags = []lifecycle.Tag{{Key: "k", Value: rapid.SampledFrom([]string{"", "v"}).Draw(t, "value")}}
	}
	r.Filter.SizeGreaterThan = rapid.SampledFrom([]*int64{nil, nil, ptr(int64(5))}).Draw(t, "greater")
	return r
})

func encode(t require.TestingT, o catalog.Object) graveler.Value {
	v, err := catalog.Encode(o)
	require.NoError(t, err)
	return v
}

// upload returns the value of the entry of a multipart upload.
func upload(t require.TestingT, at time.Time) graveler.Value {
	data, err := proto.Marshal(&catalogpb.UploadData{Object: &catalogpb.ObjectData{}, InitiatedAt: proto.Int64(at.UnixNano())})
	require.NoError(t, err)
	return graveler.Value{Identity: data, Data: data}
}

func TestTheRouterFindsWhatLookingAtEachActionDoes(t *testing.T) {
	matches := map[lifecycle.ActionKind]int{}
	rapid.Check(t, func(t *rapid.T) {
		actions := compiled(t, rapid.SliceOfN(anyRule, 1, 12).Draw(t, "rules")...)
		r := router.New(actions)
		var m router.Match
		for range 20 {
			kind, logical := anyKind.Draw(t, "kind"), anyKey.Draw(t, "key")
			value := encode(t, catalog.Object{
				Size: rapid.Int64Range(4, 7).Draw(t, "size"), DeleteMarker: kind == catalog.KindMarker,
				Tags: rapid.SampledFrom([]map[string]string{nil, {"k": ""}, {"k": "v"}}).Draw(t, "tags"),
			})
			if kind == catalog.KindUpload {
				value = upload(t, time.Unix(1, 0))
			}
			key := entryKey(kind, logical)
			place, err := catalog.ParseKey(key)
			require.NoError(t, err)
			require.Equal(t, kind, place.Kind)

			var object lifecycle.Object
			want := map[*engine.CompiledAction]bool{}
			if kind != catalog.KindPart {
				object, err = lifecycle.NewObject(place, value, catalog.VersioningEnabled)
				require.NoError(t, err)
				for _, a := range actions {
					if a.Accepts(&object) {
						want[a] = true
						matches[a.Kind]++
					}
				}
			}
			matched, err := r.Match(key, value, &m)
			require.NoError(t, err)
			require.Equal(t, len(want) > 0, matched)
			if !matched {
				continue
			}
			require.Equal(t, object, m.Object)
			require.Len(t, m.Actions, len(want))
			longest := math.MaxInt
			for _, a := range m.Actions {
				require.True(t, want[a])
				length := 0
				if p := a.Rule.Filter.Prefix; p != nil {
					length = len(*p)
				}
				require.LessOrEqual(t, length, longest)
				longest = length
			}
		}
	})
	require.Len(t, matches, 6, "some kind never matches: %v", matches)
}

func TestWhatIsNoObjectIsAnErrorOnlyWhereARuleIsAboutIt(t *testing.T) {
	r := router.New(compiled(t, lifecycle.Rule{Filter: lifecycle.Filter{Prefix: ptr("a/")}, Expiration: &lifecycle.Expiration{Days: ptr(1)}}))
	bad := graveler.Value{Identity: []byte("i"), Data: []byte("\xff")}
	var m router.Match
	for _, key := range []string{"b", "\x00p" + id + "\x0000001", "\x00?", "\x00", "", "\x00va/x\x00\x01n"} {
		matched, err := r.Match(graveler.Key(key), bad, &m)
		require.NoError(t, err, "%q", key)
		require.False(t, matched)
	}
	_, err := r.Match(graveler.Key("a/b"), bad, &m)
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
	require.ErrorContains(t, err, "a/b")
	_, err = r.Match(graveler.Key("\x00va/b\x02\x00\x01c\x00\x01c"), encode(t, catalog.Object{}), &m)
	require.ErrorIs(t, err, graveler.ErrCorrupt)
	_, err = r.Match(graveler.Key("a/b"), encode(t, catalog.Object{DeleteMarker: true}), &m)
	require.ErrorIs(t, err, graveler.ErrCorrupt)
}

func TestARouterOfNothingMatchesNothing(t *testing.T) {
	matched, err := router.New(nil).Match(graveler.Key("a"), graveler.Value{}, &router.Match{})
	require.NoError(t, err)
	require.False(t, matched)
}

// event is an entry that no rule of thousand matches.
type event struct {
	name  string
	key   graveler.Key
	value graveler.Value
}

func thousand(t require.TestingT) (*router.Router, []event) {
	var rules []lifecycle.Rule
	for i := range lifecycle.MaxRules {
		rules = append(rules, lifecycle.Rule{Filter: lifecycle.Filter{Prefix: ptr(fmt.Sprintf("tenant-%04d/logs/", i))}, Expiration: &lifecycle.Expiration{Days: ptr(30)}})
	}
	value := encode(t, catalog.Object{PhysicalAddress: "s3://bucket/data/1", Size: 7, ModifiedAt: time.Unix(1, 0)})
	return router.New(compiled(t, rules...)), []event{
		{"other prefix", graveler.Key("tenant-0500/data/2026/01/01/part-00000.parquet"), value},
		{"before all", graveler.Key("archive/2026/01/01/part-00000.parquet"), value},
		{"after all", graveler.Key("z/2026/01/01/part-00000.parquet"), value},
		{"noncurrent version", entryKey(catalog.KindNoncurrent, "tenant-0500/logs/2026/01/01/part-00000.parquet"), value},
		{"upload", entryKey(catalog.KindUpload, "tenant-0500/logs/2026/01/01/part-00000.parquet"), value},
		{"marker", entryKey(catalog.KindMarker, "tenant-0500/data/2026/01/01/part-00000.parquet"), value},
	}
}

func TestAnEventThatNothingMatchesAllocatesNothing(t *testing.T) {
	r, events := thousand(t)
	for _, e := range events {
		var m router.Match
		require.Zero(t, testing.AllocsPerRun(100, func() {
			if matched, err := r.Match(e.key, e.value, &m); matched || err != nil {
				t.Errorf("%s: %t, %v", e.name, matched, err)
			}
		}), e.name)
	}
	var m router.Match
	matched, err := r.Match(graveler.Key("tenant-0500/logs/a"), events[0].value, &m)
	require.NoError(t, err)
	require.True(t, matched)
}

// BenchmarkNoMatch takes turns through thousand rules that no event matches. What is aimed at is 3 million events a second.
func BenchmarkNoMatch(b *testing.B) {
	r, events := thousand(b)
	var m router.Match
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		e := &events[i%len(events)]
		if matched, err := r.Match(e.key, e.value, &m); matched || err != nil {
			b.Fatal(matched, err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkMatch decodes each object, and finds one action.
func BenchmarkMatch(b *testing.B) {
	r, events := thousand(b)
	key := graveler.Key("tenant-0500/logs/2026/01/01/part-00000.parquet")
	var m router.Match
	b.ReportAllocs()
	for b.Loop() {
		if matched, err := r.Match(key, events[0].value, &m); !matched || err != nil {
			b.Fatal(matched, err)
		}
	}
}
