// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) tag() *cobra.Command {
	return group("tag", "Create, list, show and delete tags", a.tagCreate(), a.tagList(), a.tagShow(), a.tagDelete())
}

func (a *app) tagCreate() *cobra.Command {
	return &cobra.Command{
		Use: "create REPO/TAG REPO/REF", Short: "Give the commit that REF names a name that stays",
		Example: "moraine tag create lake/v1.0 lake/main",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			tag, err := parseTag(args[0])
			if err != nil {
				return err
			}
			ref, err := parseRef(args[1], "REPO/REF", "lake/main")
			if err == nil {
				err = sameRepository(tag, ref)
			}
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				t, err := s.CreateTag(cmd.Context(), tag.repo, graveler.TagID(tag.ref), ref.ref)
				return a.done(err, func() any { return viewTag(t) })
			})
		},
	}
}

func (a *app) tagList() *cobra.Command {
	var contains string
	cmd := &cobra.Command{
		Use: "list REPO", Short: "List the tags of a repository, by name",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				tags := s.ListTags(cmd.Context(), repo, "")
				if cmd.Flags().Changed("contains") {
					tags = s.TagsContaining(cmd.Context(), repo, contains, "")
				}
				err := table(a.printer, tags, []string{"NAME", "COMMIT"}, viewTag,
					func(t graveler.Tag) []string { return []string{string(t.ID), shortID(t.Commit)} })
				return withoutRepository(err, address{repo: repo}, contains)
			})
		},
	}
	cmd.Flags().StringVar(&contains, "contains", "", "only those that reach the commit that this ref, of the same repository, names")
	return cmd
}

func (a *app) tagShow() *cobra.Command {
	return &cobra.Command{
		Use: "show REPO/TAG", Short: "Show which commit a tag names",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseTag(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				t, err := s.GetTag(cmd.Context(), at.repo, graveler.TagID(at.ref))
				if err != nil {
					return err
				}
				return a.printer.record(viewTag(t), "Name", string(t.ID), "Commit", string(t.Commit))
			})
		},
	}
}

func (a *app) tagDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete REPO/TAG", Short: "Delete a tag; the commit stays",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseTag(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				return s.DeleteTag(cmd.Context(), at.repo, graveler.TagID(at.ref))
			})
		},
	}
}

func parseTag(arg string) (address, error) {
	at, err := parseRef(arg, "REPO/TAG", "lake/v1.0")
	if err == nil {
		err = graveler.ValidateTagID(graveler.TagID(at.ref))
	}
	return at, err
}

func viewTag(t graveler.Tag) any {
	return struct {
		Name   graveler.TagID    `json:"name"`
		Commit graveler.CommitID `json:"commit"`
	}{t.ID, t.Commit}
}
