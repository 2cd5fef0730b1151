// SPDX-License-Identifier: Apache-2.0

package listing

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// parseJSON reads a line of JSONL. It goes from token to token, since decoding into a struct would take names in any case and of
// a name that comes twice the last one, and would put U+FFFD in the place of what is not Unicode.
func parseJSON(line []byte) (Item, error) {
	if !utf8.Valid(line) || hasLoneSurrogate(line) {
		return Item{}, invalid("it is not Unicode (a key of other bytes goes into key_base64)")
	}
	switch text := bytes.TrimLeft(line, " \t"); {
	case len(text) == 0:
		return Item{}, invalid("the line is empty")
	case text[0] != '{':
		return Item{}, invalid("expected a JSON object")
	}
	d, tokens := draft{}, json.NewDecoder(bytes.NewReader(line))
	tokens.UseNumber()
	if _, err := tokens.Token(); err != nil {
		return Item{}, badJSON(err)
	}
	if err := eachMember(tokens, func(name string) error { return d.member(tokens, name) }); err != nil {
		return Item{}, err
	}
	if _, err := tokens.Token(); err == nil {
		return Item{}, invalid("there is something behind the JSON object")
	} else if err != io.EOF {
		return Item{}, badJSON(err)
	}
	return d.done()
}

// eachMember calls read for each name of an object that has begun, to read the value, and reads the end of the object.
func eachMember(tokens *json.Decoder, read func(name string) error) error {
	for tokens.More() {
		name, err := tokens.Token()
		if err != nil {
			return badJSON(err)
		}
		if err := read(name.(string)); err != nil { // the decoder takes nothing else for a name
			return err
		}
	}
	_, err := tokens.Token()
	return badJSON(err)
}

// member reads the value of a field. null says nothing.
func (d *draft) member(tokens *json.Decoder, name string) error {
	f := fieldOf(name)
	if f == 0 {
		return invalid("unknown field %q", name)
	}
	if err := d.mark(f, name); err != nil {
		return err
	}
	value, err := tokens.Token()
	if err != nil {
		return badJSON(err)
	}
	isPairs := f == metadataField || f == tagsField
	switch v := value.(type) {
	case nil:
		return nil
	case string:
		if !isPairs && f != sizeField {
			return d.set(f, name, v)
		}
	case json.Number:
		if f == sizeField {
			return d.set(f, name, v.String())
		}
	case json.Delim:
		if isPairs && v == '{' {
			return d.members(tokens, f, name)
		}
	}
	return invalid("%s: expected %s", name, expected(f))
}

// members reads metadata or tags.
func (d *draft) members(tokens *json.Decoder, f field, name string) error {
	return eachMember(tokens, func(key string) error {
		value, err := tokens.Token()
		if err != nil {
			return badJSON(err)
		}
		text, ok := value.(string)
		if !ok {
			return invalid("%s: expected %s", name, expected(f))
		}
		return d.pair(f, key, text)
	})
}

func badJSON(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return invalid("the JSON object does not end")
	default:
		return invalid("%v", err)
	}
}

// hasLoneSurrogate reports whether a JSON text has an escape for half of a character, which stands for nothing.
func hasLoneSurrogate(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 == len(text) {
			return false
		}
		unit, ok := escapedUnit(text[i:])
		text = text[i+2:]
		if !ok || !utf16.IsSurrogate(unit) {
			continue
		}
		low, ok := escapedUnit(text[4:])
		if !ok || utf16.DecodeRune(unit, low) == utf8.RuneError {
			return true
		}
		text = text[10:]
	}
}

// escapedUnit reads an escape such as \u00e9.
func escapedUnit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
