// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/cmd/moraine/internal/graph"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) log() *cobra.Command {
	var o graveler.LogOptions
	var drawn bool
	var limit uint
	var since, until string
	var prefixes []string
	cmd := &cobra.Command{
		Use: "log REPO/REF", Short: "List the commits that a ref reaches, newest first",
		Long: "List the commits that a ref reaches, newest first and every commit before its parents. With --graph, draw how they follow each other: where options leave out commits, lines lead to the nearest " +
			"ancestors that are shown.",
		Example: "moraine log lake/main\nmoraine log lake/main --graph --limit 20\nmoraine log lake/main --prefix raw/ --since 2026-01-31\nmoraine log lake/experiment --not main",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseRef(args[0], "REPO/REF", "lake/main")
			if err != nil {
				return err
			}
			if drawn && a.printer.json {
				return usageError{"--graph is a drawing: it has no JSON form"}
			}
			if o.Since, o.Until, err = parsePeriod(since, until); err != nil {
				return err
			}
			o.Prefixes = keys(prefixes)
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				if drawn {
					err = a.drawLog(cmd.Context(), s, at.repo, limited(s.LogGraph(cmd.Context(), at.repo, at.ref, o), int(limit)))
				} else {
					err = a.printCommits(limited(s.Log(cmd.Context(), at.repo, at.ref, o), int(limit)))
				}
				return withoutRepository(err, at, o.Not...)
			})
		},
	}
	cmd.Flags().BoolVar(&drawn, "graph", false, "draw how commits follow each other, and which branches and tags stand on them")
	cmd.Flags().BoolVar(&o.FirstParent, "first-parent", false, "follow only the first parent of each commit")
	cmd.Flags().StringVar(&since, "since", "", "leave out commits made before this time, or so long ago (such as 24h)")
	cmd.Flags().StringVar(&until, "until", "", "leave out commits made after this time")
	cmd.Flags().StringVar(&o.Committer, "author", "", "show only the commits of this committer")
	cmd.Flags().StringArrayVar(&prefixes, "prefix", nil, "show only commits that changed keys that begin so (may be repeated)")
	cmd.Flags().StringArrayVar(&o.Not, "not", nil, "leave out what this ref, of the same repository, reaches (may be repeated)")
	cmd.Flags().UintVar(&limit, "limit", 0, "end after so many commits (0: no limit)")
	return cmd
}

// parsePeriod reads the two ends of a period, each of which may be open.
func parsePeriod(since, until string) (from, to time.Time, err error) {
	if since != "" {
		from, err = parseMoment(since, time.Now())
	}
	if err == nil && until != "" {
		to, err = parseMoment(until, time.Now())
	}
	return from, to, err
}

func (a *app) printCommits(commits iter.Seq2[graveler.Commit, error]) error {
	return table(a.printer, commits, []string{"COMMIT", "CREATED", "COMMITTER", "MESSAGE"}, viewCommit, commitCells)
}

func commitCells(c graveler.Commit) []string {
	return []string{shortID(c.ID), formatTime(c.CreatedAt), orDash(escape(c.Committer)), subject(c)}
}

// subject is the first line of a commit's message.
func subject(c graveler.Commit) string {
	line, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
	return escape(line)
}

func (a *app) drawLog(ctx context.Context, s *moraine.Store, repo graveler.RepositoryID, nodes iter.Seq2[graveler.LogNode, error]) error {
	names, err := refNames(ctx, s, repo)
	if err != nil {
		return err
	}
	var g graph.Graph[graveler.CommitID]
	for n, err := range nodes {
		if err != nil {
			return err
		}
		c := n.Commit
		node, links := g.Add(c.ID, n.Follows)
		text := a.colored(yellow, shortID(c.ID)) + "  " + formatTime(c.CreatedAt) + "  " + subject(c)
		if refs := names[c.ID]; len(refs) > 0 {
			text += "  " + a.colored(green, "("+strings.Join(refs, ", ")+")")
		}
		for _, line := range append([]string{node + "  " + text}, links...) {
			if err := a.printer.line(line); err != nil {
				return err
			}
		}
	}
	return nil
}

// refNames returns the branches and tags that stand on each commit.
func refNames(ctx context.Context, s *moraine.Store, repo graveler.RepositoryID) (map[graveler.CommitID][]string, error) {
	names := map[graveler.CommitID][]string{}
	for b, err := range s.ListAllBranches(ctx, repo, "") {
		if err != nil {
			return nil, err
		}
		names[b.Head] = append(names[b.Head], string(b.ID))
	}
	for t, err := range s.ListTags(ctx, repo, "") {
		if err != nil {
			return nil, err
		}
		names[t.Commit] = append(names[t.Commit], "tag: "+string(t.ID))
	}
	return names, nil
}

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use: "show REPO/REF", Short: "Show the commit that a ref names",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseRef(args[0], "REPO/REF", "lake/main")
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
				c, err := s.ResolveRef(cmd.Context(), at.repo, at.ref)
				if err != nil {
					return err
				}
				return a.showCommit(*c)
			})
		},
	}
}

func (a *app) showCommit(c graveler.Commit) error {
	fields := []string{"Commit", string(c.ID)}
	for _, p := range c.Parents {
		fields = append(fields, "Parent", string(p))
	}
	fields = append(fields, "Committer", orDash(escape(c.Committer)), "Created", formatTime(c.CreatedAt),
		"Generation", strconv.FormatInt(c.Generation, 10), "Tree", string(c.Tree))
	if len(c.Metadata) > 0 {
		fields = append(fields, "Metadata", escape(formatPairs(c.Metadata)))
	}
	if err := a.printer.record(viewCommit(c), fields...); err != nil || a.printer.json {
		return err
	}
	text := ""
	for line := range strings.SplitSeq(strings.TrimRight(c.Message, "\n"), "\n") {
		text += "\n" + strings.TrimRight("    "+escape(line), " ")
	}
	return a.printer.line(text)
}

func viewCommit(c graveler.Commit) any {
	if c.Parents == nil {
		c.Parents = []graveler.CommitID{}
	}
	return struct {
		ID         graveler.CommitID    `json:"id"`
		Parents    []graveler.CommitID  `json:"parents"`
		Committer  string               `json:"committer"`
		Message    string               `json:"message"`
		CreatedAt  time.Time            `json:"created_at"`
		Metadata   map[string]string    `json:"metadata,omitempty"`
		Generation int64                `json:"generation"`
		Tree       graveler.MetaRangeID `json:"tree"`
	}{c.ID, c.Parents, c.Committer, c.Message, c.CreatedAt.UTC(), c.Metadata, c.Generation, c.Tree}
}

// keys turns the values of a flag into keys or prefixes.
func keys(texts []string) []graveler.Key {
	var all []graveler.Key
	for _, t := range texts {
		all = append(all, graveler.Key(t))
	}
	return all
}
