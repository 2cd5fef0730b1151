// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/catalog/catalogpb"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// assembled is an assemble that gives an address of its own.
func assembled(address string) func(context.Context, Upload, []Part) (Content, error) {
	return func(context.Context, Upload, []Part) (Content, error) { return Content{PhysicalAddress: address}, nil }
}

func etag(of string) string { return fmt.Sprintf("%x", md5.Sum([]byte(of))) }

func bigPart(number int, text string) Part {
	return Part{Number: number, PhysicalAddress: text, Size: MinPartBytes, Checksum: etag(text)}
}

func named(parts ...Part) (list []CompletedPart) {
	for _, p := range parts {
		list = append(list, CompletedPart{p.Number, `"` + p.Checksum + `"`})
	}
	return list
}

func (f *fixture) upload(t fataler, key string, parts ...Part) Upload {
	t.Helper()
	u, err := f.CreateUpload(context.Background(), f.bucket(), key, Object{ContentType: "text/plain", Tags: map[string]string{"a": "b"}})
	require.NoError(t, err)
	for _, p := range parts {
		_, _, err := f.PutPart(context.Background(), f.bucket(), key, u.UploadID, p)
		require.NoError(t, err)
	}
	return u
}

// entries counts the entries of each kind.
func (f *fixture) entries(t fataler) map[Kind]int {
	t.Helper()
	counts := map[Kind]int{}
	for l, err := range f.Graveler.List(context.Background(), f.name, "main", graveler.ListOptions{}) {
		require.NoError(t, err)
		p, err := ParseKey(l.Key)
		require.NoError(t, err)
		counts[p.Kind]++
	}
	return counts
}

func TestAnUploadBecomesAnObject(t *testing.T) {
	f := newFixture(t)
	one, two, last := bigPart(1, "one"), bigPart(2, "two"), Part{Number: 7, PhysicalAddress: "last", Size: 3, Checksum: etag("last")}
	u := f.upload(t, "k", one, bigPart(5, "not needed"), last, two)
	initiated := f.now()
	f.clock.Add(1e9)
	done, err := f.CompleteUpload(t.Context(), f.bucket(), "k", u.UploadID, named(one, two, last), func(_ context.Context, of Upload, parts []Part) (Content, error) {
		require.Equal(t, u, of)
		require.Equal(t, []string{"one", "two", "last"}, []string{parts[0].PhysicalAddress, parts[1].PhysicalAddress, parts[2].PhysicalAddress})
		return Content{PhysicalAddress: "all"}, nil
	}, Conditions{})
	require.NoError(t, err)
	sums := [][16]byte{md5.Sum([]byte("one")), md5.Sum([]byte("two")), md5.Sum([]byte("last"))}
	want := Object{
		PhysicalAddress: "all", Size: 2*MinPartBytes + 3, Checksum: fmt.Sprintf("%x-3", md5.Sum(slices.Concat(sums[0][:], sums[1][:], sums[2][:]))),
		ContentType: "text/plain", Tags: map[string]string{"a": "b"}, ModifiedAt: initiated,
	}
	require.Equal(t, want, done.Object)
	require.Equal(t, want, f.get(t, "k", ""))
	require.Len(t, done.Unused, 1)
	require.Equal(t, "not needed", done.Unused[0].PhysicalAddress)
	require.Equal(t, map[Kind]int{KindCurrent: 1}, f.entries(t))
}

