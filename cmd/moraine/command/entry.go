// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) get() *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use: "get REPO/REF:KEY", Short: "Show the record of an object",
		Long:    "Show the record of an object: of its current version, or of the one that --version names (see 'moraine ls --versions'; null is the version that was put while no versions were kept).",
		Example: "moraine get lake/main:data/x.csv\nmoraine get lake/main~1:data/x.csv --output json\nmoraine get lake/main:data/x.csv --version null",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseEntry(args[0], "REPO/REF:KEY")
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				v, err := getVersion(cmd.Context(), s, at, version)
				if err != nil {
					return err
				}
				return a.printer.record(struct {
					keyView
					valueView
				}{viewKey(at.key), viewValue(*v)}, append([]string{"Key", escape(at.key)}, objectFields(*v)...)...)
			})
		},
	}
	defineVersion(cmd.Flags(), &version, "the version with this ID")
	return cmd
}

// getVersion returns the value of a version, "" being the current one: that is the entry of the key itself, which need not be an object.
func getVersion(ctx context.Context, s *moraine.Store, at address, version string) (*graveler.Value, error) {
	if version == "" {
		if v, err := s.Get(ctx, at.repo, at.ref, at.key); !errors.Is(err, graveler.ErrEntryNotFound) {
			return v, err
		}
	}
	c, err := objectsOf(s)
	if err != nil {
		return nil, err
	}
	o, err := c.Get(ctx, at.bucket(), string(at.key), catalog.GetParams{VersionID: version})
	if err != nil {
		return nil, err
	}
	v, err := catalog.Encode(o)
	return &v, err
}

func (a *app) ls() *cobra.Command {
	var recursive, versions bool
	var after string
	var limit uint
	cmd := &cobra.Command{
		Use: "ls REPO/REF:PREFIX", Short: "List objects, or all their versions, by key",
		Long: "List the objects whose keys start with PREFIX, which may be empty, by key. Keys that go on after the next slash are one line, which ends in that slash, " +
			"unless --recursive is given.\n\n" +
			"--versions lists every version, of each key the newest first: the latest is the current one, a marker says that the object was deleted then.",
		Example: "moraine ls lake/main:\nmoraine ls lake/main:data/ --recursive\nmoraine ls lake/main:data/x.csv --versions",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseKeys(args[0], "REPO/REF:PREFIX", "lake/main:data/")
			if err != nil {
				return err
			}
			o := graveler.ListOptions{Prefix: at.key, After: graveler.Key(max(after, afterReserved)), Delimiter: "/"}
			if recursive {
				o.Delimiter = ""
			}
			if versions {
				return a.listVersions(cmd.Context(), at, catalog.ListVersionsParams{Prefix: string(at.key), Delimiter: o.Delimiter, KeyMarker: after}, int(limit))
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				entries := limited(s.List(cmd.Context(), at.repo, at.ref, o), int(limit))
				return table(a.printer, entries, []string{"SIZE", "MODIFIED", "KEY"}, viewListing, listingCells)
			})
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "list every object, whatever slashes its key has")
	cmd.Flags().BoolVar(&versions, "versions", false, "list every version")
	cmd.Flags().StringVar(&after, "after", "", "leave out what is not greater than this key")
	cmd.Flags().UintVar(&limit, "limit", 0, "end after so many lines (0: no limit)")
	return cmd
}

func viewListing(l graveler.Listing) any {
	if l.CommonPrefix {
		return struct {
			keyView
			CommonPrefix bool `json:"common_prefix"`
		}{viewKey(l.Key), true}
	}
	return struct {
		keyView
		valueView
	}{viewKey(l.Key), viewValue(*l.Value)}
}

func listingCells(l graveler.Listing) []string {
	size, modified := "-", "-"
	if !l.CommonPrefix {
		size, modified = sizeAndTime(*l.Value)
	}
	return []string{size, modified, escape(l.Key)}
}

// branchView says in JSON what was changed.
type branchView struct {
	Repository graveler.RepositoryID `json:"repository"`
	Branch     graveler.BranchID     `json:"branch"`
}

func viewPlace(at address) branchView { return branchView{at.repo, at.branch()} }
