// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) repo() *cobra.Command {
	return group("repo", "Create, list, show and delete repositories", a.repoCreate(), a.repoList(), a.repoShow(), a.repoMetadata(), a.repoReadOnly(), a.repoDelete())
}

func (a *app) repoCreate() *cobra.Command {
	var p graveler.CreateRepositoryParams
	cmd := &cobra.Command{
		Use: "create REPO", Short: "Create a repository with a default branch, and the store where there is none",
		Example: "moraine repo create lake",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseRepo(args[0])
			if err == nil {
				err = graveler.ValidateBranchID(p.DefaultBranch)
			}
			if err == nil {
				p.Namespace, err = lastingURL(p.Namespace)
			}
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), creating, func(s *moraine.Store) error {
				r, err := s.CreateRepository(cmd.Context(), id, p)
				return a.done(err, func() any { return viewRepository(r) })
			})
		},
	}
	cmd.Flags().StringVar((*string)(&p.DefaultBranch), "default-branch", "main", "name of the first branch")
	cmd.Flags().StringVar(&p.Namespace, "namespace", "", "URL, or path in the block storage, below which the repository keeps its files")
	cmd.Flags().BoolVar(&p.ReadOnly, "read-only", false, "refuse all changes of what is in the repository")
	return cmd
}

func (a *app) repoList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the repositories, by name",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				return table(a.printer, s.ListRepositories(cmd.Context(), ""), []string{"NAME", "DEFAULT BRANCH", "CREATED", "STATE"}, viewRepository,
					func(r graveler.Repository) []string {
						return []string{string(r.ID), string(r.DefaultBranch), formatTime(r.CreatedAt), repositoryState(r)}
					})
			})
		},
	}
}

func (a *app) repoShow() *cobra.Command {
	return &cobra.Command{
		Use: "show REPO", Short: "Show the record of a repository",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				r, err := s.GetRepository(cmd.Context(), id)
				if err != nil {
					return err
				}
				return a.printer.record(viewRepository(r), "Name", string(r.ID), "UID", r.UID, "Default branch", string(r.DefaultBranch),
					"Created", formatTime(r.CreatedAt), "State", repositoryState(r), "Namespace", r.Namespace, "Partition", r.Partition())
			})
		},
	}
}

func (a *app) repoDelete() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use: "delete REPO --force", Short: "Delete a repository with everything in it",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			if force {
				return a.use(cmd.Context(), writing, func(s *moraine.Store) error { return s.DeleteRepository(cmd.Context(), id) })
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				if _, err := s.GetRepository(cmd.Context(), id); err != nil {
					return err
				}
				return hinted{
					usageError{fmt.Sprintf("delete repository %s: all its branches, commits, tags and files would be lost", id)},
					"use --force to delete them",
				}
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "delete it indeed")
	return cmd
}

func repositoryState(r graveler.Repository) string {
	switch {
	case r.State == graveler.RepositoryCreating:
		return "creating"
	case r.State == graveler.RepositoryInDeletion:
		return "deleting"
	case r.ReadOnly:
		return "read-only"
	default:
		return "active"
	}
}

func viewRepository(r graveler.Repository) any {
	return struct {
		Name          graveler.RepositoryID `json:"name"`
		UID           string                `json:"uid"`
		DefaultBranch graveler.BranchID     `json:"default_branch"`
		CreatedAt     time.Time             `json:"created_at"`
		State         string                `json:"state"`
		ReadOnly      bool                  `json:"read_only"`
		Namespace     string                `json:"namespace"`
		Partition     string                `json:"partition"`
	}{r.ID, r.UID, r.DefaultBranch, r.CreatedAt.UTC(), repositoryState(r), r.ReadOnly, r.Namespace, r.Partition()}
}
