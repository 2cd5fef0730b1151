// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"maps"
)

// Tagging returns the tags of a version, "" being the current one.
func (c *Catalog) Tagging(ctx context.Context, b Bucket, key, version string) (map[string]string, error) {
	o, err := c.get(ctx, b, key, version)
	if err != nil {
		return nil, describe(err, "get tags of", b, key)
	}
	return o.Tags, nil
}

// PutTagging replaces the tags of a version. Neither its ID nor its times change.
func (c *Catalog) PutTagging(ctx context.Context, b Bucket, key, version string, tags map[string]string) error {
	err := checkTags(tags)
	if err == nil {
		err = c.edit(ctx, b, key, version, func(_ settings, o *Object) error {
			o.Tags = maps.Clone(tags)
			return nil
		})
	}
	return describe(err, "put tags of", b, key)
}

// DeleteTagging removes all tags of a version.
func (c *Catalog) DeleteTagging(ctx context.Context, b Bucket, key, version string) error {
	return c.PutTagging(ctx, b, key, version, nil)
}
