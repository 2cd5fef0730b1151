// SPDX-License-Identifier: Apache-2.0

package kv

import "strings"

const redacted = "xxxxx"

// Redact makes a store URL fit for errors and logs: all that may be a credential is replaced, which
// is everything before the last @, the value of every parameter, and a port that is no number. Where there is no scheme, or only
// name=value pairs behind it, it is the whole text, since it may be a connection string with a password anywhere. It works on the text and
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
	if slashes == "" {
		if strings.Contains(rest, "=") { // name=value pairs behind a scheme
			rest = redacted
		}
	} else {
		rest = redactPort(rest)
	}
	if hasQuery {
		rest += "?" + redactQuery(query)
	}
	return scheme + ":" + slashes + rest
}

// redactPort replaces what stands where a port should be and is no number.
func redactPort(rest string) string {
	authority, path, hasPath := strings.Cut(rest, "/")
	if colon := strings.LastIndexByte(authority, ':'); colon >= 0 && strings.Trim(authority[colon+1:], "0123456789") != "" && !strings.HasSuffix(authority, "]") {
		authority = authority[:colon+1] + redacted
	}
	if hasPath {
		return authority + "/" + path
	}
	return authority
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
