// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
)

func (a *app) fsck() *cobra.Command {
	var quick bool
	cmd := &cobra.Command{
		Use: "fsck [REPO]...", Short: "Check that records and files are there, whole, and agree with each other",
		Long: "Check the whole store, or the repositories named: that records decode and agree with each other, and that every file of a tree is there and is what it was when it was written. Nothing is changed. " +
			"The store may be in use. Each line is a finding: damage, or a note of something that is in order, such as a deletion that was cut off. The last line sums up. With damage the exit code is 1; notes alone leave it 0.\n\n" +
			"In JSON each finding is an object with severity, kind and what, and with the names of what it is about; the last object has healthy.",
		RunE: func(cmd *cobra.Command, args []string) error {
			o := fsck.Options{Quick: quick}
			for _, arg := range args {
				id, err := parseRepo(arg)
				if err != nil {
					return err
				}
				o.Repositories = append(o.Repositories, id)
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				var counts fsck.Counts
				err := table(a.printer, s.Check(cmd.Context(), o, &counts), []string{"SEVERITY", "KIND", "WHERE", "WHAT"}, viewFinding, func(f fsck.Finding) []string {
					return []string{string(f.Severity), string(f.Kind), whereFound(f), oneLine(f.What)}
				})
				if err == nil {
					err = a.printChecked(counts)
				}
				if err == nil && counts.Damages > 0 {
					err = hinted{fmt.Errorf("fsck: %s", plural(counts.Damages, "thing is damaged", "things are damaged")), "docs/checking.md says what to do"}
				}
				return err
			})
		},
	}
	cmd.Flags().BoolVar(&quick, "quick", false, "only make sure that files of entries are there, and do not read them")
	return cmd
}

// whereFound names what a finding is about, as far as that is in a repository.
func whereFound(f fsck.Finding) string {
	name := string(f.Branch)
	switch {
	case name != "":
	case f.Tag != "":
		name = string(f.Tag)
	case f.Commit != "":
		name = shortID(f.Commit)
	}
	return orDash(strings.TrimSuffix(escape(string(f.Repository)+"/"+name), "/"))
}

func (a *app) printChecked(c fsck.Counts) error {
	if a.printer.json {
		return a.printer.object(struct {
			Healthy           bool  `json:"healthy"`
			Damages           int   `json:"damages"`
			Notes             int   `json:"notes"`
			Repositories      int   `json:"repositories"`
			Branches          int   `json:"branches"`
			Tags              int   `json:"tags"`
			Commits           int   `json:"commits"`
			ExpiredCommits    int   `json:"expired_commits"`
			UnreachedCommits  int   `json:"unreached_commits"`
			Moves             int   `json:"moves"`
			StagedEntries     int   `json:"staged_entries"`
			Files             int   `json:"files"`
			FileBytes         int64 `json:"file_bytes"`
			PartitionsWaiting int   `json:"partitions_waiting"`
		}{
			c.Damages == 0, c.Damages, c.Notes, c.Repositories, c.Branches, c.Tags, c.Commits, c.ExpiredCommits, c.UnreachedCommits, c.Moves, c.StagedEntries, c.Files, c.FileBytes, c.PartitionsWaiting,
		})
	}
	result := "healthy"
	if c.Damages > 0 {
		result = "damaged"
	}
	return a.printer.line(fmt.Sprintf("Checked %s, %s, %s, %s, %s, %s, %s: %s",
		plural(c.Repositories, "repository", "repositories"), plural(c.Branches, "branch", "branches"), plural(c.Tags, "tag", "tags"), plural(c.Commits, "commit", "commits"),
		plural(c.Moves, "move", "moves"), plural(c.StagedEntries, "staged entry", "staged entries"), plural(c.Files, "file", "files"), result))
}

func viewFinding(f fsck.Finding) any {
	view := struct {
		Severity   fsck.Severity         `json:"severity"`
		Kind       fsck.Kind             `json:"kind"`
		Repository graveler.RepositoryID `json:"repository,omitempty"`
		Branch     graveler.BranchID     `json:"branch,omitempty"`
		Tag        graveler.TagID        `json:"tag,omitempty"`
		Commit     graveler.CommitID     `json:"commit,omitempty"`
		File       string                `json:"file,omitempty"`
		Partition  string                `json:"partition,omitempty"`
		*keyView
		Count int64  `json:"count,omitempty"`
		Bytes int64  `json:"bytes,omitempty"`
		What  string `json:"what"`
	}{f.Severity, f.Kind, f.Repository, f.Branch, f.Tag, f.Commit, f.File, f.Partition, nil, f.Count, f.Bytes, f.What}
	if f.Key != "" {
		key := viewKey(graveler.Key(f.Key))
		view.keyView = &key
	}
	return view
}
