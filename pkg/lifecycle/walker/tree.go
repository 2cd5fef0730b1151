// SPDX-License-Identifier: Apache-2.0

package walker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

// Store reads trees; *graveler.Graveler does.
type Store interface {
	ScanTree(ctx context.Context, repo graveler.RepositoryID, tree graveler.MetaRangeID) (graveler.Iterator[graveler.Entry], error)
}

// Object is an object and the key of the entry that holds it.
type Object struct {
	lifecycle.Object
	Entry graveler.Key
	// Value is the identity of the entry's value; nil where it is not known.
	Value []byte
}

// Tree shows the objects in a tree. What is asked for in the order of keys is read once; memory depends neither on the size of
// the tree nor on the number of versions of a key. It is used by one goroutine, one sequence at a time, and must be closed.
type Tree struct {
	ctx        context.Context // of the iterators
	versioning catalog.Versioning
	areas      [areas]area
}

const areas = 3

// area is a place in one of the areas of a tree.
type area struct {
	of catalog.Area
	it graveler.Iterator[graveler.Entry]

	// After a look-up: the key that was asked for, and whether the iterator stands at the first entry that is not before it.
	asked  []byte
	stands bool

	// While groups are read: the next entry, and its logical key.
	at    bool // there is one
	key   string
	entry graveler.Entry
	taken bool // it is of the last group
	moved bool // the iterator does not stand at the entry any more
}

// Open returns the tree of a repository whose bucket has that versioning. Reading ends when ctx does.
func Open(ctx context.Context, s Store, repo graveler.RepositoryID, tree graveler.MetaRangeID, v catalog.Versioning) (*Tree, error) {
	t := &Tree{ctx: ctx, versioning: v}
	for i := range t.areas {
		it, err := s.ScanTree(ctx, repo, tree)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		t.areas[i] = area{of: catalog.Area(i), it: it}
	}
	return t, nil
}

// Close releases everything.
func (t *Tree) Close() error {
	var errs []error
	for _, a := range t.areas {
		if a.it != nil {
			errs = append(errs, a.it.Close())
		}
	}
	return errors.Join(errs...)
}

// Entry returns the value of an entry, nil where there is none.
func (t *Tree) Entry(key graveler.Key) (*graveler.Value, error) {
	a := t.area(key)
	a.moved = true
	if !a.lookUp(key) || !bytes.Equal(a.it.Item().Key, key) {
		return nil, a.it.Err()
	}
	return a.it.Item().Value.Clone(), nil
}

// nearby is how many entries are passed over before seeking is cheaper.
const nearby = 4

// lookUp goes to the first entry that is not before a key, which for keys in order is often the next one.
func (a *area) lookUp(key graveler.Key) bool {
	forward := a.stands && bytes.Compare(a.asked, key) <= 0
	a.asked = append(a.asked[:0], key...)
	for n := 0; forward && n < nearby; n++ {
		if bytes.Compare(a.it.Item().Key, key) >= 0 {
			return true
		}
		a.stands = a.it.Next()
		forward = a.stands
	}
	a.it.SeekGE(key)
	a.stands = a.it.Next()
	return a.stands
}

// next goes on to an entry that nobody has asked for by its key.
func (a *area) next() bool {
	a.stands = false
	return a.it.Next()
}

func (t *Tree) area(key graveler.Key) *area {
	for i := range t.areas {
		if t.areas[i].of.Contains(key) {
			return &t.areas[i]
		}
	}
	return &t.areas[catalog.CurrentArea] // parts of uploads, which nobody asks for often
}

