// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// names gives stable names to what differs from run to run, in the order in which it appears.
type names struct {
	places [][2]string       // paths and URLs, and what stands for them
	name   map[string]string // by what it names: an ID, or the first digits of one
	full   map[string]string // what a name stands for
	count  map[string]int    // by kind
	// allTimes replaces any time, not only those of today.
	allTimes bool
}

func newNames(places ...[2]string) *names {
	return &names{places: places, name: map[string]string{}, full: map[string]string{}, count: map[string]int{}}
}

// shortDigits is how much of a commit's ID lists show.
const shortDigits = 12

// A range file is in a folder whose name is how its own begins.
var varying = regexp.MustCompile(strings.Join([]string{
	`(?P<bytes>"data":"[^"]+"|"identity":"[0-9A-Za-z+/]{43}=")`, // of raw records
	`(?P<uuid>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)`,
	`(?P<hash>\b(?:[0-9a-f]{2}/)?[0-9a-f]{64}\b)`,
	`(?P<time>\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?|\b1\d{18}\b|\b1[0-9a-f]{15}\b)`,
	`(?P<version>[67][0-9a-f]{23}\b)`, // of an object: what is left of time, and digits at random; it may follow a letter
	`(?P<upload>1[0-9a-f]{23}\b)`,
	`(?P<short>\b[0-9a-f]{12}\b)`,
	`(?P<uid>\b[0-9a-v]{20}\b)`,
	`(?P<took>\b(?:took|duration|cursor_lag_max|walked_max_age)=\S+)`,
	`(?P<seconds>"(?:took|lag)_seconds":[0-9.e-]+)`,
	`(?P<lag>\b\d{1,2}s {2,3})`, // in a table
	`(?P<ahead>Ahead: +-?[0-9hms]+|"ahead_seconds":-?\d+)`,
	`(?P<stored>"file_bytes":\d+)`, // compressed
	`(?P<temporary>\.\d+\.new\b)`,
	`(?P<table>\b\d{6}\.(?:sst|log)\b)`,
}, "|"))

// apply puts names into a text. The columns of a table stay where they are.
func (n *names) apply(text string) string {
	for _, place := range n.places {
		text = strings.ReplaceAll(text, place[0], place[1])
	}
	var b strings.Builder
	end := 0
	for _, m := range varying.FindAllStringSubmatchIndex(text, -1) {
		old := text[m[0]:m[1]]
		stable := n.stable(kindOf(m), old, text[:m[0]])
		if strings.HasPrefix(text[m[1]:], "  ") {
			stable += strings.Repeat(" ", max(0, len(old)-len(stable)))
		}
		b.WriteString(text[end:m[0]] + stable)
		end = m[1]
	}
	return b.String() + text[end:]
}

func kindOf(match []int) string {
	for i, kind := range varying.SubexpNames() {
		if kind != "" && match[2*i] >= 0 {
			return kind
		}
	}
	return ""
}

// stable returns what stands for a text that follows before.
func (n *names) stable(kind, text, before string) string {
	switch kind {
	case "time":
		if n.allTimes || isRecent(text) {
			return "<time>"
		}
		return text
	case "took":
		label, _, _ := strings.Cut(text, "=")
		return label + "=<duration>"
	case "seconds":
		label, _, _ := strings.Cut(text, ":")
		return label + ":<duration>"
	case "lag":
		return fmt.Sprintf("%-*s", len(text), "0s")
	case "ahead":
		label, value, _ := strings.Cut(text, ":")
		return label + ":" + value[:len(value)-len(strings.TrimLeft(value, " "))] + "<duration>"
	case "bytes":
		label, _, _ := strings.Cut(text, ":")
		return label + `:"` + n.of(kind, text, text) + `"`
	case "stored":
		return `"file_bytes":<size>`
	case "temporary":
		return ".<number>.new"
	case "table":
		return "<table>"
	case "hash":
		if strings.HasSuffix(before, "sha256:") {
			return text // the script knows the bytes
		}
		id := text[strings.Index(text, "/")+1:]
		return n.of(hashKind(before), id[:shortDigits], id)
	case "short":
		if conflictSide.MatchString(before) {
			return n.of("identity", text, text)
		}
		return n.of("commit", text, text)
	default:
		return n.of(kind, text, text)
	}
}

// conflictSide is what comes before the identities that are listed with a conflict.
var conflictSide = regexp.MustCompile(`(?:base|ours|theirs) $`)

// of returns the name of what key identifies. A full ID may show itself later than its first digits.
func (n *names) of(kind, key, id string) string {
	name, known := n.name[key]
	if !known {
		n.count[kind]++
		name = fmt.Sprintf("<%s-%d>", kind, n.count[kind])
		n.name[key] = name
	}
	if len(id) > len(n.full[name]) {
		n.full[name] = id
	}
	return name
}

// hashKind says what a hash is of, from what is written before it.
func hashKind(before string) string {
	for kind, label := range map[string]string{
		"tree":     `(?:Tree: +|Base: +|"tree":"|"base":"|trees? | and )$`,
		"identity": `(?:Identity: +|identity":"|--if-match )$`,
		"file":     `(?:/|holds )$`,
	} {
		if regexp.MustCompile(label).MatchString(before) {
			return kind
		}
	}
	return "commit"
}

// isRecent tells a moment of now from one that the script gave, however it is written.
func isRecent(text string) bool {
	var t time.Time
	for _, layout := range []string{time.RFC3339Nano, time.DateTime} {
		if parsed, err := time.Parse(layout, text); err == nil {
			t = parsed
		}
	}
	for _, base := range []int{10, 16} {
		if nanos, err := strconv.ParseInt(text, base, 64); err == nil && (base == 10) == (len(text) == 19) {
			t = time.Unix(0, nanos)
		}
	}
	return time.Since(t).Abs() < 24*time.Hour
}

var inArgument = regexp.MustCompile(`<[a-z]+-\d+(?::\d+)?>`)

// resolve puts what names stand for in the place of the names in an argument.
func (n *names) resolve(arg string) string {
	return inArgument.ReplaceAllStringFunc(arg, func(name string) string {
		name, digits, cut := strings.Cut(strings.Trim(name, "<>"), ":")
		id, ok := n.full["<"+name+">"]
		if !ok {
			return "<" + name + ">"
		}
		if count, err := strconv.Atoi(digits); cut && err == nil {
			return id[:min(count, len(id))]
		}
		return id
	})
}

func TestNamesAreStable(t *testing.T) {
	n := newNames([2]string{"/tmp/x", "$WORK"})
	a, b := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	now := time.Now().UTC()
	text := a[:12] + "  " + now.Format(time.DateTime) + "  x\n" + "Commit: " + a + "\nTree:  " + b + "\nfile /tmp/x/b2/" + b + " sha256:" + b + " 2026-01-31T00:00:00Z\n"
	require.Equal(t, "<commit-1>    <time>               x\nCommit: <commit-1>\nTree:  <tree-1>\nfile $WORK/<tree-1> sha256:"+b+" 2026-01-31T00:00:00Z\n", n.apply(text))
	require.Equal(t, "lake/"+a+" "+a[:8]+" <commit-2>", n.resolve("lake/<commit-1> <commit-1:8> <commit-2>"))
	require.Equal(t, "<time> <time> <time>", n.apply(fmt.Sprintf("%s %d %x", now.Format(time.RFC3339Nano), now.UnixNano(), now.UnixNano())))
}
