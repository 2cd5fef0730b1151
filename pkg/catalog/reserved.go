// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"iter"
	"strings"

	"github.com/moraine-store/moraine/pkg/graveler"
)

const (
	// nearby is how many entries of a common prefix a cursor reads before it seeks past the rest.
	nearby = 16
	// firstRead is how many entries it reads at a time after that, and twice as many each time.
	firstRead = 32
)

// reservedCursor goes through the records of an area: those whose logical keys have a prefix, by logical key. It reads them some
// at a time, since a listing of a branch reads a page before it yields the first. The user stops it.
type reservedCursor struct {
	list  func(o graveler.ListOptions) iter.Seq2[graveler.Listing, error]
	area  string
	under graveler.Key // what their keys have in common
	after graveler.Key // of the reading under way, the last record
	read  int          // how many it reads
	seen  int          // how many of them were there

	next func() (graveler.Listing, error, bool)
	stop func()

	valid bool // it stands at a record
	item  graveler.Listing
	place Place
}

// newCursor returns a cursor that stands at the first record behind after. limit is a guess of how many are needed.
func newCursor(ctx context.Context, r reader, area, prefix string, after graveler.Key, limit int) (*reservedCursor, error) {
	c := &reservedCursor{list: func(o graveler.ListOptions) iter.Seq2[graveler.Listing, error] { return r.List(ctx, o) }, area: area, under: graveler.Key(area + escape(prefix)), stop: func() {}}
	return c, c.seek(after, limit)
}

// seek goes to the first record behind after.
func (c *reservedCursor) seek(after graveler.Key, limit int) error {
	c.stop()
	c.after, c.read, c.seen = after, limit, 0
	c.next, c.stop = iter.Pull2(c.list(graveler.ListOptions{Prefix: c.under, After: after, Limit: limit}))
	return c.advance()
}

// advance goes to the next record.
func (c *reservedCursor) advance() (err error) {
	for {
		var ok bool
		c.item, err, ok = c.next()
		switch {
		case err != nil:
			c.valid = false
			return err
		case ok:
			c.seen++
			c.after, c.valid = c.item.Key, true
			c.place, err = ParseKey(c.item.Key)
			return err
		case c.seen < c.read:
			c.valid = false
			return nil
		}
		c.stop()
		c.read, c.seen = min(2*c.read, MaxListed), 0
		c.next, c.stop = iter.Pull2(c.list(graveler.ListOptions{Prefix: c.under, After: c.after, Limit: c.read}))
	}
}

// at reports whether it stands at a record of a logical key.
func (c *reservedCursor) at(key string) bool { return c.valid && c.place.Key == key }

// version returns the version that it stands at.
func (c *reservedCursor) version() (occupant, error) {
	o, err := decodeAt(c.item.Key, *c.item.Value)
	return occupant{c.item.Key, o}, err
}

func (c *reservedCursor) close() { c.stop() }

// skip goes to the first record whose logical key does not start with a prefix: a few steps, and then past all the rest.
func (c *reservedCursor) skip(prefix string) error {
	for range nearby {
		if !c.valid || !strings.HasPrefix(c.place.Key, prefix) {
			return nil
		}
		if err := c.advance(); err != nil {
			return err
		}
	}
	if !c.valid || !strings.HasPrefix(c.place.Key, prefix) {
		return nil
	}
	return c.seek(pastPrefix(c.area, prefix), firstRead)
}

// pastPrefix returns a key that is greater than those of all records in an area whose logical keys start with a prefix, and less
// than those of all other records behind them: no record has it.
func pastPrefix(area, prefix string) graveler.Key {
	end := graveler.Key(area + escape(prefix))
	for i := len(end) - 1; end[i] == 0xff; i-- {
		end = end[:i]
	}
	end[len(end)-1]++
	return end
}

// pastKey returns a key that is greater than those of all records of a logical key in an area, and less than those of any behind them.
func pastKey(area, key string) graveler.Key {
	return graveler.Key(area + escape(key) + keyEnd + "\xff")
}

// startAfter returns where the records of an area begin that a marker leaves out none of: behind those of its key, or behind
// those of the common prefix that it is in, if there is one.
func startAfter(area, marker, prefix, delimiter string) graveler.Key {
	if common, ok := commonPrefix(marker, prefix, delimiter); ok {
		return pastPrefix(area, common)
	}
	if marker == "" {
		return nil
	}
	return pastKey(area, marker)
}