func TestCompletionsThatS3Refuses(t *testing.T) {
	f := newFixture(t)
	one, two, small := bigPart(1, "one"), bigPart(2, "two"), Part{Number: 3, Size: 1, Checksum: etag("small")}
	u := f.upload(t, "k", one, two, small)
	f.put(t, "k", "before")
	for name, c := range map[string]struct {
		key, id    string
		list       []CompletedPart
		conditions Conditions
		want       Code
	}{
		"unknown upload":   {"k", newUploadID(1), named(one), Conditions{}, NoSuchUpload},
		"no ID":            {"k", "x", named(one), Conditions{}, NoSuchUpload},
		"another key":      {"l", u.UploadID, named(one), Conditions{}, NoSuchUpload},
		"no parts":         {"k", u.UploadID, nil, Conditions{}, MalformedXML},
		"order":            {"k", u.UploadID, named(two, one), Conditions{}, InvalidPartOrder},
		"a part twice":     {"k", u.UploadID, named(one, one), Conditions{}, InvalidPartOrder},
		"a missing part":   {"k", u.UploadID, named(one, bigPart(4, "x")), Conditions{}, InvalidPart},
		"missing at first": {"k", u.UploadID, named(bigPart(0, "x"), one), Conditions{}, InvalidPart},
		"another ETag":     {"k", u.UploadID, named(bigPart(1, "other")), Conditions{}, InvalidPart},
		"a small part":     {"k", u.UploadID, named(small, bigPart(4, "x")), Conditions{}, InvalidPart},
		"exists":           {"k", u.UploadID, named(one), Conditions{IfNoneMatch: "*"}, PreconditionFailed},
	} {
		_, err := f.CompleteUpload(t.Context(), f.bucket(), c.key, c.id, c.list, assembled("x"), c.conditions)
		require.ErrorIs(t, err, c.want, name)
	}
	_, _, err := f.PutPart(t.Context(), f.bucket(), "k", u.UploadID, bigPart(4, "four"))
	require.NoError(t, err)
	_, err = f.CompleteUpload(t.Context(), f.bucket(), "k", u.UploadID, named(small, bigPart(4, "four")), assembled("x"), Conditions{})
	require.ErrorIs(t, err, EntityTooSmall)
	failed := errors.New("disk full")
	_, err = f.CompleteUpload(t.Context(), f.bucket(), "k", u.UploadID, named(one), func(context.Context, Upload, []Part) (Content, error) { return Content{}, failed }, Conditions{})
	require.ErrorIs(t, err, failed)
	require.Equal(t, "before", f.get(t, "k", "").PhysicalAddress)
	require.Equal(t, map[Kind]int{KindCurrent: 1, KindUpload: 1, KindPart: 4}, f.entries(t))
	for _, p := range []Part{{Number: 0}, {Number: MaxParts + 1}, {Number: 1, Size: -1}, {Number: 1, Size: MaxPartBytes + 1}} {
		_, _, err := f.PutPart(t.Context(), f.bucket(), "k", u.UploadID, p)
		require.Contains(t, []Code{InvalidArgument, EntityTooLarge}, CodeOf(err))
	}
	_, err = f.CreateUpload(t.Context(), f.bucket(), "", Object{})
	require.ErrorIs(t, err, InvalidArgument)
	_, err = f.CreateUpload(t.Context(), f.bucket(), "k", Object{Lock: Lock{LegalHold: true}})
	require.ErrorIs(t, err, InvalidRequest)
	_, err = MultipartETag([]Part{{Number: 1, Checksum: "x"}})
	require.ErrorIs(t, err, graveler.ErrInvalidValue)
}

func TestUploadsOfTenThousandParts(t *testing.T) {
	for _, abort := range []bool{true, false} {
		f := newFixture(t)
		u := f.upload(t, "k")
		var entries []graveler.Entry
		var all []Part
		for i := range MaxParts {
			p := bigPart(i+1, fmt.Sprint(i))
			v, err := p.value("k")
			require.NoError(t, err)
			all, entries = append(all, p), append(entries, graveler.Entry{Key: partKey(u.UploadID, p.Number), Value: &v})
		}
		require.NoError(t, f.SetMany(t.Context(), f.name, "main", entries))
		if abort {
			parts, err := f.AbortUpload(t.Context(), f.bucket(), "k", u.UploadID)
			require.NoError(t, err)
			require.Len(t, parts, MaxParts)
			require.Empty(t, f.entries(t))
			continue
		}
		var numbers []int
		for p := (ListPartsParams{}); ; {
			page, err := f.ListParts(t.Context(), f.bucket(), "k", u.UploadID, p)
			require.NoError(t, err)
			for _, p := range page.Parts {
				numbers = append(numbers, p.Number)
			}
			if p.PartNumberMarker = page.NextPartNumberMarker; !page.Truncated {
				break
			}
		}
		require.Len(t, numbers, MaxParts)
		require.True(t, slices.IsSorted(numbers))
		done, err := f.CompleteUpload(t.Context(), f.bucket(), "k", u.UploadID, named(all...), assembled("all"), Conditions{})
		require.NoError(t, err)
		require.EqualValues(t, MaxParts*MinPartBytes, done.Object.Size)
		require.Equal(t, map[Kind]int{KindCurrent: 1}, f.entries(t))
	}
}

