// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) get() *cobra.Command {
	return &cobra.Command{
		Use: "get REPO/REF:KEY", Short: "Show the record of an entry",
		Example: "moraine get lake/main:data/x.csv\nmoraine get lake/main~1:data/x.csv --output json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseEntry(args[0], "REPO/REF:KEY")
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				v, err := s.Get(cmd.Context(), at.repo, at.ref, at.key)
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
}

func (a *app) ls() *cobra.Command {
	var recursive bool
	var after string
	var limit uint
	cmd := &cobra.Command{
		Use: "ls REPO/REF:PREFIX", Short: "List entries, by key",
		Long: "List the entries whose keys start with PREFIX, which may be empty, by key. Keys that go on after the next slash are one line, which ends in that slash, " +
			"unless --recursive is given.",
		Example: "moraine ls lake/main:\nmoraine ls lake/main:data/ --recursive",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseKeys(args[0], "REPO/REF:PREFIX", "lake/main:data/")
			if err != nil {
				return err
			}
			o := graveler.ListOptions{Prefix: at.key, After: graveler.Key(after), Delimiter: "/"}
			if recursive {
				o.Delimiter = ""
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				entries := limited(s.List(cmd.Context(), at.repo, at.ref, o), int(limit))
				return table(a.printer, entries, []string{"SIZE", "MODIFIED", "KEY"}, viewListing, listingCells)
			})
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "list every entry, whatever slashes its key has")
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

func (a *app) rm() *cobra.Command {
	var recursive bool
	cmd := &cobra.Command{
		Use: "rm REPO/BRANCH:KEY", Short: "Remove an entry, or all whose keys start with a prefix",
		Long: "Remove an entry from a branch, which is an uncommitted change like any other; one that is not there is no error. With --recursive KEY is a prefix, and everything that starts with it " +
			"is removed, at once and at the same cost whatever there is.",
		Example: "moraine rm lake/main:data/x.csv\nmoraine rm lake/main:data/ --recursive",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseKeys(args[0], "REPO/BRANCH:KEY", "lake/main:data/x.csv")
			if err == nil {
				err = graveler.ValidateBranchID(at.branch())
			}
			if err == nil && !recursive {
				err = graveler.ValidateKey(at.key)
			}
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				if recursive {
					return a.removed(at, true, s.DeletePrefix(cmd.Context(), at.repo, at.branch(), at.key))
				}
				return a.removeOne(cmd.Context(), s, at)
			})
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "remove everything whose key starts with KEY")
	return cmd
}

// removeOne removes the entry of a key, and gives a hint to somebody who takes keys for directories.
func (a *app) removeOne(ctx context.Context, s *moraine.Store, at address) error {
	_, err := s.Get(ctx, at.repo, at.ref, at.key)
	absent := errors.Is(err, graveler.ErrEntryNotFound)
	if err != nil && !absent {
		return err
	}
	if err := a.removed(at, false, s.Delete(ctx, at.repo, at.branch(), at.key)); err != nil || !absent {
		return err
	}
	for _, err := range s.List(ctx, at.repo, at.ref, graveler.ListOptions{Prefix: at.key}) {
		if err == nil {
			a.note("nothing at %s/%s:%s; to remove what is below it use --recursive", at.repo, at.ref, escape(at.key))
		}
		return err
	}
	return nil
}

func (a *app) removed(at address, recursive bool, err error) error {
	return a.done(err, func() any {
		return struct {
			branchView
			keyView
			Recursive bool `json:"recursive"`
		}{viewPlace(at), viewKey(at.key), recursive}
	})
}

// branchView says in JSON what was changed.
type branchView struct {
	Repository graveler.RepositoryID `json:"repository"`
	Branch     graveler.BranchID     `json:"branch"`
}

func viewPlace(at address) branchView { return branchView{at.repo, at.branch()} }
