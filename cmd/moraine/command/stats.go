// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"iter"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) stats() *cobra.Command {
	return &cobra.Command{
		Use: "stats [REPO]...", Short: "Show how much is in repositories",
		Long: "Show for every repository, or for those named, how many branches, tags, commits and moves of branches there are; how many staged entries, and items that they are under (see 'moraine status'); how many entries " +
			"the head of the default branch has, with the size of their keys and records; and how many files there are in the block storage, of all commits, with their size. Without names, the last line is of the whole store.",
		RunE: func(cmd *cobra.Command, args []string) error {
			var named []graveler.RepositoryID
			for _, arg := range args {
				id, err := parseRepo(arg)
				if err != nil {
					return err
				}
				named = append(named, id)
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				header := []string{"REPOSITORY", "BRANCHES", "TAGS", "COMMITS", "MOVES", "STAGED", "ITEMS", "ENTRIES", "SIZE", "FILES", "STORED"}
				return table(a.printer, a.allStats(cmd.Context(), s, named), header, viewStats, func(r statsRow) []string {
					name := string(r.Repository)
					if r.repositories > 0 {
						name = "(" + plural(r.repositories, "repository", "repositories") + ")"
					}
					return []string{
						name, count(r.Branches), count(r.Tags), count(r.Commits), count(r.Moves), count(r.StagedEntries), count(r.Items),
						count(int(r.Entries)), formatSize(int64(r.Bytes)), count(r.Files), formatSize(r.FileBytes),
					}
				})
			})
		},
	}
}

// statsRow is the numbers of one repository, or the sums of several.
type statsRow struct {
	graveler.RepositoryStats
	repositories int
}

// allStats yields the numbers of the repositories named; if none is, of all that can be used, and then their sums.
func (a *app) allStats(ctx context.Context, s *moraine.Store, named []graveler.RepositoryID) iter.Seq2[statsRow, error] {
	return func(yield func(statsRow, error) bool) {
		for _, id := range named {
			stats, err := s.Stats(ctx, id)
			if !yield(statsRow{RepositoryStats: stats}, err) || err != nil {
				return
			}
		}
		if len(named) > 0 {
			return
		}
		var sum statsRow
		for r, err := range s.ListRepositories(ctx, "") {
			if err == nil && r.State != graveler.RepositoryActive {
				a.note("repository %s is left out: it is %s", r.ID, repositoryState(r))
				continue
			}
			row := statsRow{}
			if err == nil {
				row.RepositoryStats, err = s.Stats(ctx, r.ID)
			}
			if !yield(row, err) || err != nil {
				return
			}
			sum.add(row)
		}
		if sum.repositories > 0 {
			yield(sum, nil)
		}
	}
}

func (r *statsRow) add(o statsRow) {
	r.repositories++
	r.Branches += o.Branches
	r.Tags += o.Tags
	r.Commits += o.Commits
	r.Moves += o.Moves
	r.StagedEntries += o.StagedEntries
	r.Items += o.Items
	r.Entries += o.Entries
	r.Bytes += o.Bytes
	r.Files += o.Files
	r.FileBytes += o.FileBytes
}

func viewStats(r statsRow) any {
	return struct {
		Repository    graveler.RepositoryID `json:"repository,omitempty"`
		Repositories  int                   `json:"repositories,omitempty"`
		Branches      int                   `json:"branches"`
		Tags          int                   `json:"tags"`
		Commits       int                   `json:"commits"`
		Moves         int                   `json:"moves"`
		StagedEntries int                   `json:"staged_entries"`
		Items         int                   `json:"items"`
		Entries       uint64                `json:"entries"`
		Bytes         uint64                `json:"bytes"`
		Files         int                   `json:"files"`
		FileBytes     int64                 `json:"file_bytes"`
	}{
		r.Repository, r.repositories, r.Branches, r.Tags, r.Commits, r.Moves, r.StagedEntries, r.Items, r.Entries, r.Bytes, r.Files, r.FileBytes,
	}
}
