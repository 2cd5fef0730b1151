// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/pkg/catalog"
)

func (a *app) tagging() *cobra.Command {
	g := group("tagging", "Show or replace the tags of an object", a.taggingGet(), a.taggingSet(), a.taggingRm())
	g.Long = "Show or replace the tags of an object, which are no tags of the repository ('moraine tag'). They are changed in place: the version and its times stay. There can be ten."
	return g
}

func (a *app) taggingGet() *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use: "get REPO/REF:KEY", Short: "List the tags of an object",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseEntry(args[0], "REPO/REF:KEY")
			if err != nil {
				return err
			}
			return a.useObjects(cmd.Context(), reading, at, func(c *catalog.Catalog) error {
				tags, err := c.Tagging(cmd.Context(), at.bucket(), string(at.key), version)
				if err != nil {
					return err
				}
				return table(a.printer, sortedTags(tags), []string{"TAG", "VALUE"}, func(t tagLine) any { return t },
					func(t tagLine) []string { return []string{escape(t.Tag), escape(t.Value)} })
			})
		},
	}
	defineVersion(cmd.Flags(), &version, "the version with this ID, in place of the current one")
	return cmd
}

// tagLine is a tag of an object.
type tagLine struct {
	Tag   string `json:"tag"`
	Value string `json:"value"`
}

func sortedTags(tags map[string]string) iter.Seq2[tagLine, error] {
	return func(yield func(tagLine, error) bool) {
		for _, k := range slices.Sorted(maps.Keys(tags)) {
			if !yield(tagLine{k, tags[k]}, nil) {
				return
			}
		}
	}
}

func (a *app) taggingSet() *cobra.Command {
	return a.changeTags("set REPO/BRANCH:KEY TAG=VALUE...", "Replace the tags of an object", "moraine tagging set lake/main:data/x.csv kind=raw origin=crm", cobra.MinimumNArgs(2))
}

func (a *app) taggingRm() *cobra.Command {
	return a.changeTags("rm REPO/BRANCH:KEY", "Remove all tags of an object", "moraine tagging rm lake/main:data/x.csv", cobra.ExactArgs(1))
}

func (a *app) changeTags(use, short, example string, count cobra.PositionalArgs) *cobra.Command {
	var version string
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: count,
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseObject(args[0])
			tags, bad := readPairs("tag", args[1:])
			if err = cmp.Or(err, bad); err != nil {
				return err
			}
			return a.editObject(cmd, at, version, func(c *catalog.Catalog) error {
				return c.PutTagging(cmd.Context(), at.bucket(), string(at.key), version, tags)
			})
		},
	}
	defineVersion(cmd.Flags(), &version, "the version with this ID, in place of the current one")
	return cmd
}
