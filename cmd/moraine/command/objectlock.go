// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) objectLock() *cobra.Command {
	g := group("object-lock", "Keep versions of objects from being removed", a.objectLockGet(), a.objectLockSet(), a.objectLockRetain(), a.objectLockHold())
	g.Long = "Keep versions of objects from being removed: until a time (a retention), or until that is taken back (a legal hold). The repository must keep versions. A locked version can still become noncurrent, by a put or a removal of its key; what is barred " +
		"is to remove it for good. A retention in GOVERNANCE mode can be lifted by those who say so (--bypass-governance), one in COMPLIANCE mode by nobody.\n\n" +
		"A merge, revert, import or reset that would take a locked version from a branch is refused as well. Who may delete a branch, or the repository, can do that all the same."
	return g
}

// lockConfigView is the object lock of a repository in JSON.
type lockConfigView struct {
	Repository graveler.RepositoryID `json:"repository"`
	Enabled    bool                  `json:"enabled"`
	Mode       string                `json:"default_mode,omitempty"`
	Days       int                   `json:"default_days,omitempty"`
	Years      int                   `json:"default_years,omitempty"`
}

func viewLockConfig(repo graveler.RepositoryID, c catalog.ObjectLockConfig) lockConfigView {
	return lockConfigView{repo, c.Enabled, c.Mode.String(), c.Days, c.Years}
}

func (a *app) objectLockGet() *cobra.Command {
	return &cobra.Command{
		Use: "get REPO", Short: "Show whether object lock is enabled, and what new versions get",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), reading, address{repo: repo}, func(c *catalog.Catalog) error {
				config, err := c.ObjectLock(cmd.Context(), repo)
				if err != nil {
					return err
				}
				byDefault := "-"
				switch mode := config.Mode.String(); {
				case config.Days > 0:
					byDefault = fmt.Sprintf("%s for %s", mode, plural(config.Days, "day", "days"))
				case config.Years > 0:
					byDefault = fmt.Sprintf("%s for %s", mode, plural(config.Years, "year", "years"))
				}
				return a.printer.record(viewLockConfig(repo, config), "Object lock", "enabled", "Default", byDefault)
			})
		},
	}
}

func (a *app) objectLockSet() *cobra.Command {
	var byDefault string
	cmd := &cobra.Command{
		Use: "set REPO", Short: "Enable object lock, and say what new versions get",
		Long: "Enable object lock, which cannot be disabled again. With --default each new version is retained for so long, unless it is put with a lock of its own; without it, new versions get no retention by themselves. " +
			"Versions that there are stay as they are.",
		Example: "moraine object-lock set lake\nmoraine object-lock set lake --default GOVERNANCE:30d",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			config := catalog.ObjectLockConfig{Enabled: true}
			if cmd.Flags().Changed("default") {
				mode, time, _ := strings.Cut(byDefault, ":")
				var ok bool
				config.Days, config.Years, ok = parseSpan(time)
				if config.Mode = parseLockMode(mode); !ok || config.Mode == catalog.LockNone {
					return usageError{fmt.Sprintf("--default %q: expected GOVERNANCE or COMPLIANCE, and for how long, such as GOVERNANCE:30d or COMPLIANCE:7y", byDefault)}
				}
			}
			return a.useObjects(cmd.Context(), writing, address{repo: repo}, func(c *catalog.Catalog) error {
				return a.done(c.SetObjectLock(cmd.Context(), repo, config), func() any { return viewLockConfig(repo, config) })
			})
		},
	}
	cmd.Flags().StringVar(&byDefault, "default", "", "MODE:TIME: GOVERNANCE or COMPLIANCE, and for how long, such as 30d or 7y")
	return cmd
}

func (a *app) objectLockRetain() *cobra.Command {
	var version string
	var bypass bool
	cmd := &cobra.Command{
		Use: "retain REPO/BRANCH:KEY MODE:UNTIL|none", Short: "Retain a version until a time, or end its retention",
		Long: "Retain a version until a time: " + lockForm + ". A retention that has not ended can be made longer; to make it shorter, to change its mode or to end it (none) takes --bypass-governance, and is possible in GOVERNANCE mode only.",
		Example: "moraine object-lock retain lake/main:data/x.csv COMPLIANCE:2030-12-31\n" +
			"moraine object-lock retain lake/main:data/x.csv none --bypass-governance",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var r catalog.Retention
			at, err := parseObject(args[0])
			if err == nil && args[1] != "none" {
				r, err = parseRetain("retention", args[1], time.Now())
			}
			if err != nil {
				return err
			}
			return a.editObject(cmd, at, version, func(c *catalog.Catalog) error {
				return c.PutRetention(cmd.Context(), at.bucket(), string(at.key), version, r, bypass)
			})
		},
	}
	defineVersion(cmd.Flags(), &version, "the version with this ID, in place of the current one")
	cmd.Flags().BoolVar(&bypass, "bypass-governance", false, "make weaker what GOVERNANCE mode retains")
	return cmd
}

func (a *app) objectLockHold() *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use: "hold REPO/BRANCH:KEY on|off", Short: "Put a version under legal hold, or take that back",
		Example: "moraine object-lock hold lake/main:data/x.csv on",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseObject(args[0])
			if err == nil && args[1] != "on" && args[1] != "off" {
				err = usageError{fmt.Sprintf("%q: expected on or off", args[1])}
			}
			if err != nil {
				return err
			}
			return a.editObject(cmd, at, version, func(c *catalog.Catalog) error {
				return c.PutLegalHold(cmd.Context(), at.bucket(), string(at.key), version, args[1] == "on")
			})
		},
	}
	defineVersion(cmd.Flags(), &version, "the version with this ID, in place of the current one")
	return cmd
}

// parseObject reads REPO/BRANCH:KEY.
func parseObject(arg string) (address, error) {
	at, err := parseEntry(arg, "REPO/BRANCH:KEY")
	if err == nil {
		err = graveler.ValidateBranchID(at.branch())
	}
	return at, err
}

// editObject changes what is said about a version, and prints it as it is then, in JSON.
func (a *app) editObject(cmd *cobra.Command, at address, version string, edit func(c *catalog.Catalog) error) error {
	return a.useObjects(cmd.Context(), writing, at, func(c *catalog.Catalog) error {
		if err := edit(c); err != nil || !a.printer.json {
			return err
		}
		o, err := c.Get(cmd.Context(), at.bucket(), string(at.key), catalog.GetParams{VersionID: version})
		return a.printPut(at, o, err)
	})
}
