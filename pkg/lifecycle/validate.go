// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// Limits of a configuration, those of S3.
const (
	MaxRules                   = 1000
	MaxIDCharacters            = 255
	MaxPrefixBytes             = 1024
	MaxTagKeyCharacters        = 128
	MaxTagValueCharacters      = 256
	MaxObjectSize              = 1099511627776000 // in a filter
	MaxNewerNoncurrentVersions = 100
)

// Validate reports the first thing that is wrong with c, as a *ConfigError. Rules without an ID are allowed.
func (c Configuration) Validate() error {
	// The error table of S3 has these two as InvalidRequest.
	switch {
	case len(c.Rules) == 0:
		return &ConfigError{Code: catalog.InvalidRequest, Field: "Rule", Message: "At least one lifecycle rule must be specified."}
	case len(c.Rules) > MaxRules:
		return &ConfigError{Code: catalog.InvalidRequest, Field: "Rule", Message: fmt.Sprintf("The number of lifecycle rules must not exceed the allowed limit of %d rules.", MaxRules)}
	}
	ids := map[string]bool{}
	for i := range c.Rules {
		r := &c.Rules[i]
		v := checker{rule: ruleName(i, r.ID)}
		v.check(!ids[r.ID] || r.ID == "", catalog.InvalidArgument, "ID", "Rule ID must be unique. Found same ID for more than one rule")
		ids[r.ID] = true
		if r.LegacyPrefix != c.Rules[0].LegacyPrefix {
			v.check(r.LegacyPrefix, catalog.InvalidRequest, "Filter", "Filter element can only be used in Lifecycle V2.")
			v.check(!r.LegacyPrefix, catalog.InvalidRequest, "Prefix", "Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter.")
		}
		v.one(r)
		if v.err != nil {
			return v.err
		}
	}
	for i, b := range c.Branches {
		if err := graveler.ValidateBranchID(graveler.BranchID(b)); err != nil {
			return &ConfigError{Code: catalog.InvalidArgument, Field: "Branches", Message: err.Error()}
		}
		if slices.Contains(c.Branches[:i], b) {
			return &ConfigError{Code: catalog.InvalidArgument, Field: "Branches", Message: fmt.Sprintf("branch %q is there more than once", b)}
		}
	}
	return nil
}

// checker holds one rule to what is allowed, and keeps the first error.
type checker struct {
	rule string
	err  error
}

func (v *checker) check(ok bool, code catalog.Code, field, format string, args ...any) {
	if !ok && v.err == nil {
		v.err = &ConfigError{Code: code, Rule: v.rule, Field: field, Message: fmt.Sprintf(format, args...)}
	}
}

func (v *checker) one(r *Rule) {
	v.text("ID", r.ID)
	v.check(utf8.RuneCountInString(r.ID) <= MaxIDCharacters, catalog.InvalidArgument, "ID", "ID length should not exceed allowed limit of %d", MaxIDCharacters)
	v.filter(r)
	v.check(r.Expiration != nil || r.NoncurrentVersionExpiration != nil || r.AbortIncompleteMultipartUpload != nil,
		catalog.InvalidRequest, "", "At least one action needs to be specified in a rule")
	if r.Expiration != nil {
		v.expiration(r)
	}
	if e := r.NoncurrentVersionExpiration; e != nil {
		const field = "NoncurrentVersionExpiration"
		v.check(e.NoncurrentDays != nil || e.NewerNoncurrentVersions != nil, catalog.MalformedXML, field, "neither NoncurrentDays nor NewerNoncurrentVersions is there")
		v.positive(field, "NoncurrentDays", e.NoncurrentDays)
		v.positive(field, "NewerNoncurrentVersions", e.NewerNoncurrentVersions)
		v.check(e.NewerNoncurrentVersions == nil || *e.NewerNoncurrentVersions <= MaxNewerNoncurrentVersions, catalog.InvalidArgument, field+".NewerNoncurrentVersions",
			"'NewerNoncurrentVersions' must not be more than %d", MaxNewerNoncurrentVersions)
		v.check(e.NewerNoncurrentVersions == nil || !r.LegacyPrefix, catalog.InvalidRequest, field+".NewerNoncurrentVersions",
			"NewerNoncurrentVersions element can only be used in Lifecycle V2.")
	}
	if a := r.AbortIncompleteMultipartUpload; a != nil {
		const field = "AbortIncompleteMultipartUpload"
		v.positive(field, "DaysAfterInitiation", &a.DaysAfterInitiation)
		v.prefixOnly(r, field, field)
	}
}

