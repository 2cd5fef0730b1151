// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// element is a part of a document, of XML and of JSON alike. Both forms are read into elements, held against one grammar, and written from elements.
type element struct {
	name     string
	is       content
	text     string    // of anything but a structure or a list
	children []element // of a structure or a list

	// rule and path say where it is, for errors (see ConfigError).
	rule, path string
}

// content is what an element holds.
type content int

const (
	structure content = iota
	text
	number
	flag
	list  // of JSON
	null  // of JSON
	plain // of XML, which does not tell text, numbers and flags apart
)

func (c content) String() string {
	return [...]string{"a structure", "a text", "a number", "true or false", "a list", "null", "text"}[c]
}

// field is an element that the grammar allows.
type field struct {
	name string
	is   content
	// many is the name of the list in JSON, where there may be more than one; in XML the element is repeated.
	many     string
	onlyJSON bool
	// refused is for what S3 knows and the rules of this package do not.
	refused bool
	fields  []field // of a structure
}

var tagFields = []field{{name: "Key", is: text}, {name: "Value", is: text}}

var document = field{name: "LifecycleConfiguration", fields: []field{
	{name: "Rule", many: "Rules", fields: []field{
		{name: "ID", is: text},
		{name: "Prefix", is: text},
		{name: "Filter", fields: []field{
			{name: "Prefix", is: text},
			{name: "Tag", fields: tagFields},
			{name: "ObjectSizeGreaterThan", is: number},
			{name: "ObjectSizeLessThan", is: number},
			{name: "And", fields: []field{
				{name: "Prefix", is: text},
				{name: "Tag", many: "Tags", fields: tagFields},
				{name: "ObjectSizeGreaterThan", is: number},
				{name: "ObjectSizeLessThan", is: number},
			}},
		}},
		{name: "Status", is: text},
		{name: "Expiration", fields: []field{
			{name: "Date", is: text},
			{name: "Days", is: number},
			{name: "ExpiredObjectDeleteMarker", is: flag},
		}},
		{name: "NoncurrentVersionExpiration", fields: []field{
			{name: "NoncurrentDays", is: number},
			{name: "NewerNoncurrentVersions", is: number},
		}},
		{name: "AbortIncompleteMultipartUpload", fields: []field{
			{name: "DaysAfterInitiation", is: number},
		}},
		{name: "Transition", many: "Transitions", refused: true},
		{name: "NoncurrentVersionTransition", many: "NoncurrentVersionTransitions", refused: true},
	}},
	{name: "Branch", many: "Branches", is: text, onlyJSON: true},
	{name: "TransitionDefaultMinimumObjectSize", onlyJSON: true, refused: true},
}}

// maxDepth bounds how deep the elements of a document are nested, so that a reader that recurses is safe. The grammar needs less.
const maxDepth = 16

// conform holds e against the grammar, names what it finds, and puts the elements of lists of JSON in the place of the list.
func (e *element) conform(f *field, json bool) error {
	if f.refused {
		return e.fault(catalog.InvalidRequest, "it is not supported")
	}
	if e.is == plain && f.is != structure {
		e.is = f.is
	}
	if e.is == plain && blank(e.text) {
		e.is = structure // without fields
	}
	if e.is != f.is {
		return e.fault(catalog.MalformedXML, "this is %s, not %s", e.is, f.is)
	}
	var children []element
	seen, rules := map[string]bool{}, 0
	for _, c := range e.children {
		of := slices.IndexFunc(f.fields, func(f field) bool {
			if json && f.many != "" {
				return f.many == c.name
			}
			return f.name == c.name && (json || !f.onlyJSON)
		})
		c.rule, c.path = e.rule, e.join(c.name)
		if of < 0 {
			return c.fault(catalog.MalformedXML, "it does not belong here")
		}
		g := &f.fields[of]
		if seen[c.name] && (json || g.many == "") {
			return c.fault(catalog.MalformedXML, "it is there more than once")
		}
		seen[c.name] = true
		items := []element{c}
		if json && g.many != "" && !g.refused {
			if c.is != list {
				return c.fault(catalog.MalformedXML, "this is %s, not a list", c.is)
			}
			items = c.children
		}
		for _, item := range items {
			item.name, item.rule, item.path = g.name, e.rule, e.join(g.name)
			if g.name == "Rule" {
				item.rule, item.path = ruleName(rules, item.child("ID").string()), ""
				rules++
			}
			if err := item.conform(g, json); err != nil {
				return err
			}
			children = append(children, item)
		}
	}
	e.children = children
	return nil
}

func (e *element) join(name string) string {
	if e.path == "" {
		return name
	}
	return e.path + "." + name
}

// child returns the only child of that name, or the first, or nil.
func (e *element) child(name string) *element {
	if e == nil {
		return nil
	}
	for i := range e.children {
		if e.children[i].name == name {
			return &e.children[i]
		}
	}
	return nil
}

// string returns the text of e, "" where there is no e.
func (e *element) string() string {
	if e == nil {
		return ""
	}
	return e.text
}

func (e *element) fault(code catalog.Code, format string, args ...any) error {
	return &ConfigError{Code: code, Rule: e.rule, Field: e.path, Message: fmt.Sprintf(format, args...)}
}

// ruleName returns what errors call the rule in place i.
func ruleName(i int, id string) string {
	if id == "" || utf8.RuneCountInString(id) > MaxIDCharacters {
		return fmt.Sprintf("#%d", i+1)
	}
	return id
}
