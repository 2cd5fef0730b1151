// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/fsck"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

func (a *app) lifecycle() *cobra.Command {
	return group("lifecycle", "Say when objects expire, and have it done", a.lifecycleSet(), a.lifecycleGet(), a.lifecycleRm(), a.lifecycleValidate(),
		a.lifecycleRun(), a.lifecycleWorker(), a.lifecycleStatus(), a.lifecyclePredict(), a.lifecycleExplain(), a.lifecycleForget())
}

// useLifecycle is use for what needs the records of passes, which only a key/value store has.
func (a *app) useLifecycle(ctx context.Context, how access, fn func(*moraine.Store, kv.Store) error) error {
	if a.backend() != nil {
		return fmt.Errorf("lifecycle of store %s: %w", kv.Redact(a.store), fsck.ErrNoKV)
	}
	return a.useOther(ctx, a.store, a.blocks, how, fn)
}

func (a *app) lifecycleSet() *cobra.Command {
	var branches []string
	cmd := &cobra.Command{
		Use: "set REPO FILE", Short: "Give a repository lifecycle rules, in the place of those that it had",
		Long: "Give a repository lifecycle rules, in the place of those that it had. FILE ('-': standard input) is a lifecycle configuration of S3, in XML or in JSON; what it begins with tells which. " +
			"If it is not valid, nothing is changed, and the error has S3's code, where it has one. What S3 has and this program does not act on, such as transitions, is refused as well.\n\n" +
			"The rules are about the objects of the default branch, and of those named with --branch, which add to the Branches that the JSON form may have. Nothing is removed before 'moraine lifecycle run'.",
		Example: "moraine lifecycle set lake rules.xml\nmoraine lifecycle set lake - --branch staging <rules.json",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			c, err := readRules(cmd.InOrStdin(), args[1], branches)
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				before, unread := dailyrun.GetConfiguration(cmd.Context(), s, repo)
				if err := dailyrun.SetConfiguration(cmd.Context(), s, repo, c); err != nil {
					return err
				}
				if unread != nil && !errors.Is(unread, dailyrun.ErrNoConfiguration) {
					a.note("which branches the rules were about is not known: %v", unread)
				}
				if err := a.noteDropped(cmd.Context(), s, repo, before.Branches, c.Branches); err != nil {
					return err
				}
				return a.noteMissing(cmd.Context(), s, repo, c.Branches)
			})
		},
	}
	cmd.Flags().StringArrayVar(&branches, "branch", nil, "branch that the rules are about, too (repeatable)")
	return cmd
}

// noteDropped tells of branches that rules are no longer about, since XML has no place for them.
func (a *app) noteDropped(ctx context.Context, s *moraine.Store, repo graveler.RepositoryID, before, now []string) error {
	r, err := s.GetRepository(ctx, repo)
	if err != nil {
		return err
	}
	for _, b := range before {
		if !slices.Contains(now, b) && b != string(r.DefaultBranch) {
			a.note("the rules are no longer about branch %s/%s", repo, b)
		}
	}
	return nil
}

// noteMissing tells of branches that rules are about and that do not exist, which may be a slip.
func (a *app) noteMissing(ctx context.Context, s *moraine.Store, repo graveler.RepositoryID, branches []string) error {
	for _, b := range branches {
		_, err := s.GetBranch(ctx, repo, graveler.BranchID(b))
		if errors.Is(err, graveler.ErrBranchNotFound) {
			a.note("there is no branch %s/%s yet", repo, b)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// maxRulesBytes is more than a thousand rules take.
const maxRulesBytes = 16 << 20

// readRules reads a configuration from a file, or from standard input, and adds branches to it. One that is not valid is a usage error.
func readRules(stdin io.Reader, file string, branches []string) (lifecycle.Configuration, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return lifecycle.Configuration{}, err
		}
		defer f.Close() // it was only read
		stdin = f
	}
	data, err := io.ReadAll(io.LimitReader(stdin, maxRulesBytes+1))
	if err == nil && len(data) > maxRulesBytes {
		err = usageError{fmt.Sprintf("%s: rules of more than %s", file, formatSize(maxRulesBytes))}
	}
	if err != nil {
		return lifecycle.Configuration{}, err
	}
	c, err := parseRules(data)
	if err == nil {
		for _, b := range branches {
			if !slices.Contains(c.Branches, b) {
				c.Branches = append(c.Branches, b)
			}
		}
		err = c.Validate()
	}
	if err != nil {
		return lifecycle.Configuration{}, usageError{err.Error()}
	}
	return c, nil
}

// parseRules reads XML or JSON. What is neither is read as XML, which says what is wrong with it.
func parseRules(data []byte) (lifecycle.Configuration, error) {
	if data := bytes.TrimSpace(data); bytes.HasPrefix(data, []byte("{")) || bytes.HasPrefix(data, []byte("[")) {
		return lifecycle.ParseJSON(data)
	}
	return lifecycle.ParseXML(data)
}

func (a *app) lifecycleGet() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use: "get REPO", Short: "Print the lifecycle rules of a repository",
		Long: "Print the lifecycle rules of a repository, in XML, or with --output json in JSON, unless --format says otherwise. XML has no place for branches beside the default one.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			if format == "" {
				format = "xml"
				if a.printer.json {
					format = "json"
				}
			}
			if format != "xml" && format != "json" {
				return usageError{fmt.Sprintf("--format %s: expected xml or json", format)}
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				c, err := dailyrun.GetConfiguration(cmd.Context(), s, repo)
				if err != nil {
					return err
				}
				if format == "xml" && len(c.Branches) > 0 {
					a.note("they are also about %s, which only the JSON form says", plural(len(c.Branches), "other branch", "other branches"))
				}
				return a.printRules(c, format)
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "", "xml or json")
	return cmd
}

