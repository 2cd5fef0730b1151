// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/moraine-store/moraine/pkg/catalog"
)

const (
	enabled  = "Enabled"
	disabled = "Disabled"
)

// dateForms are the forms of ISO 8601 that are read; the first is written. A date without a zone is in UTC.
var dateForms = []string{"2006-01-02T15:04:05.000Z07:00", time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02"}

// fromElement returns the configuration that a document holds.
func fromElement(root *element, json bool) (Configuration, error) {
	if err := root.conform(&document, json); err != nil {
		return Configuration{}, err
	}
	var c Configuration
	for i := range root.children {
		e := &root.children[i]
		if e.name == "Branch" {
			c.Branches = append(c.Branches, e.text)
			continue
		}
		r, err := ruleOf(e)
		if err != nil {
			return Configuration{}, err
		}
		c.Rules = append(c.Rules, r)
	}
	if err := c.Validate(); err != nil { // which names rules as the document does
		return Configuration{}, err
	}
	c.nameRules()
	return c, nil
}

func ruleOf(e *element) (Rule, error) {
	r := Rule{ID: e.child("ID").string()}
	switch status := e.child("Status"); {
	case status == nil:
		return r, e.fault(catalog.MalformedXML, "Status is missing")
	case status.text != enabled && status.text != disabled:
		return r, status.fault(catalog.MalformedXML, "%q is neither %s nor %s", status.text, enabled, disabled)
	default:
		r.Enabled = status.text == enabled
	}
	var v values
	prefix, filter := e.child("Prefix"), e.child("Filter")
	switch {
	case prefix == nil && filter == nil:
		return r, e.fault(catalog.MalformedXML, "Filter is missing")
	case prefix != nil && filter != nil:
		return r, prefix.fault(catalog.MalformedXML, "it excludes a Filter")
	case prefix != nil:
		r.LegacyPrefix, r.Filter.Prefix = true, v.text(prefix)
	default:
		r.Filter = v.filter(filter)
	}
	if x := e.child("Expiration"); x != nil {
		r.Expiration = &Expiration{
			Days: v.days(x.child("Days")), Date: v.date(x.child("Date")), ExpiredObjectDeleteMarker: v.flag(x.child("ExpiredObjectDeleteMarker")),
		}
	}
	if x := e.child("NoncurrentVersionExpiration"); x != nil {
		r.NoncurrentVersionExpiration = &NoncurrentVersionExpiration{
			NoncurrentDays: v.days(x.child("NoncurrentDays")), NewerNoncurrentVersions: v.days(x.child("NewerNoncurrentVersions")),
		}
	}
	if x := e.child("AbortIncompleteMultipartUpload"); x != nil {
		days := v.days(v.required(x, "DaysAfterInitiation"))
		if days != nil {
			r.AbortIncompleteMultipartUpload = &AbortIncompleteMultipartUpload{DaysAfterInitiation: *days}
		}
	}
	return r, v.err
}

// values reads the values of elements. It keeps the first error; what is absent is nil.
type values struct{ err error }

func (v *values) fault(e *element, format string, args ...any) {
	if v.err == nil {
		v.err = e.fault(catalog.MalformedXML, format, args...)
	}
}

// filter reads a Filter: of one predicate, or of an And of two at least.
func (v *values) filter(e *element) Filter {
	and := e.child("And")
	switch {
	case len(e.children) > 1:
		v.fault(e, "more than one predicate needs an And, which then stands alone")
	case and != nil && len(and.children) < 2:
		v.fault(and, "an And is of two predicates at least")
	case and != nil:
		e = and
	}
	f := Filter{Prefix: v.text(e.child("Prefix")), SizeGreaterThan: v.number(e.child("ObjectSizeGreaterThan"), 64), SizeLessThan: v.number(e.child("ObjectSizeLessThan"), 64)}
	for i := range e.children {
		if t := &e.children[i]; t.name == "Tag" {
			f.Tags = append(f.Tags, Tag{Key: v.required(t, "Key").string(), Value: v.required(t, "Value").string()})
		}
	}
	return f
}

func (v *values) required(e *element, name string) *element {
	c := e.child(name)
	if c == nil {
		v.fault(e, "%s is missing", name)
	}
	return c
}

func (v *values) text(e *element) *string {
	if e == nil {
		return nil
	}
	return &e.text
}

func (v *values) number(e *element, bits int) *int64 {
	if e == nil {
		return nil
	}
	n, err := strconv.ParseInt(trim(e.text), 10, bits)
	if err != nil {
		v.fault(e, "%q is no whole number of at most %d bits", e.text, bits)
	}
	return &n
}

// days reads a number of days, or of versions, which S3 keeps in 32 bits.
func (v *values) days(e *element) *int {
	n := v.number(e, 32)
	if n == nil {
		return nil
	}
	days := int(*n)
	return &days
}

func (v *values) flag(e *element) *bool {
	if e == nil {
		return nil
	}
	set := trim(e.text) == "true"
	if !set && trim(e.text) != "false" {
		v.fault(e, "%q is neither true nor false", e.text)
	}
	return &set
}

func (v *values) date(e *element) *time.Time {
	if e == nil {
		return nil
	}
	for _, form := range dateForms {
		if t, err := time.Parse(form, trim(e.text)); err == nil {
			t = t.UTC()
			return &t
		}
	}
	v.fault(e, "%q is no date of ISO 8601", e.text)
	return nil
}

// trim takes away the white space that XML allows around anything but texts.
func trim(s string) string { return strings.Trim(s, " \t\r\n") }

// nameRules makes up an ID for each rule that has none, from what the rule says, so that the same configuration always gets the same IDs.
func (c *Configuration) nameRules() {
	taken := map[string]bool{}
	for i := range c.Rules {
		taken[c.Rules[i].ID] = true
	}
	for i := range c.Rules {
		r := &c.Rules[i]
		if r.ID != "" {
			continue
		}
		e := r.element()
		sum := sha256.Sum256(e.appendJSON(nil, document.field("Rule")))
		name := "rule-" + hex.EncodeToString(sum[:8])
		r.ID = name
		for n := 2; taken[r.ID]; n++ {
			r.ID = fmt.Sprintf("%s-%d", name, n)
		}
		taken[r.ID] = true
	}
}

// field returns what the grammar says about an element of that name, which exists.
func (f *field) field(name string) *field {
	for i := range f.fields {
		if f.fields[i].name == name {
			return &f.fields[i]
		}
	}
	panic("lifecycle: the grammar of " + f.name + " has no " + name)
}

// element returns the document that holds c.
func (c Configuration) element() element {
	root := element{name: document.name}
	for i := range c.Rules {
		root.children = append(root.children, c.Rules[i].element())
	}
	for _, b := range c.Branches {
		root.add("Branch", b)
	}
	return root
}

// element returns the form of r, which need not be valid, in the order in which S3 writes it.
func (r *Rule) element() element {
	e := element{name: "Rule"}
	if r.ID != "" {
		e.add("ID", r.ID)
	}
	if r.LegacyPrefix {
		add(&e, "Prefix", r.Filter.Prefix)
	} else {
		e.children = append(e.children, r.Filter.element())
	}
	if r.Enabled {
		e.add("Status", enabled)
	} else {
		e.add("Status", disabled)
	}
	if x := r.Expiration; x != nil {
		c := element{name: "Expiration"}
		if x.Date != nil {
			c.add("Date", x.Date.UTC().Format(dateForms[0]))
		}
		add(&c, "Days", x.Days)
		add(&c, "ExpiredObjectDeleteMarker", x.ExpiredObjectDeleteMarker)
		e.children = append(e.children, c)
	}
	if x := r.NoncurrentVersionExpiration; x != nil {
		c := element{name: "NoncurrentVersionExpiration"}
		add(&c, "NoncurrentDays", x.NoncurrentDays)
		add(&c, "NewerNoncurrentVersions", x.NewerNoncurrentVersions)
		e.children = append(e.children, c)
	}
	if x := r.AbortIncompleteMultipartUpload; x != nil {
		c := element{name: "AbortIncompleteMultipartUpload"}
		add(&c, "DaysAfterInitiation", &x.DaysAfterInitiation)
		e.children = append(e.children, c)
	}
	return e
}

func (f *Filter) element() element {
	e := element{name: "Filter"}
	predicates := element{name: "And"}
	add(&predicates, "Prefix", f.Prefix)
	for _, t := range f.Tags {
		tag := element{name: "Tag"}
		tag.add("Key", t.Key)
		tag.add("Value", t.Value)
		predicates.children = append(predicates.children, tag)
	}
	add(&predicates, "ObjectSizeGreaterThan", f.SizeGreaterThan)
	add(&predicates, "ObjectSizeLessThan", f.SizeLessThan)
	if len(predicates.children) > 1 {
		e.children = []element{predicates}
	} else {
		e.children = predicates.children
	}
	return e
}

func (e *element) add(name, text string) {
	e.children = append(e.children, element{name: name, text: text})
}

// add adds a value, where there is one.
func add[T string | int | int64 | bool](e *element, name string, value *T) {
	if value != nil {
		e.add(name, fmt.Sprint(*value))
	}
}
