// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) rm() *cobra.Command {
	var recursive bool
	var version string
	var bypass bool
	cmd := &cobra.Command{
		Use: "rm REPO/BRANCH:KEY", Short: "Remove an object, or all whose keys start with a prefix, or one version",
		Long: "Remove an object from a branch, which is an uncommitted change like any other; one that is not there is no error. Where the repository keeps versions, the object becomes a noncurrent version, and a delete marker the current one. " +
			"With --recursive KEY is a prefix, which may be empty, and every object whose key starts with it is removed, one by one; one that cannot be ends it, and what was removed until then stays so.\n\n" +
			"--version removes one version, or delete marker, for good; if it was the current one, the newest of the others takes its place. One that is locked stays, except that --bypass-governance lifts a retention in GOVERNANCE mode.",
		Example: "moraine rm lake/main:data/x.csv\nmoraine rm lake/main:data/ --recursive\nmoraine rm lake/main:data/x.csv --version 67e3bd4d5cbf3a2d0f6c0a1b",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseKeys(args[0], "REPO/BRANCH:KEY", "lake/main:data/x.csv")
			if err == nil {
				err = graveler.ValidateBranchID(at.branch())
			}
			if err == nil && !recursive {
				err = graveler.ValidateKey(at.key)
			}
			switch {
			case err != nil:
				return err
			case bypass && version == "":
				return usageError{"--bypass-governance needs --version"}
			}
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				c, err := objectsOf(s)
				switch {
				case err != nil:
					return err
				case recursive:
					return a.removeAll(cmd.Context(), c, at)
				case version != "":
					return a.removeVersion(cmd.Context(), c, at, catalog.DeleteParams{VersionID: version, BypassGovernance: bypass})
				}
				return a.removeOne(cmd.Context(), s, c, at)
			})
		},
	}
	cmd.Flags().BoolVarP(&recursive, "recursive", "r", false, "remove every object whose key starts with KEY")
	defineVersion(cmd.Flags(), &version, "remove the version with this ID, for good")
	cmd.Flags().BoolVar(&bypass, "bypass-governance", false, "with --version: in spite of a retention in GOVERNANCE mode")
	cmd.MarkFlagsMutuallyExclusive("recursive", "version")
	return cmd
}

// removeAll removes what starts with a prefix.
func (a *app) removeAll(ctx context.Context, c *catalog.Catalog, at address) error {
	n, err := c.DeletePrefix(ctx, at.bucket(), string(at.key))
	if err != nil && n > 0 {
		err = fmt.Errorf("%w: %s removed before that", err, plural(n, "object was", "objects were"))
	}
	return a.done(err, func() any {
		return struct {
			branchView
			keyView
			Recursive bool `json:"recursive"`
			Removed   int  `json:"removed"`
		}{viewPlace(at), viewKey(at.key), true, n}
	})
}

// removeVersion removes a version for good. One that is not there is no error, but hardly what was meant: the look is for a note
// on that alone, and any other error of it comes back from the removal.
func (a *app) removeVersion(ctx context.Context, c *catalog.Catalog, at address, p catalog.DeleteParams) error {
	_, err := c.Get(ctx, at.bucket(), string(at.key), catalog.GetParams{VersionID: p.VersionID})
	absent := errors.Is(err, catalog.NoSuchVersion)
	d, err := c.Delete(ctx, at.bucket(), string(at.key), p)
	if err == nil && absent {
		a.note("%s/%s:%s has no version %s", at.repo, at.ref, escape(at.key), escape(p.VersionID))
	}
	return a.removed(at, d, err)
}

// removeOne removes the object of a key, and gives a hint to somebody who takes keys for directories.
func (a *app) removeOne(ctx context.Context, s *moraine.Store, c *catalog.Catalog, at address) error {
	_, err := s.Get(ctx, at.repo, at.ref, at.key)
	absent := errors.Is(err, graveler.ErrEntryNotFound)
	if err != nil && !absent {
		return err
	}
	d, err := c.Delete(ctx, at.bucket(), string(at.key), catalog.DeleteParams{})
	if errors.Is(err, graveler.ErrInvalidValue) {
		err = removeForeign(ctx, s, at, err)
	}
	if err := a.removed(at, d, err); err != nil || !absent {
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

// removeForeign removes what is at a key if it is no object, which another program may keep there. Otherwise it returns why the
// object was not removed.
func removeForeign(ctx context.Context, s *moraine.Store, at address, failed error) error {
	return s.Transact(ctx, at.repo, at.branch(), func(ctx context.Context, tx *graveler.Transaction) error {
		found, err := tx.Get(ctx, at.key)
		if err != nil {
			return err
		}
		if found[0] == nil {
			return failed
		}
		if _, err := catalog.Decode(*found[0]); err == nil {
			return failed
		}
		tx.Delete(at.key)
		return nil
	})
}

func (a *app) removed(at address, d catalog.Deleted, err error) error {
	return a.done(err, func() any {
		return struct {
			branchView
			keyView
			Recursive             bool   `json:"recursive"`
			VersionID             string `json:"version_id,omitempty"`
			DeleteMarker          bool   `json:"delete_marker,omitempty"`
			DeleteMarkerVersionID string `json:"delete_marker_version_id,omitempty"`
		}{viewPlace(at), viewKey(at.key), false, d.VersionID, d.DeleteMarker, d.DeleteMarkerVersionID}
	})
}
