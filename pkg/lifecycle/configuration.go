// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"
)

// Configuration is the lifecycle configuration of a repository. What is absent is nil: 0 is a value like any other.
type Configuration struct {
	Rules []Rule
	// Branches are those whose objects the rules act on beside the repository's default branch. S3 knows no branches, so only the JSON form has them.
	Branches []string
}

// Rule asks for one or more actions on the objects that its filter accepts.
type Rule struct {
	// ID names the rule within its configuration, in at most MaxIDCharacters. The parsers make one up where it is absent.
	ID      string
	Enabled bool
	// Filter says which objects the rule is about.
	Filter Filter
	// LegacyPrefix is set where the filter, then a prefix and nothing else, stands at the top of the rule, as in S3's first form of rules.
	LegacyPrefix bool

	Expiration                     *Expiration
	NoncurrentVersionExpiration    *NoncurrentVersionExpiration
	AbortIncompleteMultipartUpload *AbortIncompleteMultipartUpload
}

// Expiration is about current versions and lone delete markers. Exactly one field is set.
type Expiration struct {
	Days *int
	// Date is midnight UTC.
	Date *time.Time
	// ExpiredObjectDeleteMarker, where true, removes delete markers that are the only version of their key.
	ExpiredObjectDeleteMarker *bool
}

// NoncurrentVersionExpiration is about noncurrent versions, delete markers among them. At least one field is set.
type NoncurrentVersionExpiration struct {
	// NoncurrentDays counts from when a version was displaced.
	NoncurrentDays *int
	// NewerNoncurrentVersions is how many noncurrent versions of a key are kept, the newest ones; at most MaxNewerNoncurrentVersions.
	NewerNoncurrentVersions *int
}

// AbortIncompleteMultipartUpload is about multipart uploads that are neither complete nor aborted.
type AbortIncompleteMultipartUpload struct {
	DaysAfterInitiation int
}

// Filter accepts the objects that meet all of its predicates; without any it accepts every object. Two predicates or more are written as an And.
type Filter struct {
	Prefix *string
	// Tags must all be on the object, each with this very value. Keys are unique.
	Tags []Tag
	// SizeGreaterThan and SizeLessThan are in bytes, and exclude that size itself.
	SizeGreaterThan *int64
	SizeLessThan    *int64
}

// Tag is a key and a value.
type Tag struct{ Key, Value string }

// Clone returns a copy that shares no memory with c.
func (c Configuration) Clone() Configuration {
	c.Branches = slices.Clone(c.Branches)
	c.Rules = slices.Clone(c.Rules)
	for i := range c.Rules {
		r := &c.Rules[i]
		r.Filter.Prefix = clone(r.Filter.Prefix)
		r.Filter.Tags = slices.Clone(r.Filter.Tags)
		r.Filter.SizeGreaterThan = clone(r.Filter.SizeGreaterThan)
		r.Filter.SizeLessThan = clone(r.Filter.SizeLessThan)
		if r.Expiration = clone(r.Expiration); r.Expiration != nil {
			r.Expiration.Days = clone(r.Expiration.Days)
			r.Expiration.Date = clone(r.Expiration.Date)
			r.Expiration.ExpiredObjectDeleteMarker = clone(r.Expiration.ExpiredObjectDeleteMarker)
		}
		if r.NoncurrentVersionExpiration = clone(r.NoncurrentVersionExpiration); r.NoncurrentVersionExpiration != nil {
			r.NoncurrentVersionExpiration.NoncurrentDays = clone(r.NoncurrentVersionExpiration.NoncurrentDays)
			r.NoncurrentVersionExpiration.NewerNoncurrentVersions = clone(r.NoncurrentVersionExpiration.NewerNoncurrentVersions)
		}
		r.AbortIncompleteMultipartUpload = clone(r.AbortIncompleteMultipartUpload)
	}
	return c
}

func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
