// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) versioning() *cobra.Command {
	g := group("versioning", "Keep the versions of objects that are overwritten or removed",
		a.versioningGet(),
		a.setVersioning("enable", "Keep every version from now on", catalog.VersioningEnabled),
		a.setVersioning("suspend", "Make no more versions, and keep those that there are", catalog.VersioningSuspended))
	g.Long = "Keep the versions of objects that are overwritten or removed, as a bucket of S3 does: on every branch of a repository, beside its commits. Versioning that was enabled can be suspended, never turned off. " +
		"Where it is suspended, a put replaces the version that was put last while no versions were kept (its ID is null), and keeps all others."
	return g
}

// versioningView is the versioning of a repository in JSON.
type versioningView struct {
	Repository graveler.RepositoryID `json:"repository"`
	Versioning catalog.Versioning    `json:"versioning"`
}

func (a *app) versioningGet() *cobra.Command {
	return &cobra.Command{
		Use: "get REPO", Short: "Show whether versions are kept: Off, Enabled or Suspended",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), reading, address{repo: repo}, func(c *catalog.Catalog) error {
				v, err := c.Versioning(cmd.Context(), repo)
				if err != nil {
					return err
				}
				v = cmp.Or(v, "Off")
				return a.printer.record(versioningView{repo, v}, "Versioning", string(v))
			})
		},
	}
}

func (a *app) setVersioning(name, short string, v catalog.Versioning) *cobra.Command {
	return &cobra.Command{
		Use: name + " REPO", Short: short,
		Example: "moraine versioning " + name + " lake",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), writing, address{repo: repo}, func(c *catalog.Catalog) error {
				return a.done(c.SetVersioning(cmd.Context(), repo, v), func() any { return versioningView{repo, v} })
			})
		},
	}
}
