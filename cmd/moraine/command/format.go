// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// escape shows any bytes on one line, so that different bytes look different.
func escape[T ~string | ~[]byte](s T) string {
	quoted := strconv.Quote(string(s))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// count is a number as people write it: 3,908.
func count(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// plural puts a number before what there is so much of.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// escapeControls is escape for text that has been escaped in parts: it leaves backslashes alone.
func escapeControls(s string) string {
	return strings.ReplaceAll(escape(s), `\\`, `\`)
}

// keyView is a key in JSON. A key that is not UTF-8 is there twice: readable, and exact.
type keyView struct {
	Key       string  `json:"key"`
	KeyBase64 *string `json:"key_base64,omitempty"`
}

// entryKeyView is the key of an entry, which may be one that is reserved.
type entryKeyView struct {
	keyView
	Reserved *reservedView `json:"reserved,omitempty"`
}

func viewEntryKey(key graveler.Key) entryKeyView {
	return entryKeyView{viewKey(key), viewReserved(key)}
}

func viewKey(key graveler.Key) keyView {
	if utf8.Valid(key) {
		return keyView{Key: string(key)}
	}
	exact := base64.StdEncoding.EncodeToString(key)
	return keyView{Key: strings.ToValidUTF8(string(key), "\uFFFD"), KeyBase64: &exact}
}

// shortDigits is how much of a commit ID people get to see, where all of it would only be in the way.
const shortDigits = 12

func shortID(id graveler.CommitID) string { return string(id[:min(len(id), shortDigits)]) }

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

func formatSize(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1024, 0
	for value >= 1023.95 && unit < len(units)-1 { // 1023.95 would be shown as 1024.0
		value, unit = value/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", value, units[unit])
}

func orDash[T ~string](s T) string {
	if s == "" {
		return "-"
	}
	return string(s)
}

// parseTime reads what --date takes.
func parseTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usageError{fmt.Sprintf("time %q: expected a form such as 2026-01-31T23:59:59Z or 2026-01-31", text)}
}

// parseMoment reads a time, or how long ago it was.
func parseMoment(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		if ago < 0 {
			return time.Time{}, usageError{fmt.Sprintf("time %q: expected how long ago, such as 24h", text)}
		}
		return now.Add(-ago), nil
	}
	t, err := parseTime(text)
	if err != nil {
		return time.Time{}, usageError{err.Error() + ", or how long ago, such as 24h"}
	}
	return t, nil
}

// parsePairs reads the values of a flag such as --meta.
func parsePairs(flag string, values []string) (map[string]string, error) {
	return readPairs("--"+flag, values)
}

// readPairs reads the values of what an error calls name.
func readPairs(name string, values []string) (map[string]string, error) {
	pairs := map[string]string{}
	for _, v := range values {
		key, value, ok := strings.Cut(v, "=")
		if !ok || key == "" {
			return nil, usageError{fmt.Sprintf("%s %q: expected KEY=VALUE", name, v)}
		}
		if _, twice := pairs[key]; twice {
			return nil, usageError{fmt.Sprintf("%s: %q is given twice", name, key)}
		}
		pairs[key] = value
	}
	return pairs, nil
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colours of a terminal.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	plain  = "\x1b[0m"
)

func (a *app) colored(color, text string) string {
	if !a.color {
		return text
	}
	return color + text + plain
}
