// SPDX-License-Identifier: Apache-2.0

package kv

import "strings"

const redacted = "xxxxx"

// Redact makes a store URL fit for errors and logs: all that may be a credential is replaced, which
// is everything before the last @ and the value of every parameter, and where there is no scheme the
// whole text, since it may be a connection string with a password anywhere. It works on the text and
// would rather hide too much: a URL that is malformed, perhaps by its password, is redacted too.
func Redact(url string) string {
	scheme, rest, ok := splitScheme(url)
	if !ok {
		return redacted
	}
	slashes := ""
	if strings.HasPrefix(rest, "//") {
		slashes, rest = "//", rest[2:]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = redacted + rest[at:]
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	if hasQuery {
		rest += "?" + redactQuery(query)
	}
	return scheme + ":" + slashes + rest
}

func redactQuery(query string) string {
	parameters := strings.Split(query, "&")
	for i, p := range parameters {
		if name, _, ok := strings.Cut(p, "="); ok {
			parameters[i] = name + "=" + redacted
		} else if p != "" {
			parameters[i] = redacted
		}
	}
	return strings.Join(parameters, "&")
}
