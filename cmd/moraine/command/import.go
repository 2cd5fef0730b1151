// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/cmd/moraine/internal/fileimport"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) importCommand() *cobra.Command {
	var commit bool
	p := graveler.CommitParams{}
	cmd := &cobra.Command{
		Use: "import DIR REPO/BRANCH:PREFIX", Short: "Write an entry for every file of a directory",
		Long: "Write an entry for every file below DIR to a branch: address, size, modification time and SHA-256. The key is PREFIX, which may be empty, and the path below DIR. " +
			"What the branch has besides stays. Symbolic links and special files are skipped; the first ten are named, with --verbose all. If something cannot be read, the rest is written but nothing " +
			"committed; the first twenty are named. An import that was cut off goes on when it is run again.",
		Example: `moraine import photos lake/main:photos/ --commit -m "Photos of January"`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseKeys(args[1], "REPO/BRANCH:PREFIX", "lake/main:photos/")
			if err == nil {
				err = graveler.ValidateBranchID(at.branch())
			}
			if err != nil {
				return err
			}
			if commit != (p.Message != "") {
				return usageError{"--commit and --message belong together"}
			}
			p.Committer = os.Getenv("USER")
			return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
				i := importing{app: a, store: s, dir: args[0], at: at}
				if err := i.run(cmd.Context()); err != nil {
					return fmt.Errorf("import %s %s: %w", escape(args[0]), escape(strings.TrimSuffix(args[1], ":")), err)
				}
				id := graveler.CommitID("")
				if commit {
					if id, err = i.commit(cmd.Context(), p); err != nil {
						return err
					}
				}
				return i.print(id)
			})
		},
	}
	cmd.Flags().BoolVar(&commit, "commit", false, "commit the branch afterwards; needs a message")
	cmd.Flags().StringVarP(&p.Message, "message", "m", "", "what the commit is about")
	return cmd
}

// importing is one import under way.
type importing struct {
	app     *app
	store   *moraine.Store
	dir     string
	at      address
	staging bool // something may have been staged
	report  fileimport.Report
}

func (i *importing) run(ctx context.Context) error {
	// Before hours are spent on hashing.
	if _, err := i.store.GetBranch(ctx, i.at.repo, i.at.branch()); err != nil {
		return err
	}
	repo, err := i.store.GetRepository(ctx, i.at.repo)
	if err != nil {
		return err
	}
	if repo.ReadOnly {
		return fmt.Errorf("repository %s: %w", repo.ID, graveler.ErrReadOnly)
	}
	bar := i.app.newProgress()
	defer bar.end()
	failed, skipped := i.app.newNaming(bar, 20), i.app.newNaming(bar, 10)
	files := fileimport.Import{
		Dir: i.dir, Prefix: string(i.at.key), Skip: i.ownFiles(repo),
		Stage: func(ctx context.Context, entries []graveler.Entry) error {
			i.staging = true
			return i.store.SetMany(ctx, i.at.repo, i.at.branch(), entries)
		},
		Counted:  bar.begin,
		Progress: bar.advance,
		Failed: func(path string, problem error) {
			failed.print(fmt.Sprintf("cannot import %s: %s", escape(path), oneLine(problem.Error())))
		},
		Skipped: func(path, what string) {
			if what == fileimport.Own && !i.app.verbose || i.app.quiet {
				return // as expected, or as wished
			}
			skipped.print(fmt.Sprintf("skipped %s: %s", escape(path), what))
		},
	}
	i.report, err = files.Run(ctx)
	failed.end("that cannot be imported")
	skipped.end("skipped")
	return i.explain(ctx, err)
}

// ownFiles are the parts of the store that could lie in the directory.
func (i *importing) ownFiles(repo graveler.Repository) []string {
	var paths []string
	for _, url := range []string{i.app.store, i.app.blocks, repo.Namespace} {
		if path, ok := localPath(url); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// explain says what a failed import leaves behind.
func (i *importing) explain(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return hinted{fmt.Errorf("interrupted: %d files are staged, nothing was committed", i.report.Files), "run it again to go on"}
	case errors.Is(err, syscall.ENOSPC):
		return hinted{i.partly(err), "make room on the disk and run it again to go on"}
	case errors.Is(err, fileimport.ErrIncomplete):
		return hinted{fmt.Errorf("%w: %d files are staged, nothing was committed", err, i.report.Files), "make them readable and run it again"}
	case i.staging:
		return hinted{i.partly(err), "run it again to go on"}
	default:
		return err
	}
}

func (i *importing) partly(err error) error {
	return fmt.Errorf("%w: %d files had been staged, nothing was committed", err, i.report.Files)
}

// commit returns "" where nothing changed.
func (i *importing) commit(ctx context.Context, p graveler.CommitParams) (graveler.CommitID, error) {
	result, err := i.store.Commit(ctx, i.at.repo, i.at.branch(), p)
	if errors.Is(err, graveler.ErrNoChanges) {
		i.app.note("nothing changed: no commit was made")
		return "", nil
	}
	return result.Commit.ID, err
}

func (i *importing) print(commit graveler.CommitID) error {
	view := struct {
		Files   int               `json:"files"`
		Bytes   int64             `json:"bytes"`
		Skipped int               `json:"skipped"`
		Commit  graveler.CommitID `json:"commit,omitempty"`
	}{i.report.Files, i.report.Bytes, i.report.Skipped, commit}
	fields := []string{"Files", strconv.Itoa(view.Files), "Size", formatSize(view.Bytes), "Skipped", strconv.Itoa(view.Skipped)}
	if commit != "" {
		fields = append(fields, "Commit", string(commit))
	}
	return i.app.printer.record(view, fields...)
}