func (a *app) printRules(c lifecycle.Configuration, format string) error {
	if format == "json" {
		document, err := c.JSON()
		if err != nil {
			return err
		}
		return a.printer.line(string(document))
	}
	document, err := c.XML()
	if err != nil {
		return err
	}
	indented, err := indentXML(document)
	if err != nil {
		return err
	}
	return a.printer.line(indented)
}

// indentXML puts each element of a document on a line of its own, and changes nothing else.
func indentXML(document []byte) (string, error) {
	var b strings.Builder
	in, out := xml.NewDecoder(bytes.NewReader(document)), xml.NewEncoder(&b)
	out.Indent("", "  ")
	for {
		token, err := in.RawToken()
		if errors.Is(err, io.EOF) {
			err = out.Close() // which writes the rest
			return b.String(), err
		}
		if err != nil {
			return "", err
		}
		if err := out.EncodeToken(token); err != nil {
			return "", err
		}
	}
}

func (a *app) lifecycleRm() *cobra.Command {
	return &cobra.Command{
		Use: "rm REPO", Aliases: []string{"delete"}, Short: "Remove the lifecycle rules of a repository",
		Long: "Remove the lifecycle rules of a repository, if it has any. Nothing of it expires any more. What passes remembered of it goes with the next one; rules that are given later start afresh.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			repo, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				// What cannot be read can be removed.
				if _, err := dailyrun.GetConfiguration(cmd.Context(), s, repo); errors.Is(err, dailyrun.ErrNoConfiguration) {
					a.note("repository %s has no lifecycle rules", repo)
				}
				return dailyrun.RemoveConfiguration(cmd.Context(), s, repo)
			})
		},
	}
}

// noteUnlisted tells of what a list of actions does not show.
func (a *app) noteUnlisted(c lifecycle.Configuration) {
	for _, r := range c.Rules {
		if e := r.Expiration; e != nil && e.ExpiredObjectDeleteMarker != nil && !*e.ExpiredObjectDeleteMarker {
			a.note("rule %q: ExpiredObjectDeleteMarker is false, which asks for nothing", r.ID)
		}
	}
	for _, b := range c.Branches {
		a.note("the rules are about branch %s, too", b)
	}
}

func (a *app) lifecycleValidate() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE", Short: "Check lifecycle rules, and list what they ask for",
		Long:    "Check a lifecycle configuration as 'moraine lifecycle set' does, and list what its rules ask for. It needs no store. FILE is XML or JSON, '-' is standard input.",
		Example: "moraine lifecycle validate rules.xml",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := readRules(cmd.InOrStdin(), args[0], nil)
			if err != nil {
				return err
			}
			a.noteUnlisted(c)
			return table(a.printer, func(yield func(ruleAction, error) bool) {
				for i := range c.Rules {
					for _, action := range c.Rules[i].Actions() {
						if !yield(ruleAction{action}, nil) {
							return
						}
					}
				}
			}, []string{"RULE", "STATUS", "FILTER", "ACTION", "WHEN"}, ruleAction.view, ruleAction.cells)
		},
	}
}
