// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"fmt"
	"strings"
	"time"
)

// Conditions are the conditional headers of a request. The zero value has none. An ETag may be given with or without quotes, or
// as a list; "*" is that of any object.
type Conditions struct {
	IfMatch           string
	IfNoneMatch       string
	IfModifiedSince   time.Time // read only, as IfUnmodifiedSince: a change takes no times. Only whole seconds count.
	IfUnmodifiedSince time.Time
}

// forChange judges the conditions of a put with the current object; nil: there is none. As in S3, If-Match of what is not there
// is NoSuchKey, and If-None-Match takes nothing but "*".
func (c Conditions) forChange(current *Object) error {
	switch {
	case !c.IfModifiedSince.IsZero() || !c.IfUnmodifiedSince.IsZero(),
		c.IfNoneMatch != "" && (c.IfNoneMatch != "*" || c.IfMatch != ""):
		return fmt.Errorf("%w: a change is conditional on If-Match, or on If-None-Match with the value *", NotImplemented)
	case c.IfNoneMatch != "" && current != nil:
		return fmt.Errorf("%w: If-None-Match: the object exists", PreconditionFailed)
	case c.IfMatch != "" && current == nil:
		return fmt.Errorf("%w: If-Match", NoSuchKey)
	case c.IfMatch != "" && !matchesETag(c.IfMatch, current.Checksum):
		return fmt.Errorf("%w: If-Match: the ETag is %q", PreconditionFailed, current.Checksum)
	}
	return nil
}

// forRead judges the conditions of a read, in the order of RFC 9110, section 13.2.2: PreconditionFailed or NotModified where one does not hold.
func (c Conditions) forRead(o *Object) error {
	modified := o.ModifiedAt.Truncate(time.Second)
	switch {
	case c.IfMatch != "" && !matchesETag(c.IfMatch, o.Checksum):
		return fmt.Errorf("%w: If-Match: the ETag is %q", PreconditionFailed, o.Checksum)
	case c.IfMatch == "" && !c.IfUnmodifiedSince.IsZero() && modified.After(c.IfUnmodifiedSince):
		return fmt.Errorf("%w: If-Unmodified-Since: it was modified at %s", PreconditionFailed, modified.Format(time.RFC3339))
	case c.IfNoneMatch != "" && matchesETag(c.IfNoneMatch, o.Checksum):
		return fmt.Errorf("%w: If-None-Match: the ETag is %q", NotModified, o.Checksum)
	case c.IfNoneMatch == "" && !c.IfModifiedSince.IsZero() && !modified.After(c.IfModifiedSince):
		return fmt.Errorf("%w: If-Modified-Since: it was modified at %s", NotModified, modified.Format(time.RFC3339))
	}
	return nil
}

func matchesETag(list, etag string) bool {
	for one := range strings.SplitSeq(list, ",") {
		one = strings.TrimSpace(one)
		if one == "*" || strings.Trim(strings.TrimPrefix(one, "W/"), `"`) == strings.Trim(etag, `"`) {
			return true
		}
	}
	return false
}