// Get implements [catalog.Reader].
func (t *Tree) Get(_ context.Context, keys ...graveler.Key) ([]*graveler.Value, error) {
	values := make([]*graveler.Value, len(keys))
	for i, key := range keys {
		var err error
		if values[i], err = t.Entry(key); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// List implements [catalog.Reader], without delimiters.
func (t *Tree) List(_ context.Context, o graveler.ListOptions) iter.Seq2[graveler.Listing, error] {
	return func(yield func(graveler.Listing, error) bool) {
		a := t.area(o.Prefix)
		a.moved = true
		from := o.Prefix
		if bytes.Compare(o.After, from) >= 0 {
			from = append(bytes.Clone(o.After), 0)
		}
		a.it.SeekGE(from)
		for n := 0; a.next() && bytes.HasPrefix(a.it.Item().Key, o.Prefix); n++ {
			e := a.it.Item().Clone()
			if o.Limit > 0 && n == o.Limit || !yield(graveler.Listing{Key: e.Key, Value: e.Value}, nil) {
				return
			}
		}
		if err := a.it.Err(); err != nil {
			yield(graveler.Listing{}, err)
		}
	}
}

// Object returns the object that an entry holds, as it stands among the versions of its key, of which newer ones are counted up
// to count; nil where the entry holds nothing, or half of an unfinished put or delete.
func (t *Tree) Object(ctx context.Context, key graveler.Key, count int) (*Object, error) {
	place, err := catalog.ParseKey(key)
	if err != nil {
		return nil, err
	}
	value, err := t.Entry(key)
	if err != nil || value == nil {
		return nil, err
	}
	o, err := lifecycle.NewObject(place, *value, t.versioning)
	if err != nil {
		return nil, err
	}
	if o.Kind == lifecycle.Current || o.Kind == lifecycle.Upload {
		return &Object{o, key, value.Identity}, nil
	}
	versions, err := catalog.ReadVersions(ctx, t, place.Key)
	if err != nil || versions.Half(key, o.VersionID) {
		return nil, err
	}
	if current, ok := versions.Current(); o.Kind == lifecycle.Marker && ok && bytes.Equal(current.Place, key) {
		o.Sole, err = sole(ctx, versions)
		return &Object{o, key, value.Identity}, err
	}
	o.Kind = lifecycle.Noncurrent
	for v, err := range versions.Noncurrent(ctx) {
		if err != nil {
			return nil, err
		}
		if o.NewerNoncurrent >= count || bytes.Equal(v.Place, key) {
			break
		}
		o.NewerNoncurrent++
	}
	return &Object{o, key, value.Identity}, nil
}

// sole reports whether there is no version but the current one.
func sole(ctx context.Context, versions catalog.Versions) (bool, error) {
	for _, err := range versions.Noncurrent(ctx) {
		return false, err
	}
	return true, nil
}

// ErrNoObject: an entry holds something else than the object that its key says. A file that is damaged is not meant.
var ErrNoObject = errors.New("the entry holds no object")

// noObject is why an entry holds no object.
type noObject struct{ error }

func (e noObject) Unwrap() error        { return e.error }
func (e noObject) Is(target error) bool { return target == ErrNoObject }

// decoding makes an error of the catalog noObject where it is about what an entry holds: reading has no invalid values.
func decoding(err error) error {
	if errors.Is(err, graveler.ErrInvalidValue) {
		return noObject{err}
	}
	return err
}

// objects yields the objects of a key: the current version, the others with the newest first, and then, where uploads is set, multipart uploads.
func (t *Tree) objects(ctx context.Context, key string, uploads bool) iter.Seq2[*Object, error] {
	return func(yield func(*Object, error) bool) {
		versions, err := catalog.ReadVersions(ctx, t, key)
		if err != nil {
			yield(nil, decoding(err))
			return
		}
		if current, ok := versions.Current(); ok {
			o, err := t.version(current)
			if err == nil && o.Kind == lifecycle.Marker {
				o.Sole, err = sole(ctx, versions)
			}
			if !yield(o, decoding(err)) || err != nil {
				return
			}
		}
		newer := 0
		for v, err := range versions.Noncurrent(ctx) {
			var o *Object
			if err == nil {
				o, err = t.version(v)
			}
			if err == nil {
				o.Kind, o.NewerNoncurrent = lifecycle.Noncurrent, newer
			}
			if !yield(o, decoding(err)) || err != nil {
				return
			}
			newer++
		}
		if uploads {
			t.uploads(ctx, key, yield)
		}
	}
}

func (t *Tree) uploads(ctx context.Context, key string, yield func(*Object, error) bool) {
	// Reserved keys end with an ID, of which none is greater than the highest byte.
	end := catalog.UploadsArea.After(key)
	for l, err := range t.List(ctx, graveler.ListOptions{Prefix: end[:len(end)-1]}) {
		var o *Object
		if err == nil {
			o, err = t.object(l.Key, *l.Value)
		}
		if !yield(o, err) || err != nil {
			return
		}
	}
}

func (t *Tree) version(v catalog.Version) (*Object, error) {
	place, err := catalog.ParseKey(v.Place)
	if err != nil {
		return nil, err
	}
	o, err := lifecycle.VersionObject(place, v.Object, t.versioning)
	if err != nil {
		return nil, noObject{fmt.Errorf("entry %q: %w", v.Place, err)}
	}
	return &Object{Object: o, Entry: v.Place}, nil
}

func (t *Tree) object(key graveler.Key, value graveler.Value) (*Object, error) {
	place, err := catalog.ParseKey(key)
	if err != nil {
		return nil, err
	}
	o, err := lifecycle.NewObject(place, value, t.versioning)
	if err != nil {
		return nil, noObject{err}
	}
	return &Object{o, key, value.Identity}, nil
}
