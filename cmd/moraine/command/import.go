// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/cmd/moraine/internal/fileimport"
	"github.com/moraine-store/moraine/cmd/moraine/internal/listing"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// importFlags are the flags of import as they were given.
type importFlags struct {
	commitFlags
	commit, replace, allowDirty, relative bool
	withoutVersions                       bool
	listing, format, schema               string
}

func (a *app) importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "import [DIR] REPO/BRANCH:PREFIX", Short: "Write an entry for every file of a directory, or line of a listing",
		Long: "Write an entry for every file below DIR to a branch: address, size, modification time and SHA-256. The key is PREFIX, which may be empty, and the path below DIR. " +
			"What the branch has besides stays. Symbolic links and special files are skipped; the first ten are named, with --verbose all. If something cannot be read, the rest is written but nothing " +
			"committed; the first twenty are named. An import that was cut off goes on when it is run again.\n\n" +
			"With --listing, write an entry for every line of a file (- is standard input) instead: one object per line as JSON (jsonl), CSV with a line that names the columns (csv), or a data file of Amazon S3 Inventory " +
			"(s3-inventory); compressed with gzip or not, in any order. The keys must begin with PREFIX, or --relative puts it in front of them. Where a key comes twice the last line counts.\n\n" +
			"With --replace, the keys with PREFIX that the directory or listing does not have disappear; an empty directory or listing is refused then.\n\n" +
			"--listing and --replace make one commit, of all or of nothing, without anything uncommitted in between.\n\n" +
			"An import keeps no version of what it replaces. Where the repository keeps versions it is refused, unless --without-versions says that this is as wished; where it has object lock it is refused in any case. " +
			"Noncurrent versions and uploads stay as they are, whatever PREFIX is.",
		Example: `moraine import photos lake/main:photos/ --commit -m "Photos of January"` + "\n" +
			"moraine import photos lake/main:photos/ --replace\n" +
			"moraine import --listing objects.jsonl lake/main:\n" +
			`moraine import --listing data.csv.gz --format s3-inventory --schema "Bucket, Key, Size, ETag" lake/main:bucket/ --relative --replace -m Inventory`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("listing") {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.runImport(cmd, args, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.listing, "listing", "", "import the lines of this file; - is standard input")
	flags.StringVar(&f.format, "format", "", "format of the listing: jsonl, csv or s3-inventory (default: by the end of its name)")
	flags.StringVar(&f.schema, "schema", "", "columns of an inventory, as the fileSchema of its manifest names them (default \""+listing.DefaultSchema+"\")")
	flags.BoolVar(&f.relative, "relative", false, "put PREFIX in front of the keys of the listing")
	flags.BoolVar(&f.replace, "replace", false, "remove the keys with PREFIX that are not imported")
	flags.BoolVar(&f.allowDirty, "allow-dirty", false, "keep uncommitted changes of the branch, on top of the result")
	flags.BoolVar(&f.withoutVersions, "without-versions", false, "in a repository that keeps versions: replace current objects without keeping them")
	flags.BoolVar(&f.commit, "commit", false, "commit the branch afterwards; needs a message")
	f.define(flags, "what the commit is about (default, of a listing or with --replace: what was imported)")
	return cmd
}

func (a *app) runImport(cmd *cobra.Command, args []string, f importFlags) error {
	target := args[len(args)-1]
	at, err := parseKeys(target, "REPO/BRANCH:PREFIX", "lake/main:photos/")
	if err == nil {
		err = graveler.ValidateBranchID(at.branch())
	}
	if err == nil {
		err = f.check(cmd.Flags())
	}
	if err != nil {
		return err
	}
	if f.params, err = f.read(); err != nil {
		return err
	}
	if cmd.Flags().Changed("listing") {
		return a.importListing(cmd.Context(), cmd.InOrStdin(), at, f)
	}
	return a.useBranch(cmd.Context(), writing, at, func(s *moraine.Store) error {
		i := importing{app: a, store: s, dir: args[0], at: at}
		if f.replace {
			return i.replace(cmd.Context(), f)
		}
		err := checkVersions(cmd.Context(), s, at, f)
		if err == nil && f.commit {
			err = i.checkCommit(cmd.Context(), f.params)
		}
		if err == nil {
			err = i.stage(cmd.Context(), f)
		}
		if err != nil {
			return fmt.Errorf("import %s %s: %w", escape(args[0]), escape(strings.TrimSuffix(target, ":")), err)
		}
		id := graveler.CommitID("")
		if f.commit {
			if id, err = i.commit(cmd.Context(), f.params); err != nil {
				return err
			}
		}
		return i.print(id)
	})
}

// check refuses flags that do not go together.
func (f *importFlags) check(flags *pflag.FlagSet) error {
	once := f.replace || flags.Changed("listing")
	for _, rule := range []struct {
		flags  []string
		allows bool
		needs  string
	}{
		{[]string{"format", "schema", "relative"}, flags.Changed("listing"), "--listing"},
		{[]string{"allow-dirty"}, once, "--listing or --replace"},
		{[]string{"meta", "allow-empty", "committer"}, once || f.commit, "--commit"},
	} {
		for _, name := range rule.flags {
			if flags.Changed(name) && !rule.allows {
				return usageError{fmt.Sprintf("--%s needs %s", name, rule.needs)}
			}
		}
	}
	if !once && f.commit != (f.params.Message != "") {
		return usageError{"--commit and --message belong together"}
	}
	return nil
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

// checkCommit refuses a commit that could not be made before anything is staged for it.
func (i *importing) checkCommit(ctx context.Context, p graveler.CommitParams) error {
	if err := p.Validate(); err != nil {
		return err
	}
	b, err := i.store.GetBranch(ctx, i.at.repo, i.at.branch())
	if err == nil && b.Protected&(graveler.ActionStage|graveler.ActionCommit) != 0 {
		err = fmt.Errorf("%w: %s is forbidden", graveler.ErrProtected, strings.Join(b.Protected.Names(), ", "))
	}
	return err
}

// stage writes the files as uncommitted changes.
func (i *importing) stage(ctx context.Context, f importFlags) error {
	err := i.walk(ctx, func(ctx context.Context, entries []graveler.Entry) error {
		if err := checkVersions(ctx, i.store, i.at, f); err != nil { // again, since to read the files may take hours
			return err
		}
		i.staging = true
		return i.store.SetMany(ctx, i.at.repo, i.at.branch(), entries)
	})
	return i.explain(ctx, err)
}

// walk passes an entry for each file on.
func (i *importing) walk(ctx context.Context, stage func(context.Context, []graveler.Entry) error) error {
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
		Stage:    stage,
		Counted:  func(files int, bytes int64) { bar.begin(fmt.Sprintf("%d files", files), bytes) },
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
	return err
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
