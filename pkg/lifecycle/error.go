// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// ConfigError is why a configuration was refused. It wraps its code: errors.Is(err, catalog.MalformedXML).
type ConfigError struct {
	// Code is what S3 answers: catalog.MalformedXML for a document that does not have the form of a configuration, in JSON as
	// well; catalog.InvalidArgument for a value that its field cannot have; catalog.InvalidRequest for fields, or a number of
	// them, that are not allowed together.
	Code catalog.Code
	// Rule is the ID of the rule at fault, or "#" and its place, counted from 1, where it has none; "" where no single rule is.
	Rule string
	// Field is the path of the field at fault within the rule (the document where Rule is ""), such as "Filter.And.Tag"; "" for the whole of it.
	Field string
	// Message says what is wrong, in the words of S3 where those are known.
	Message string

	json bool // it is about the form of JSON, of which the name of the code says something else
}

// Error names the code, unless it is MalformedXML for a document in JSON.
func (e *ConfigError) Error() string {
	where := ""
	if e.Rule != "" {
		where = fmt.Sprintf("rule %q: ", e.Rule)
	}
	if e.Field != "" {
		where += e.Field + ": "
	}
	if !e.json {
		where = string(e.Code) + ": " + where
	}
	return fmt.Sprintf("lifecycle configuration: %s%s", where, e.Message)
}

// Unwrap returns the code.
func (e *ConfigError) Unwrap() error { return e.Code }
