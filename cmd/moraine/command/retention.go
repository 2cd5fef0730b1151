// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) retention() *cobra.Command {
	return group("retention", "Say how much of the past is kept, and remove the rest", a.retentionSet(), a.retentionGet(), a.retentionRun())
}

func (a *app) retentionSet() *cobra.Command {
	var keep []string
	var off bool
	cmd := &cobra.Command{
		Use: "set REPO (--keep PATTERN=DAYS... | --off)", Short: "Say how many days of the history of which branches are kept",
		Long: "Say how many days of the history of which branches are kept; 'forever' stands for all of it. The rules replace those that there were. The first whose pattern matches a branch's name counts, and of a branch that none matches everything is " +
			"kept. In a pattern '*' stands for any characters, slashes included, and '?' for one. Tags are under the rule for '*', if there is one.\n\n" +
			"What branches, tags and pins name is kept in any case, and so is what is uncommitted. Nothing is removed before 'moraine retention run'.",
		Example: "moraine retention set lake --keep 'release/*=forever' --keep '*=30'\nmoraine retention set lake --off",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			if (len(keep) == 0) != off {
				return usageError{"give either --keep or --off"}
			}
			var rules []graveler.RetentionRule
			for _, text := range keep {
				rule, err := parseRetention(text)
				if err != nil {
					return err
				}
				rules = append(rules, rule)
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error { return s.SetRetention(cmd.Context(), repo, rules) })
		},
	}
	cmd.Flags().StringArrayVar(&keep, "keep", nil, "PATTERN=DAYS, or PATTERN=forever (repeatable, in the order in which they are tried)")
	cmd.Flags().BoolVar(&off, "off", false, "remove all rules: everything is kept")
	return cmd
}

func parseRetention(text string) (graveler.RetentionRule, error) {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return graveler.RetentionRule{}, usageError{fmt.Sprintf("--keep %s: expected PATTERN=DAYS", text)}
	}
	rule := graveler.RetentionRule{Pattern: text[:i]}
	if text[i+1:] == "forever" {
		return rule, nil
	}
	days, err := strconv.Atoi(text[i+1:])
	if err != nil || days < 1 {
		return graveler.RetentionRule{}, usageError{fmt.Sprintf("--keep %s: days are a number from 1 on, or 'forever'", text)}
	}
	rule.Days = days
	return rule, nil
}

func (a *app) retentionGet() *cobra.Command {
	return &cobra.Command{
		Use: "get REPO", Short: "List the rules, in the order in which they are tried",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				rules, err := s.Retention(cmd.Context(), repo)
				if err != nil {
					return err
				}
				return table(a.printer, func(yield func(graveler.RetentionRule, error) bool) {
					for _, r := range rules {
						if !yield(r, nil) {
							return
						}
					}
				}, []string{"BRANCHES", "DAYS"}, viewRetention, func(r graveler.RetentionRule) []string {
					if r.Days == 0 {
						return []string{r.Pattern, "forever"}
					}
					return []string{r.Pattern, strconv.Itoa(r.Days)}
				})
			})
		},
	}
}

func viewRetention(r graveler.RetentionRule) any {
	view := struct {
		Branches string `json:"branches"`
		Days     *int   `json:"days"` // null: forever
	}{Branches: r.Pattern}
	if r.Days > 0 {
		view.Days = &r.Days
	}
	return view
}

func (a *app) retentionRun() *cobra.Command {
	var p graveler.RetainParams
	var released string
	cmd := &cobra.Command{
		Use: "run REPO", Short: "Remove what the rules do not keep, and files that nothing refers to",
		Long: "Remove what the rules do not keep, and files that nothing refers to. It goes in steps, a day apart, so run it once a day: a commit that nothing keeps is pending; a day later its entries have expired, though it stays in the history; " +
			"another day later the files go that no other commit needs.\n\n" +
			"With --released, every entry whose value no remaining commit and no uncommitted change has is written there as a line of JSON before its file is removed: what its address names may be deleted then. It costs a reading of all files.",
		Example: "moraine retention run lake --dry-run\nmoraine retention run lake --released gone.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			releases := cmd.Flags().Changed("released")
			if releases && released == "" {
				return usageError{"--released: expected a file, or '-'"} // such as a variable that is not set: without it nobody would be told of what goes
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				if !releases {
					return a.retain(cmd.Context(), s, repo, p)
				}
				return a.retainReleasing(cmd.Context(), s, repo, p, released)
			})
		},
	}
	cmd.Flags().BoolVar(&p.DryRun, "dry-run", false, "change nothing, and say what would be removed in the end")
	cmd.Flags().StringVar(&released, "released", "", "file to which the entries that go are added, or '-' for standard output, which has only them then")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "released") // what is not removed yet is not to be deleted
	return cmd
}

