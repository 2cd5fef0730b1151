// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"iter"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// versionLine is a version in a listing, or a common prefix.
type versionLine struct {
	catalog.ListedVersion
	common bool
}

// listVersions prints at most limit versions, all where that is 0.
func (a *app) listVersions(ctx context.Context, at address, p catalog.ListVersionsParams, limit int) error {
	return a.useObjects(ctx, reading, at, func(c *catalog.Catalog) error {
		lines := limited(versionLines(ctx, c, at.bucket(), p), limit)
		return table(a.printer, lines, []string{"SIZE", "MODIFIED", "VERSION", "STATE", "KEY"}, viewVersion, versionCells)
	})
}

// versionLines yields versions and common prefixes page by page, by key.
func versionLines(ctx context.Context, c *catalog.Catalog, b catalog.Bucket, p catalog.ListVersionsParams) iter.Seq2[versionLine, error] {
	return func(yield func(versionLine, error) bool) {
		for {
			page, err := c.ListVersions(ctx, b, p)
			if err != nil {
				yield(versionLine{}, err)
				return
			}
			for versions, prefixes := page.Versions, page.CommonPrefixes; len(versions)+len(prefixes) > 0; {
				var l versionLine
				if len(versions) == 0 || len(prefixes) > 0 && prefixes[0] < versions[0].Key {
					l.Key, l.common, prefixes = prefixes[0], true, prefixes[1:]
				} else {
					l.ListedVersion, versions = versions[0], versions[1:]
				}
				if !yield(l, nil) {
					return
				}
			}
			if !page.Truncated {
				return
			}
			p.KeyMarker, p.VersionIDMarker = page.NextKeyMarker, page.NextVersionIDMarker
		}
	}
}

func viewVersion(l versionLine) any {
	key := viewKey(graveler.Key(l.Key))
	if l.common {
		return struct {
			keyView
			CommonPrefix bool `json:"common_prefix"`
		}{key, true}
	}
	return struct {
		keyView
		Latest bool `json:"latest"`
		*objectView
	}{key, l.Latest, viewObject(l.Object)}
}

func versionCells(l versionLine) []string {
	if l.common {
		return []string{"-", "-", "-", "-", escape(l.Key)}
	}
	size, state := formatSize(l.Size), "-"
	switch {
	case l.DeleteMarker && l.Latest:
		size, state = "-", "latest, marker"
	case l.DeleteMarker:
		size, state = "-", "marker"
	case l.Latest:
		state = "latest"
	}
	return []string{size, formatTime(l.ModifiedAt), l.VersionID, state, escape(l.Key)}
}
