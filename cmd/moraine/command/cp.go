// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// cpFlags are the flags of cp as they were given.
type cpFlags struct {
	objectFlags
	version                              string
	replaceMeta, replaceTags, onlyAbsent bool
}

func (a *app) cp() *cobra.Command {
	var f cpFlags
	cmd := &cobra.Command{
		Use: "cp REPO/REF:KEY REPO/BRANCH:KEY", Short: "Copy the record of an object",
		Long: "Write what an object is like to another key, branch or repository, as an uncommitted change. No bytes are copied: within a repository both objects name the same bytes, and in another one the copy needs bytes " +
			"of its own, which --address names.\n\n" +
			"The copy has everything but the lock, and is modified now. --replace-metadata takes content type and metadata from the flags and not from the source, --replace-tags the tags. " +
			"To copy an object onto itself without a change is refused.",
		Example: "moraine cp lake/main:data/x.csv lake/main:old/x.csv\nmoraine cp lake/v1.0:data/x.csv lake/main:data/x.csv --replace-tags --tag origin=v1.0\nmoraine cp lake/main:x pond/main:x --address s3://pond/x",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := parseEntry(args[0], "REPO/REF:KEY")
			if err != nil {
				return err
			}
			to, err := parseEntry(args[1], "REPO/BRANCH:KEY")
			if err == nil {
				err = graveler.ValidateBranchID(to.branch())
			}
			var p catalog.CopyParams
			if err == nil {
				p, err = f.params(cmd)
			}
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), writing, to, func(c *catalog.Catalog) error {
				o, err := c.Copy(cmd.Context(), from.bucket(), string(from.key), to.bucket(), string(to.key), p)
				return a.printPut(to, o, err)
			})
		},
	}
	flags := cmd.Flags()
	defineVersion(flags, &f.version, "copy the version with this ID")
	f.define(flags)
	flags.BoolVar(&f.replaceMeta, "replace-metadata", false, "take --content-type and --meta in place of the source's")
	flags.BoolVar(&f.replaceTags, "replace-tags", false, "take --tag in place of the source's tags")
	flags.BoolVar(&f.onlyAbsent, "if-absent", false, "only where there is no object yet")
	return cmd
}

func (f *cpFlags) params(cmd *cobra.Command) (p catalog.CopyParams, err error) {
	if err := f.check(cmd.Flags()); err != nil {
		return p, err
	}
	p = catalog.CopyParams{
		VersionID: f.version, Address: f.address, StorageClass: f.storageClass, Target: onlyNew(f.onlyAbsent),
		ReplaceMetadata: f.replaceMeta, ContentType: f.contentType, ReplaceTags: f.replaceTags,
	}
	if p.Metadata, p.Tags, err = f.pairs(); err != nil {
		return p, err
	}
	p.Lock, err = f.locked(cmd)
	return p, err
}

// check refuses what would be ignored.
func (f *cpFlags) check(flags *pflag.FlagSet) error {
	for _, rule := range []struct {
		flag, needs string
		given       bool
	}{
		{"content-type", "replace-metadata", f.replaceMeta},
		{"meta", "replace-metadata", f.replaceMeta},
		{"tag", "replace-tags", f.replaceTags},
	} {
		if flags.Changed(rule.flag) && !rule.given {
			return usageError{fmt.Sprintf("--%s needs --%s", rule.flag, rule.needs)}
		}
	}
	return nil
}