// A part that is replaced while the object is put together is not in it: what was put together is thrown away, and made again.
func TestAPartThatIsReplacedDuringACompletion(t *testing.T) {
	f := newFixture(t)
	one := bigPart(1, "one")
	u := f.upload(t, "k", one)
	calls := 0
	again := one
	again.PhysicalAddress = "the same bytes elsewhere"
	done, err := f.CompleteUpload(t.Context(), f.bucket(), "k", u.UploadID, named(one), func(ctx context.Context, _ Upload, parts []Part) (Content, error) {
		if calls++; calls == 1 {
			_, replaced, err := f.PutPart(ctx, f.bucket(), "k", u.UploadID, again)
			require.NoError(t, err)
			require.Equal(t, "one", replaced.PhysicalAddress)
		}
		return Content{PhysicalAddress: parts[0].PhysicalAddress}, nil
	}, Conditions{})
	require.NoError(t, err)
	require.Equal(t, again.PhysicalAddress, done.Object.PhysicalAddress)
	require.Equal(t, 2, calls)
}

func TestOfCompletionsAndAbortsAtTheSameTimeOneWins(t *testing.T) {
	f := newFixture(t)
	for round := range 20 {
		key := fmt.Sprint("k", round)
		one := bigPart(1, "one")
		u := f.upload(t, key, one)
		errs := make([]error, 4)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				c := f.both[i%2]
				if i < 2 {
					_, errs[i] = c.CompleteUpload(t.Context(), f.bucket(), key, u.UploadID, named(one), assembled("all"), Conditions{})
				} else {
					_, errs[i] = c.AbortUpload(t.Context(), f.bucket(), key, u.UploadID)
				}
			})
		}
		wg.Wait()
		won := -1
		for i, err := range errs {
			if err == nil {
				require.Equal(t, -1, won, "%d too", i)
				won = i
			} else {
				require.ErrorIs(t, err, NoSuchUpload)
			}
		}
		_, err := f.Catalog.Get(t.Context(), f.bucket(), key, GetParams{})
		require.Equal(t, won < 2, err == nil)
	}
	counts := f.entries(t)
	require.Zero(t, counts[KindUpload]+counts[KindPart])
}

// modelUpload is an upload as S3 has it.
type modelUpload struct {
	key   string
	parts map[int]Part
}

// TestUploadsBehaveAsS3Documents runs random programs of uploads in all states of versioning.
func TestUploadsBehaveAsS3Documents(t *testing.T) {
	onMemAndDisk(t, func(t *rapid.T, e *engine) {
		p := &uploadProgram{fixture: e.bucket(t), uploads: map[string]modelUpload{}, objects: modelBranch{}}
		t.Repeat(map[string]func(*rapid.T){
			"create": p.create, "put part": p.putPart, "put another part": p.putPart, "complete": p.complete, "abort": p.abort, "set versioning": p.setVersioning,
			"commit": func(t *rapid.T) {
				_, err := p.Graveler.Commit(context.Background(), p.name, "main", graveler.CommitParams{AllowEmpty: true})
				require.NoError(t, err)
			},
			"list": p.list, "": p.compare,
		})
	})
}

type uploadProgram struct {
	*fixture
	uploads    map[string]modelUpload // by ID
	objects    modelBranch
	versioning Versioning
	made       int
}

func (p *uploadProgram) catalog(t *rapid.T) *Catalog {
	p.clock.Add(1)
	return p.both[rapid.IntRange(0, 1).Draw(t, "process")]
}

func (p *uploadProgram) create(t *rapid.T) {
	key := listedKey.Draw(t, "key")
	u, err := p.catalog(t).CreateUpload(context.Background(), p.bucket(), key, Object{ContentType: "x"})
	require.NoError(t, err)
	p.uploads[u.UploadID] = modelUpload{key, map[int]Part{}}
}

func (p *uploadProgram) draw(t *rapid.T) (id string, u modelUpload, ok bool) {
	ids := append(slices.Sorted(maps.Keys(p.uploads)), "00000000000000000000ffff")
	id = rapid.SampledFrom(ids).Draw(t, "upload")
	u, ok = p.uploads[id]
	if !ok {
		u.key = "k"
	}
	return id, u, ok
}

func (p *uploadProgram) putPart(t *rapid.T) {
	id, u, ok := p.draw(t)
	p.made++
	part := bigPart(rapid.IntRange(1, 4).Draw(t, "number"), fmt.Sprint(p.made))
	if rapid.IntRange(0, 3).Draw(t, "small") == 0 {
		part.Size = MinPartBytes - 1
	}
	put, replaced, err := p.catalog(t).PutPart(context.Background(), p.bucket(), u.key, id, part)
	if !ok {
		require.ErrorIs(t, err, NoSuchUpload)
		return
	}
	require.NoError(t, err)
	if old, ok := u.parts[part.Number]; ok {
		require.Equal(t, old, *replaced)
	} else {
		require.Nil(t, replaced)
	}
	u.parts[part.Number] = put
}

