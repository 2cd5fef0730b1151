// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// namespaces are those that S3 has had; the first is written. Documents without a namespace are read as well.
var namespaces = []string{"http://s3.amazonaws.com/doc/2006-03-01/", "http://doc.s3.amazonaws.com/2006-03-01"}

const schemaInstance = "http://www.w3.org/2001/XMLSchema-instance"

// ParseXML reads the XML of S3, and makes up an ID for each rule that has none: the same one whenever it reads the same. The
// elements of a structure may be in any order. Nothing is passed over: what is not known, or not acted on, is an error, and so is
// a configuration that Validate refuses. Every error is a *ConfigError.
func ParseXML(data []byte) (Configuration, error) {
	root, err := readXML(data)
	if err != nil {
		return Configuration{}, &ConfigError{Code: catalog.MalformedXML, Message: "the XML is not well-formed: " + err.Error()}
	}
	if root.name != document.name {
		return Configuration{}, root.fault(catalog.MalformedXML, "the document is a %s, not a %s", root.name, document.name)
	}
	return fromElement(root, false)
}

// XML writes c as S3 does. Branches have no place in it. A configuration that is not valid is a *ConfigError.
func (c Configuration) XML() ([]byte, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	b.WriteString(xml.Header)
	root := c.element()
	root.writeXML(&b, &document, ` xmlns="`+namespaces[0]+`"`)
	return b.Bytes(), nil
}

func (e *element) writeXML(b *bytes.Buffer, f *field, attributes string) {
	if f.is == structure && len(e.children) == 0 {
		b.WriteString("<" + e.name + attributes + "/>")
		return
	}
	b.WriteString("<" + e.name + attributes + ">")
	if f.is != structure {
		xml.Escape(b, []byte(e.text)) // a Buffer takes everything
	}
	for i := range e.children {
		if g := f.field(e.children[i].name); !g.onlyJSON {
			e.children[i].writeXML(b, g, "")
		}
	}
	b.WriteString("</" + e.name + ">")
}

// readXML reads a document of one element. What has no meaning in a configuration, and could be mistaken to have one, is an
// error: attributes, other namespaces, document types.
func readXML(data []byte) (*element, error) {
	d := xml.NewDecoder(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	var root *element
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && root != nil {
			return root, nil
		}
		if errors.Is(err, io.EOF) {
			return nil, errors.New("there is no element")
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			if root != nil {
				return nil, fmt.Errorf("a second document begins with %s", t.Name.Local)
			}
			if root, err = readElement(d, t, 1); err != nil {
				return nil, err
			}
		case xml.CharData:
			if !blank(string(t)) {
				return nil, errors.New("there is text outside the document")
			}
		case xml.Directive:
			return nil, errors.New("there is a document type")
		}
	}
}

func readElement(d *xml.Decoder, start xml.StartElement, depth int) (*element, error) {
	e := &element{name: start.Name.Local, is: plain}
	if depth > maxDepth {
		return nil, fmt.Errorf("%s is nested too deep", e.name)
	}
	if err := checkNames(start); err != nil {
		return nil, err
	}
	var text strings.Builder
	for {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			child, err := readElement(d, t, depth+1)
			if err != nil {
				return nil, err
			}
			e.is, e.children = structure, append(e.children, *child)
		case xml.CharData:
			text.Write(t)
		case xml.Directive:
			return nil, errors.New("there is a document type")
		case xml.EndElement:
			if e.text = text.String(); e.is == structure && !blank(e.text) {
				return nil, fmt.Errorf("there is text between the elements of %s", e.name)
			}
			return e, nil
		}
	}
}

func checkNames(start xml.StartElement) error {
	if ns := start.Name.Space; ns != "" && ns != namespaces[0] && ns != namespaces[1] {
		return fmt.Errorf("%s is in the namespace %q", start.Name.Local, ns)
	}
	for _, a := range start.Attr {
		if a.Name.Space != "xmlns" && a.Name.Space != schemaInstance && a.Name != (xml.Name{Local: "xmlns"}) {
			return fmt.Errorf("%s has an attribute %s", start.Name.Local, a.Name.Local)
		}
	}
	return nil
}

func blank(text string) bool { return trim(text) == "" }
