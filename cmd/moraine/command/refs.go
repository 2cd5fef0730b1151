// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/dump"
	"github.com/moraine-store/moraine/pkg/kv"
)

func (a *app) refs() *cobra.Command {
	g := group("refs", "Dump all records of a repository, and load them again", a.refsDump(), a.refsLoad())
	g.Long = "Dump all records of a repository as lines of JSON, and make a repository of them again: branches with their logs and uncommitted changes, also the logs of deleted branches, tags, commits and settings. " +
		"Range files are not in a dump; it says where they are."
	return g
}

func (a *app) refsDump() *cobra.Command {
	return &cobra.Command{
		Use: "dump REPO [FILE]", Short: "Write all records of a repository to a file, or to standard output",
		Long:    "Write all records of a repository to FILE, or to standard output where there is none or it is '-'. Others may go on working. FILE is there when the dump is whole, and not before.",
		Example: "moraine refs dump lake lake.dump\nmoraine refs dump lake | gzip > lake.dump.gz",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				write := func(w io.Writer) error {
					return dump.Write(cmd.Context(), s.Graveler, repo, "moraine "+programVersion(), w)
				}
				if file, ok := fileArg(args); ok {
					return writeFile(file, write)
				}
				return write(a.printer.w)
			})
		},
	}
}

func (a *app) refsLoad() *cobra.Command {
	var p dump.LoadParams
	cmd := &cobra.Command{
		Use: "load REPO [FILE]", Short: "Make a repository of a dump, and the store where there is none",
		Long: "Make the repository REPO, which must not exist, of the dump in FILE, or on standard input where there is none or it is '-'. It is seen when all of the dump has been read and checked, with every commit and every range file, and not before.\n\n" +
			"The range files are copied from where the dump says that they are, or from where --files does. With --in-place they stay where they are and become the repository's own: for a store whose records were lost. Nobody else may be using them then.",
		Example: "moraine refs load lake2 lake.dump\nmoraine refs load lake lake.dump --in-place",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err == nil {
				p.Namespace, err = lastingURL(p.Namespace)
			}
			if err == nil {
				p.Files, err = lastingURL(p.Files)
			}
			if err != nil {
				return err
			}
			if isMissing(p.Files) {
				return fmt.Errorf("--files: nothing at %s", kv.Redact(p.Files))
			}
			in := cmd.InOrStdin()
			if file, ok := fileArg(args); ok {
				f, err := os.Open(file)
				if err != nil {
					return err
				}
				defer func() { _ = f.Close() }() // it was only read
				in = f
			}
			return a.use(cmd.Context(), creating, func(s *moraine.Store) error {
				r, err := dump.Load(cmd.Context(), s.Graveler, repo, in, p)
				if errors.Is(err, graveler.ErrCorrupt) {
					err = hinted{err, "the range files must be where the dump says, or where --files does"}
				}
				return a.done(err, func() any { return viewRepository(r) })
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&p.Files, "files", "", "URL, or path in the block storage, of the range files, if they are not where the dump says")
	flags.BoolVar(&p.InPlace, "in-place", false, "leave the range files there and take them over")
	flags.StringVar(&p.Namespace, "namespace", "", "URL, or path in the block storage, below which they are copied")
	cmd.MarkFlagsMutuallyExclusive("in-place", "namespace")
	return cmd
}

// fileArg returns the file that the second argument names, if it is one.
func fileArg(args []string) (string, bool) {
	if len(args) < 2 || args[1] == "-" {
		return "", false
	}
	return args[1], true
}

// writeFile has a file written, so that what was there before stays until all of it is. What is not an ordinary file is written as it is.
func writeFile(path string, write func(io.Writer) error) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
