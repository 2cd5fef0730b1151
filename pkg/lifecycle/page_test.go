// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/lifecycle"
)

var (
	exampleRules = regexp.MustCompile("(?s)```(xml|json)\n(.*?)```\n")
	exampleRow   = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")
)

// TestTheExamplesOfThePageComeTrue holds docs/lifecycle-rules.md to what the rules on it ask for.
func TestTheExamplesOfThePageComeTrue(t *testing.T) {
	page, err := os.ReadFile("../../docs/lifecycle-rules.md")
	require.NoError(t, err)
	text := string(page)
	blocks := exampleRules.FindAllStringSubmatchIndex(text, -1)
	require.Len(t, blocks, 8)
	rows := 0
	for i, b := range blocks {
		form, rules := text[b[2]:b[3]], text[b[4]:b[5]]
		parse := map[string]func([]byte) (lifecycle.Configuration, error){"xml": lifecycle.ParseXML, "json": lifecycle.ParseJSON}[form]
		c, err := parse([]byte(rules))
		require.NoError(t, err, rules)
		until := len(text)
		if i+1 < len(blocks) {
			until = blocks[i+1][0]
		}
		for _, row := range exampleRow.FindAllStringSubmatch(text[b[1]:until], -1) {
			requireExample(t, c, row)
			rows++
		}
	}
	require.Equal(t, strings.Count(text, "\n| `"), rows, "every row was read")
}

func requireExample(t *testing.T, c lifecycle.Configuration, row []string) {
	t.Helper()
	since, err := time.Parse(time.DateTime, row[3])
	require.NoError(t, err, row[0])
	o := exampleObject(t, row[1], row[2])
	o.ModifiedAt = since
	if o.Kind == lifecycle.Noncurrent {
		o.ModifiedAt, o.NoncurrentSince = since.AddDate(0, -1, 0), since
	}
	due, by := "never", "-"
	if p, ok := lifecycle.PredictExpiry(c.Rules, o, lifecycle.Calendar{}); ok {
		if due, by = p.At.Format(time.DateTime), p.Rule.ID; p.At.Equal(since) {
			due = "at once"
		}
	}
	require.Equal(t, []string{row[4], row[5]}, []string{due, by}, row[0])
}

// exampleObject reads what the page says about an object.
func exampleObject(t *testing.T, key, what string) *lifecycle.Object {
	o := &lifecycle.Object{Key: key, Versioning: catalog.VersioningEnabled, Tags: map[string]string{}}
	for part := range strings.SplitSeq(what, ", ") {
		word, unit, _ := strings.Cut(part, " ")
		tag, value, isTag := strings.Cut(part, "=")
		n, notNumber := strconv.ParseInt(word, 10, 64)
		switch {
		case part == "current":
			o.Kind = lifecycle.Current
		case part == "noncurrent":
			o.Kind = lifecycle.Noncurrent
		case part == "upload":
			o.Kind = lifecycle.Upload
		case part == "marker", part == "lone marker":
			o.Kind, o.DeleteMarker, o.Sole = lifecycle.Marker, true, word == "lone"
		case unit == "B" && notNumber == nil:
			o.Size = n
		case unit == "newer" && notNumber == nil:
			o.NewerNoncurrent = int(n)
		case isTag:
			o.Tags[tag] = value
		default:
			t.Fatalf("%s: what is %q?", key, part)
		}
	}
	return o
}
