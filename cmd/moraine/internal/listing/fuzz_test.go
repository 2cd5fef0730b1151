// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/moraine-store/moraine/pkg/graveler"
)

// check reads any text as a listing. It ends well, with as many items as it has lines, or with an error that says what is wrong.
func check(t *testing.T, text string, o Options) []Item {
	items, r, err := readAll(text, o)
	for _, item := range items {
		if len(item.Key) == 0 || item.Object.Size < 0 {
			t.Fatalf("accepted %+v", item)
		}
	}
	if err != nil {
		if strings.HasPrefix(text, "\x1f\x8b") || errors.Is(err, graveler.ErrInvalidValue) || errors.Is(err, graveler.ErrTooLarge) {
			return nil
		}
		t.Fatalf("not a typed error: %v", err)
	}
	if n := len(items) + r.DeleteMarkers + r.Noncurrent; o.Format != CSV && n != r.lines.number || o.Format == CSV && n+1 != r.lines.number {
		t.Fatalf("%d of %d lines", n, r.lines.number)
	}
	return items
}

func FuzzJSONL(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		items := check(t, text, Options{Format: JSONL})
		if len(items) == 0 || strings.HasPrefix(text, "\x1f\x8b") {
			return
		}
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			if !json.Valid([]byte(line)) {
				t.Fatalf("accepted %q", line)
			}
		}
	})
}

func FuzzCSV(f *testing.F) {
	f.Fuzz(func(t *testing.T, text string) {
		check(t, text, Options{Format: CSV})
		line, _, _ := strings.Cut(text, "\n")
		checkSplit(t, line)
	})
}

func FuzzS3Inventory(f *testing.F) {
	f.Fuzz(func(t *testing.T, text, schema string) {
		for _, item := range check(t, text, Options{Format: S3Inventory, Schema: schema}) {
			if !strings.HasPrefix(item.Object.PhysicalAddress, "s3://") || !strings.HasSuffix(item.Object.PhysicalAddress, "/"+string(item.Key)) {
				t.Fatalf("address %q of key %q", item.Object.PhysicalAddress, item.Key)
			}
		}
	})
}

// The end of a reader is io.EOF, again and again.
func TestTheEndStays(t *testing.T) {
	r, err := NewReader(strings.NewReader("{\"key\":\"a\"}"), Options{Format: JSONL})
	if err == nil {
		_, err = r.Next()
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := r.Next(); err != io.EOF {
			t.Fatal(err)
		}
	}
}
