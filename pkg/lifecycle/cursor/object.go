// SPDX-License-Identifier: Apache-2.0

package cursor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// decodeObject reads the one JSON object that data must be into the pointers of fields, by name. Every field must be there, but
// those that are optional, and there may be no other. Package encoding/json by itself matches names whatever their case, lets the
// last of two fields of one name win, and leaves alone what is null or missing.
func decodeObject(data []byte, fields map[string]any, optional ...string) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if token, err := d.Token(); err != nil || token != json.Delim('{') {
		return errors.New("holds no JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		if err := decodeField(d, fields, seen); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return fmt.Errorf("holds no whole JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("holds something after the JSON object")
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !seen[name] && !slices.Contains(optional, name) {
			return fmt.Errorf("has no field %q", name)
		}
	}
	return nil
}

func decodeField(d *json.Decoder, fields map[string]any, seen map[string]bool) error {
	token, err := d.Token()
	if err != nil {
		return fmt.Errorf("holds no whole JSON object: %w", err)
	}
	name, _ := token.(string) // the decoder lets nothing else be a name
	into, known := fields[name]
	switch {
	case !known:
		return fmt.Errorf("has the unknown field %q", name)
	case seen[name]:
		return fmt.Errorf("has field %q twice", name)
	}
	seen[name] = true
	var value json.RawMessage
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("field %q: %w", name, err)
	}
	if string(value) == "null" {
		return fmt.Errorf("field %q is null", name)
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("field %q: %w", name, err)
	}
	return nil
}