func (a *app) retain(ctx context.Context, s *moraine.Store, repo graveler.RepositoryID, p graveler.RetainParams) error {
	r, err := s.Retain(ctx, repo, p)
	if err != nil {
		return err
	}
	return a.printRetention(r, p.DryRun)
}

// retainReleasing also writes what is released, so that it is on disk before anything is removed. A file gets it added, since
// what an earlier run released may not have been deleted yet.
func (a *app) retainReleasing(ctx context.Context, s *moraine.Store, repo graveler.RepositoryID, p graveler.RetainParams, file string) error {
	p.Identify = identify
	if file == "-" {
		p.Release = releasing(a.printer.w)
		p.BeforeRemoval = a.printer.flush
		_, err := s.Retain(ctx, repo, p)
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	if err := endLine(f, w); err != nil {
		return errors.Join(err, f.Close())
	}
	p.Release = releasing(w)
	p.BeforeRemoval = func() error { return cmp.Or(w.Flush(), f.Sync()) }
	return errors.Join(a.retain(ctx, s, repo, p), f.Close())
}

// endLine ends the last line of a file, if a run that was cut off has not: what is added would become a part of it, and could not
// be read. What that run had begun to write it has not removed.
func endLine(f *os.File, w *bufio.Writer) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, info.Size()-1); err != nil {
		return err
	}
	if last[0] != '\n' {
		return w.WriteByte('\n')
	}
	return nil
}

// releasing writes entries as lines of JSON.
func releasing(w io.Writer) func(graveler.Entry) error {
	p := json.NewEncoder(w)
	p.SetEscapeHTML(false)
	return func(e graveler.Entry) error {
		return p.Encode(struct {
			entryKeyView
			valueView
		}{viewEntryKey(e.Key), viewEntry(e.Key, *e.Value)})
	}
}

// identify knows objects by where their bytes are, and everything else by all of it.
func identify(v *graveler.Value) []byte {
	if address := catalog.Address(*v); address != "" {
		return append([]byte{1}, address...)
	}
	id := binary.AppendUvarint([]byte{0}, uint64(len(v.Identity)))
	return append(append(id, v.Identity...), v.Data...)
}

func (a *app) printRetention(r graveler.RetainReport, dryRun bool) error {
	if n := r.FilesUnreadable; n > 0 {
		a.warn("%s damaged, and stays: it cannot be said what went with it", plural(n, "file that nothing refers to is", "files that nothing refers to are"))
	}
	if r.Pending > 0 && !dryRun {
		a.note("%s kept by nothing: entries expire a day after that was noticed, files go another day later", plural(r.Pending, "commit is", "commits are"))
	}
	view := struct {
		Commits         int   `json:"commits"`
		Expired         int   `json:"expired"`
		Expiring        int   `json:"expiring"`
		Pending         int   `json:"pending"`
		Renewed         int   `json:"renewed"`
		MovesRemoved    int   `json:"moves_removed"`
		LogsRemoved     int   `json:"logs_removed"`
		FilesKept       int   `json:"files_kept"`
		FilesWaiting    int   `json:"files_waiting"`
		FilesRemoved    int   `json:"files_removed"`
		BytesRemoved    int64 `json:"bytes_removed"`
		FilesUnreadable int   `json:"files_unreadable"`
		Released        int   `json:"released"`
	}(r)
	return a.printer.record(view, "Commits", count(r.Commits), "Expired", count(r.Expired), "Expired now", count(r.Expiring), "Pending", count(r.Pending), "Kept again", count(r.Renewed),
		"Moves removed", count(r.MovesRemoved), "Logs removed", count(r.LogsRemoved), "Files kept", count(r.FilesKept), "Files waiting", count(r.FilesWaiting),
		"Files removed", count(r.FilesRemoved), "Bytes removed", formatSize(r.BytesRemoved), "Released", count(r.Released))
}
