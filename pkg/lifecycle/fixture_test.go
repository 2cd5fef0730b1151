// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"fmt"
	"math"
	"time"

	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/lifecycle"
)

func ptr[T any](v T) *T { return &v }

func maybe[T any](g *rapid.Generator[T]) *rapid.Generator[*T] {
	return rapid.Custom(func(t *rapid.T) *T {
		if rapid.Bool().Draw(t, "absent") {
			return nil
		}
		return ptr(g.Draw(t, "value"))
	})
}

// anyText draws texts that a form could spoil.
var anyText = rapid.Custom(func(t *rapid.T) string {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"a", "b", "logs/", " ", "\t", "\n", "\r", "\r\n", "<", "&amp;", "]]>", `"`, `'`, `\`, `\u0041`, "é", "🐘", "\u2028", "\ufffd", "\x7f", "null", "0",
	}), 0, 5).Draw(t, "parts")
	text := ""
	for _, p := range parts {
		text += p
	}
	return text
})

var (
	anyDays  = rapid.OneOf(rapid.IntRange(1, 400), rapid.Just(math.MaxInt32))
	anySize  = rapid.OneOf(rapid.Int64Range(0, 20), rapid.Just(int64(lifecycle.MaxObjectSize-1)))
	midnight = rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 2_900_000).Draw(t, "day")*86_400, 0).UTC() // the years 1970 to 9909
	})
)

// anyFilter draws a filter; one of prefixes only where tags and sizes are not allowed.
func anyFilter(t *rapid.T, prefixOnly bool) lifecycle.Filter {
	f := lifecycle.Filter{Prefix: maybe(anyText).Draw(t, "prefix")}
	if prefixOnly {
		return f
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "tags") {
		f.Tags = append(f.Tags, lifecycle.Tag{Key: fmt.Sprint(i) + anyText.Draw(t, "key"), Value: anyText.Draw(t, "value")})
	}
	f.SizeGreaterThan = maybe(anySize).Draw(t, "greater")
	if f.SizeLessThan = maybe(anySize).Draw(t, "less"); f.SizeLessThan != nil {
		*f.SizeLessThan++
		if f.SizeGreaterThan != nil && *f.SizeGreaterThan >= *f.SizeLessThan {
			f.SizeGreaterThan = nil
		}
	}
	return f
}

// anyRule draws a valid rule without an ID.
func anyRule(t *rapid.T, legacy bool) lifecycle.Rule {
	r := lifecycle.Rule{Enabled: rapid.Bool().Draw(t, "enabled"), LegacyPrefix: legacy}
	prefixOnly := legacy
	wanted := rapid.IntRange(1, 7).Draw(t, "actions")
	if wanted&1 != 0 {
		switch rapid.IntRange(0, 2).Draw(t, "expiration") {
		case 0:
			r.Expiration = &lifecycle.Expiration{Days: ptr(anyDays.Draw(t, "days"))}
		case 1:
			r.Expiration = &lifecycle.Expiration{Date: ptr(midnight.Draw(t, "date"))}
		case 2:
			r.Expiration, prefixOnly = &lifecycle.Expiration{ExpiredObjectDeleteMarker: ptr(rapid.Bool().Draw(t, "marker"))}, true
		}
	}
	if wanted&2 != 0 {
		e := &lifecycle.NoncurrentVersionExpiration{NoncurrentDays: maybe(anyDays).Draw(t, "noncurrent days")}
		if !legacy {
			e.NewerNoncurrentVersions = maybe(rapid.IntRange(1, lifecycle.MaxNewerNoncurrentVersions)).Draw(t, "newer")
		}
		if e.NoncurrentDays == nil && e.NewerNoncurrentVersions == nil {
			e.NoncurrentDays = ptr(1)
		}
		r.NoncurrentVersionExpiration = e
	}
	if wanted&4 != 0 {
		r.AbortIncompleteMultipartUpload, prefixOnly = &lifecycle.AbortIncompleteMultipartUpload{DaysAfterInitiation: anyDays.Draw(t, "abort")}, true
	}
	r.Filter = anyFilter(t, prefixOnly)
	if legacy && r.Filter.Prefix == nil {
		r.Filter.Prefix = ptr("")
	}
	return r
}

var anyConfiguration = rapid.Custom(func(t *rapid.T) lifecycle.Configuration {
	var c lifecycle.Configuration
	legacy := rapid.Bool().Draw(t, "legacy")
	for i := range rapid.IntRange(1, 4).Draw(t, "rules") {
		r := anyRule(t, legacy)
		if rapid.Bool().Draw(t, "named") {
			r.ID = fmt.Sprint(i) + anyText.Draw(t, "ID")
		}
		c.Rules = append(c.Rules, r)
	}
	c.Branches = rapid.SampledFrom([][]string{nil, {"dev"}, {"dev", "release-1"}}).Draw(t, "branches")
	return c
})