func (p *uploadProgram) complete(t *rapid.T) {
	id, u, ok := p.draw(t)
	var list []CompletedPart
	var want error
	size := int64(0)
	for _, number := range rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4).Draw(t, "parts") {
		part, exists := u.parts[number]
		c := CompletedPart{number, part.Checksum}
		if exists && rapid.IntRange(0, 9).Draw(t, "wrong") == 0 {
			c.ETag, exists = etag("wrong"), false
		}
		if !exists && want == nil {
			want = InvalidPart
		}
		list = append(list, c)
		size += part.Size
	}
	for i, c := range list[1:] {
		if list[i].Number >= c.Number {
			want = InvalidPartOrder
		}
	}
	for _, c := range list[:len(list)-1] {
		if want == nil && u.parts[c.Number].Size < MinPartBytes {
			want = EntityTooSmall
		}
	}
	k := p.objects[u.key].clone()
	conditions := k.conditions(t)
	if want == nil {
		want = k.judge(conditions)
	}
	if !ok {
		want = NoSuchUpload
	}
	done, err := p.catalog(t).CompleteUpload(context.Background(), p.bucket(), u.key, id, list, assembled(id), conditions)
	require.True(t, sameCode(err, want), "%v, not %v", err, want)
	if err != nil {
		return
	}
	require.Equal(t, size, done.Object.Size)
	require.Len(t, done.Unused, len(u.parts)-len(list))
	require.NoError(t, k.add(p.versioning, modelOf(done.Object), p.now()))
	p.objects[u.key] = k
	delete(p.uploads, id)
}

func (p *uploadProgram) abort(t *rapid.T) {
	id, u, ok := p.draw(t)
	parts, err := p.catalog(t).AbortUpload(context.Background(), p.bucket(), u.key, id)
	if !ok {
		require.ErrorIs(t, err, NoSuchUpload)
		return
	}
	require.NoError(t, err)
	require.Equal(t, sortedParts(u), parts)
	delete(p.uploads, id)
}

func sortedParts(u modelUpload) (parts []Part) {
	for _, n := range slices.Sorted(maps.Keys(u.parts)) {
		parts = append(parts, u.parts[n])
	}
	return parts
}

func (p *uploadProgram) setVersioning(t *rapid.T) {
	p.versioning = rapid.SampledFrom([]Versioning{VersioningEnabled, VersioningSuspended}).Draw(t, "versioning")
	require.NoError(t, p.SetVersioning(context.Background(), p.name, p.versioning))
}

// list follows the markers of uploads to the end.
func (p *uploadProgram) list(t *rapid.T) {
	q := ListUploadsParams{Prefix: listedPrefix.Draw(t, "prefix"), Delimiter: listedDelimiter.Draw(t, "delimiter"), UploadIDMarker: "not looked at"}
	if rapid.Bool().Draw(t, "marker") {
		q.KeyMarker, q.UploadIDMarker = rapid.OneOf(listedKey, listedPrefix).Draw(t, "key marker"), ""
		if len(p.uploads) > 0 && rapid.Bool().Draw(t, "of an upload") {
			q.UploadIDMarker = rapid.SampledFrom(slices.Sorted(maps.Keys(p.uploads))).Draw(t, "ID marker")
			q.KeyMarker = p.uploads[q.UploadIDMarker].key
		}
	}
	type line struct{ name, id string }
	var want []line
	for id, u := range p.uploads {
		rest, ok := strings.CutPrefix(u.key, q.Prefix)
		i := strings.Index(rest, q.Delimiter)
		switch inCommon := q.Delimiter != "" && i >= 0; {
		case !ok:
		case inCommon:
			if l := (line{u.key[:len(q.Prefix)+i+len(q.Delimiter)], ""}); l.name > q.KeyMarker && !slices.Contains(want, l) {
				want = append(want, l)
			}
		case u.key > q.KeyMarker, u.key == q.KeyMarker && q.UploadIDMarker != "" && id > q.UploadIDMarker:
			want = append(want, line{u.key, id})
		}
	}
	compare := func(a, b line) int { return strings.Compare(a.name+"\x00"+a.id, b.name+"\x00"+b.id) }
	slices.SortFunc(want, func(a, b line) int {
		if a.name != b.name {
			return strings.Compare(a.name, b.name)
		}
		return compare(a, b)
	})
	var got []line
	for {
		q.MaxUploads = *drawSize(t)
		page, err := p.ListUploads(context.Background(), p.bucket(), q)
		require.NoError(t, err)
		var found []line
		for _, u := range page.Uploads {
			found = append(found, line{u.Key, u.UploadID})
		}
		for _, c := range page.CommonPrefixes {
			found = append(found, line{c, ""})
		}
		slices.SortStableFunc(found, func(a, b line) int { return strings.Compare(a.name, b.name) })
		require.LessOrEqual(t, len(found), q.MaxUploads)
		got = append(got, found...)
		if q.KeyMarker, q.UploadIDMarker = page.NextKeyMarker, page.NextUploadIDMarker; !page.Truncated {
			break
		}
		require.Equal(t, found[len(found)-1], line{q.KeyMarker, q.UploadIDMarker})
	}
	require.Equal(t, want, got)
}

