// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// ParseJSON reads the JSON that the tools of S3 read and write, with a list of Branches beside the Rules. It is as strict as
// ParseXML: names are case-sensitive, a name that is there twice is an error. Every error is a *ConfigError; the code of a
// document that has the wrong form is MalformedXML here too.
func ParseJSON(data []byte) (Configuration, error) {
	root, err := readJSON(data)
	if err != nil {
		return Configuration{}, &ConfigError{Code: catalog.MalformedXML, Message: "the JSON is not well-formed: " + err.Error(), json: true}
	}
	root.name = document.name
	c, err := fromElement(root, true)
	if malformed := (*ConfigError)(nil); errors.As(err, &malformed) {
		malformed.json = malformed.Code == catalog.MalformedXML
	}
	return c, err
}

// JSON writes c, without white space. A configuration that is not valid is a *ConfigError.
func (c Configuration) JSON() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	root := c.element()
	return root.appendJSON(nil, &document), nil
}

func (e *element) appendJSON(b []byte, f *field) []byte {
	switch f.is {
	case text:
		return appendString(b, e.text)
	case number, flag:
		return append(b, e.text...)
	}
	b = append(b, '{')
	for i := range e.children {
		c, g := &e.children[i], f.field(e.children[i].name)
		first := i == 0 || e.children[i-1].name != c.name
		last := i == len(e.children)-1 || e.children[i+1].name != c.name
		if i > 0 {
			b = append(b, ',')
		}
		switch {
		case g.many == "":
			b = append(appendString(b, g.name), ':')
		case first:
			b = append(appendString(b, g.many), ":["...)
		}
		b = c.appendJSON(b, g)
		if g.many != "" && last {
			b = append(b, ']')
		}
	}
	return append(b, '}')
}

// appendString writes s as a string of JSON. s is UTF-8, so that it cannot fail.
func appendString(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return append(b, quoted...)
}

func readJSON(data []byte) (*element, error) {
	// The package replaces what is not Unicode by U+FFFD, which would be another prefix.
	if !utf8.Valid(data) {
		return nil, errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	root, err := readValue(d, 1)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows the document")
	}
	if hasLoneSurrogate(data) {
		return nil, errors.New("half of a surrogate pair stands alone")
	}
	return root, nil
}

func readValue(d *json.Decoder, depth int) (*element, error) {
	if depth > maxDepth {
		return nil, errors.New("it is nested too deep")
	}
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case string:
		return &element{is: text, text: t}, nil
	case json.Number:
		return &element{is: number, text: t.String()}, nil
	case bool:
		return &element{is: flag, text: strconv.FormatBool(t)}, nil
	case json.Delim:
		return readChildren(d, t, depth)
	default:
		return &element{is: null}, nil
	}
}

// readChildren reads what follows the opening bracket of a structure or a list, and the closing one.
func readChildren(d *json.Decoder, opening json.Delim, depth int) (*element, error) {
	e := &element{is: structure}
	if opening == '[' {
		e.is = list
	}
	for d.More() {
		name := ""
		if e.is == structure {
			token, err := d.Token()
			if err != nil {
				return nil, err
			}
			key, ok := token.(string)
			if !ok {
				return nil, fmt.Errorf("%v is no name", token)
			}
			name = key
		}
		child, err := readValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		child.name = name
		e.children = append(e.children, *child)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return e, nil
}

// hasLoneSurrogate reports whether well-formed JSON has an escape of half a character.
func hasLoneSurrogate(data []byte) bool {
	escape := func(b []byte) (rune, bool) { // the number of an escape of the form \uXXXX
		if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
			return 0, false
		}
		n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		return rune(n), err == nil
	}
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		r, ok := escape(data[i:])
		switch {
		case !ok:
			i++ // the escaped character
		case r < 0xd800 || r > 0xdfff:
			i += 5
		default:
			low, ok := escape(data[i+6:])
			if r > 0xdbff || !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		}
	}
	return false
}
