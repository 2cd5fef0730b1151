// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"context"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// misplace stages a delete marker in the place of an object, past all that keeps objects in order.
func (s *script) misplace(ts *testscript.TestScript, args []string) {
	place, key, _ := strings.Cut(args[0], ":")
	repo, branch, _ := strings.Cut(place, "/")
	marker, err := catalog.Encode(catalog.Object{DeleteMarker: true})
	ts.Check(err)
	ts.Check(s.withStore(ts, func(ctx context.Context, store *moraine.Store) error {
		return store.Set(ctx, graveler.RepositoryID(repo), graveler.BranchID(branch), graveler.Key(key), marker)
	}))
	s.transcribe(ts, "# (no object in the place of "+args[0]+")\n")
}
