// SPDX-License-Identifier: Apache-2.0

package facade

import (
	"github.com/moraine-store/moraine/pkg/graveler"
)

// What is compared of records. Stamps are each side's own form of a record, and say nothing about the other's. A repository that
// was carried over by package migrate has its own UID and place of files, and its branches have their own UIDs, tokens and logs;
// generations and log times of its commits were worked out anew.

var (
	ofRepository = comparison[*graveler.Repository]{plain: plainRepository}
	ofCommit     = comparison[*graveler.Commit]{plain: plainCommit}
	ofTag        = comparison[*graveler.Tag]{plain: plainTag}
	ofSetting    = comparison[setting]{plain: func(s setting, _ bool) any { return string(s.document) }}
	ofStaged     = comparison[graveler.Staged]{plain: plainStaged}
	ofEntry      = comparison[graveler.Entry]{plain: plainEntry}
	ofPin        = comparison[graveler.Pin]{plain: plainPin}

	ofExpiration = comparison[graveler.Expiration]{plain: func(e graveler.Expiration, _ bool) any {
		e.Stamp = nil
		return e
	}}
)

func plainRepository(r *graveler.Repository, carried bool) any {
	c := *r
	c.Stamp, c.CreatedAt = nil, c.CreatedAt.UTC()
	if carried {
		c.UID, c.Namespace, c.Nonce = "", "", ""
	}
	return &c
}

func plainBranch(b *graveler.Branch, carried bool) any {
	c := b.Clone()
	c.Stamp = nil
	if carried {
		c.UID, c.Token, c.LastMove, c.Nonce = "", "", graveler.Move{}, ""
	}
	return c
}

func plainTag(t *graveler.Tag, _ bool) any {
	c := *t
	c.Stamp = nil
	return &c
}

func plainCommit(c *graveler.Commit, carried bool) any {
	d := c.Clone()
	d.CreatedAt = d.CreatedAt.UTC()
	if len(d.Metadata) == 0 {
		d.Metadata = nil
	}
	if len(d.Parents) == 0 {
		d.Parents = nil
	}
	if carried {
		d.Generation, d.LogTime, d.Nonce = 0, 0, "" // worked out anew; the nonce is a digest of the whole
	}
	return d
}

func plainPin(p graveler.Pin, _ bool) any {
	if len(p.Trees) == 0 {
		p.Trees = nil
	}
	if len(p.Logs) == 0 {
		p.Logs = nil
	}
	return p
}

// plainStaged tells a tombstone from nothing without the stamp.
func plainStaged(s graveler.Staged, _ bool) any {
	return struct {
		staged bool
		value  any
	}{s.Stamp != nil, plainValue(s.Value)}
}

func plainEntry(e graveler.Entry, _ bool) any {
	return struct {
		key   string
		value any
	}{string(e.Key), plainValue(e.Value)}
}

// plainValue is nil for a tombstone. Data that are nil and those that are empty are the same.
func plainValue(v *graveler.Value) any {
	if v == nil {
		return nil
	}
	return struct{ identity, data string }{string(v.Identity), string(v.Data)}
}