func (v *checker) expiration(r *Rule) {
	e := r.Expiration
	set := 0
	for _, there := range []bool{e.Days != nil, e.Date != nil, e.ExpiredObjectDeleteMarker != nil} {
		if there {
			set++
		}
	}
	v.check(set == 1, catalog.MalformedXML, "Expiration", "it has one of Days, Date and ExpiredObjectDeleteMarker, not %d", set)
	v.positive("Expiration", "Days", e.Days)
	if e.Date != nil {
		at := e.Date.UTC()
		v.check(at.Equal(at.Truncate(24*time.Hour)), catalog.InvalidArgument, "Expiration.Date", "'Date' must be at midnight GMT")
		v.check(at.Year() >= 1970 && at.Year() <= 9999, catalog.InvalidArgument, "Expiration.Date", "the year %d is out of range", at.Year()) // before 1970 it is a mistake, by which everything would go
	}
	if e.ExpiredObjectDeleteMarker != nil {
		v.prefixOnly(r, "Expiration.ExpiredObjectDeleteMarker", "ExpiredObjectDeleteMarker")
	}
}

func (v *checker) filter(r *Rule) {
	f, at := &r.Filter, "Filter."
	if predicates := f.element(); predicates.child("And") != nil {
		at = "Filter.And."
	}
	if r.LegacyPrefix {
		at = ""
		v.check(f.Prefix != nil && len(f.Tags) == 0 && f.SizeGreaterThan == nil && f.SizeLessThan == nil, catalog.MalformedXML, "Prefix", "a prefix outside a Filter is the only predicate")
	}
	if f.Prefix != nil {
		v.text(at+"Prefix", *f.Prefix)
		v.check(len(*f.Prefix) <= MaxPrefixBytes, catalog.InvalidRequest, at+"Prefix", "The maximum size of a prefix is %d", MaxPrefixBytes)
	}
	keys := map[string]bool{}
	for _, t := range f.Tags {
		v.text(at+"Tag.Key", t.Key)
		v.text(at+"Tag.Value", t.Value)
		n := utf8.RuneCountInString(t.Key)
		v.check(n >= 1 && n <= MaxTagKeyCharacters, catalog.InvalidRequest, at+"Tag.Key", "A Tag's Key must be a length between 1 and %d", MaxTagKeyCharacters)
		v.check(utf8.RuneCountInString(t.Value) <= MaxTagValueCharacters, catalog.InvalidRequest, at+"Tag.Value", "A Tag's Value must be a length between 0 and %d", MaxTagValueCharacters)
		v.check(!keys[t.Key], catalog.InvalidRequest, at+"Tag.Key", "Duplicate Tag Keys are not allowed.")
		keys[t.Key] = true
	}
	v.size(at, "ObjectSizeGreaterThan", f.SizeGreaterThan, 0)
	v.size(at, "ObjectSizeLessThan", f.SizeLessThan, 1)
	v.check(f.SizeGreaterThan == nil || f.SizeLessThan == nil || *f.SizeGreaterThan < *f.SizeLessThan, catalog.InvalidRequest, at+"ObjectSizeLessThan",
		"'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.")
}

func (v *checker) size(at, name string, size *int64, least int64) {
	v.check(size == nil || *size >= least && *size <= MaxObjectSize, catalog.InvalidRequest, at+name, "'%s' should be between %d and %d.", name, least, MaxObjectSize)
}

// positive holds days and counts to what S3 keeps in 32 bits.
func (v *checker) positive(action, name string, n *int) {
	v.check(n == nil || *n > 0 && *n <= math.MaxInt32, catalog.InvalidArgument, action+"."+name, "'%s' for %s action must be a positive integer", name, action)
}

// prefixOnly holds the filter of a rule with an action that is about things which have neither tags nor a size.
func (v *checker) prefixOnly(r *Rule, field, action string) {
	v.check(len(r.Filter.Tags) == 0, catalog.InvalidRequest, field, "%s cannot be specified with Tags.", action)
	v.check(r.Filter.SizeGreaterThan == nil && r.Filter.SizeLessThan == nil, catalog.InvalidRequest, field, "%s cannot be specified with Object Size.", action)
}

// text refuses what XML has no way to write.
func (v *checker) text(field, s string) {
	valid := utf8.ValidString(s)
	for _, r := range s {
		valid = valid && (r == '\t' || r == '\n' || r == '\r' || r >= 0x20 && r != 0xfffe && r != 0xffff)
	}
	v.check(valid, catalog.InvalidArgument, field, "%q has characters that XML cannot hold", s)
}