// compare holds everything to the model.
func (p *uploadProgram) compare(t *rapid.T) {
	shown := 0
	for v, err := range p.Versions(context.Background(), p.bucket(), "", "") {
		require.NoError(t, err)
		i := p.objects[v.Key].find(v.VersionID)
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, i == 0, v.Latest)
		require.Equal(t, p.objects[v.Key].versions[i].address, v.PhysicalAddress)
		shown++
	}
	for _, k := range p.objects {
		shown -= len(k.versions)
	}
	require.Zero(t, shown)
	for id, u := range p.uploads {
		var parts []Part
		for marker := 0; ; {
			page, err := p.ListParts(context.Background(), p.bucket(), u.key, id, ListPartsParams{PartNumberMarker: marker, MaxParts: 2})
			require.NoError(t, err)
			require.Equal(t, "x", page.Upload.Object.ContentType)
			parts = append(parts, page.Parts...)
			if marker = page.NextPartNumberMarker; !page.Truncated {
				break
			}
		}
		require.Equal(t, sortedParts(u), parts)
	}
	parts := 0
	for _, u := range p.uploads {
		parts += len(u.parts)
	}
	counts := p.entries(t)
	require.Equal(t, len(p.uploads), counts[KindUpload])
	require.Equal(t, parts, counts[KindPart])
}

func TestUploadsKeepTheFieldsOfNewerPrograms(t *testing.T) {
	m := &catalogpb.UploadData{Object: &catalogpb.ObjectData{ContentType: "x"}}
	m.ProtoReflect().SetUnknown([]byte{0xa0, 0x06, 0x07}) // field 100
	data, err := proto.Marshal(m)
	require.NoError(t, err)
	u, err := DecodeUpload(Place{Key: "k"}, graveler.Value{Data: data})
	require.NoError(t, err)
	with, err := u.value()
	require.NoError(t, err)
	require.Equal(t, data, with.Data)
	u.unknown = nil
	without, err := u.value()
	require.NoError(t, err)
	require.NotEqual(t, with.Identity, without.Identity)
	for _, data := range [][]byte{nil, {0xff}} {
		_, err := DecodeUpload(Place{Key: "k"}, graveler.Value{Data: data})
		require.ErrorIs(t, err, graveler.ErrInvalidValue)
	}
}

// Retention releases values without their keys, and their bytes are found by decoding them.
func TestTheValueOfAPartTellsWhereItsBytesAre(t *testing.T) {
	p := Part{Number: 1, PhysicalAddress: "file:part", Size: 7, Checksum: "c", ModifiedAt: time.Unix(3, 4).UTC()}
	v, err := p.value("a\x00key")
	require.NoError(t, err)
	o, err := Decode(v)
	require.NoError(t, err)
	require.Equal(t, "file:part", o.PhysicalAddress)
	require.EqualValues(t, 7, o.Size)
}

// The parts of an upload that is aborted go while a completion looks for them.
func TestACompletionOvertakenByAnAbortFindsNoUpload(t *testing.T) {
	f := newFixture(t)
	part := bigPart(1, "part")
	u := f.upload(t, "k", part)
	store := &interposed{Store: f.Graveler, before: func(int) {}, beforeList: func() {
		_, err := f.AbortUpload(t.Context(), f.bucket(), "k", u.UploadID)
		require.NoError(t, err)
	}}
	c, err := New(Config{Store: store, Now: f.now})
	require.NoError(t, err)
	_, err = c.CompleteUpload(t.Context(), Bucket{f.name, "main"}, "k", u.UploadID, named(part), assembled("all"), Conditions{})
	require.ErrorIs(t, err, NoSuchUpload)
}
