// SPDX-License-Identifier: Apache-2.0

package graveler

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Limits of names and entries, in bytes.
const (
	MaxRefNameBytes     = 200
	MaxKeyBytes         = 1024
	MaxReservedKeyBytes = 1280 // of keys that start with a zero byte
	MaxValueBytes       = 252 << 10
)

var repositoryPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{2,62}$`)

// isCommitID reports whether a name is a whole commit ID.
func isCommitID(name string) bool {
	return len(name) == commitDigits && strings.Trim(name, hexDigits) == ""
}

// ValidateRepositoryID returns ErrInvalidName with the rule that id breaks.
func ValidateRepositoryID(id RepositoryID) error {
	if !repositoryPattern.MatchString(string(id)) {
		return fmt.Errorf("%w: repository %q: 3 to 63 of a-z, 0-9 and '-', not starting with '-'", ErrInvalidName, id)
	}
	return nil
}

// ValidateBranchID returns ErrInvalidName with the rule that id breaks.
func ValidateBranchID(id BranchID) error { return validateRefName("branch", string(id)) }

// ValidateTagID returns ErrInvalidName with the rule that id breaks.
func ValidateTagID(id TagID) error { return validateRefName("tag", string(id)) }

// validateRefName holds names to the rules of git-check-ref-format(1), and to ours: a length limit, and no name that a ref
// expression would read as something else.
func validateRefName(kind, name string) error {
	if rule := brokenRefRule(name); rule != "" {
		return fmt.Errorf("%w: %s %q: %s", ErrInvalidName, kind, name, rule)
	}
	return nil
}

func brokenRefRule(name string) string {
	switch {
	case name == "":
		return "must not be empty"
	case len(name) > MaxRefNameBytes:
		return fmt.Sprintf("is %d bytes long, at most %d are allowed", len(name), MaxRefNameBytes)
	case !utf8.ValidString(name):
		return "must be UTF-8"
	case strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f }):
		return "must not contain spaces or control characters"
	case strings.ContainsAny(name, `~^:?*[\`):
		return `must not contain any of ~ ^ : ? * [ \`
	case strings.Contains(name, ".."):
		return "must not contain '..'"
	case strings.Contains(name, "@{"):
		return "must not contain '@{'"
	case strings.HasSuffix(name, "."):
		return "must not end in '.'"
	case strings.HasSuffix(name, "@"), strings.HasSuffix(name, "$"):
		return "must not end in '@' or '$'"
	case strings.HasPrefix(name, "-"):
		return "must not start with '-'"
	case isCommitID(name):
		return "must not look like a commit ID"
	}
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "":
			return "must not start or end with '/' or contain '//'"
		case strings.HasPrefix(part, "."), strings.HasSuffix(part, ".lock"):
			return "no part between slashes may start with '.' or end in '.lock'"
		}
	}
	return ""
}

// ValidateKey returns ErrInvalidName for an empty key and ErrTooLarge for one over the limit.
func ValidateKey(key Key) error {
	limit := MaxKeyBytes
	switch {
	case len(key) == 0:
		return fmt.Errorf("%w: an entry's key must not be empty", ErrInvalidName)
	case key[0] == 0:
		limit = MaxReservedKeyBytes
	}
	if len(key) > limit {
		return fmt.Errorf("%w: key of %d bytes, at most %d are allowed", ErrTooLarge, len(key), limit)
	}
	return nil
}

// ValidateValue returns ErrInvalidValue for a value without identity and ErrTooLarge for one over the limit.
func ValidateValue(v *Value) error {
	switch {
	case v == nil || len(v.Identity) == 0:
		return fmt.Errorf("%w: an entry's identity must not be empty", ErrInvalidValue)
	case len(v.Identity)+len(v.Data) > MaxValueBytes:
		return fmt.Errorf("%w: identity and data of %d bytes, at most %d are allowed", ErrTooLarge, len(v.Identity)+len(v.Data), MaxValueBytes)
	}
	return nil
}

// ValidateEntry returns what ValidateKey says of the key, or ValidateValue of the value. A nil value is a tombstone, which any key may have.
func ValidateEntry(e Entry) error {
	if err := ValidateKey(e.Key); err != nil || e.Value == nil {
		return err
	}
	return ValidateValue(e.Value)
}
