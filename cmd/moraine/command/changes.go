// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/metalog"
	"github.com/moraine-store/moraine/pkg/kv"
)

func (a *app) changes() *cobra.Command {
	var after, until string
	var net, follow bool
	var interval time.Duration
	cmd := &cobra.Command{
		Use: "changes REPO/BRANCH", Short: "List what every move of a branch's head changed, oldest first",
		Long: "List every change of an entry that a move of the branch's head made, oldest move first, by key within a move: + was added, - was removed, ~ was changed, * the branch itself was created or deleted. " +
			"All branches that have had the name are read, deleted ones too. What is uncommitted is no change yet.\n\n" +
			"--net lists what all moves together come to, of the branch that has the name now.\n\n" +
			"--follow goes on until it is interrupted, and looks for more every --interval. It opens the store each time, so that other processes can use it in between. " +
			"To go on another time without missing anything, take --after from the time that JSON output has; if the output may have been cut off within a move, from the move before.\n\n" +
			"Times are those of moves, given as 2026-01-31T23:59:59Z, 2026-01-31, or as how long ago, such as 24h.",
		Example: "moraine changes lake/main --after 24h\nmoraine changes lake/main --after 2026-01-31 --net\nmoraine --output json changes lake/main --follow",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			f := &changeFeed{app: a, at: at, positions: map[string]int64{}}
			if f.after, f.until, err = parseWindow(after, until, time.Now()); err != nil {
				return err
			}
			f.fromStart = after == ""
			switch {
			case follow && interval <= 0:
				return usageError{fmt.Sprintf("--interval %s: expected a time that is longer than nothing", interval)}
			case follow:
				return f.follow(cmd.Context(), interval)
			case cmd.Flags().Changed("interval"):
				return usageError{"--interval is for --follow"}
			case net:
				return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error { return f.net(cmd.Context(), s) })
			default:
				return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error { return f.more(cmd.Context(), s) })
			}
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "leave out moves up to this time (default: all that the log has)")
	cmd.Flags().StringVar(&until, "until", "", "leave out moves after this time")
	cmd.Flags().BoolVar(&net, "net", false, "list what the moves together come to, by key")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on with the moves that are still to come")
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "how long --follow waits before it looks for more")
	cmd.MarkFlagsMutuallyExclusive("follow", "net")
	cmd.MarkFlagsMutuallyExclusive("follow", "until")
	return cmd
}

// parseWindow reads the ends of a window, each of which may be open.
func parseWindow(after, until string, now time.Time) (from, to int64, err error) {
	from, to = 0, math.MaxInt64
	if after != "" {
		from, err = parseInstant(after, now)
	}
	if err == nil && until != "" {
		to, err = parseInstant(until, now)
	}
	if err == nil && from > to {
		err = usageError{"--until is before --after"}
	}
	return from, to, err
}

// parseInstant reads a time, or how long ago it was, as nanoseconds since the epoch. What is too far away for these is as good as
// the nearest that is not.
func parseInstant(text string, now time.Time) (int64, error) {
	t, err := parseMoment(text, now)
	if err != nil {
		return 0, err
	}
	if t.Before(time.Unix(0, 0)) {
		return 0, nil
	}
	if t.After(time.Unix(0, math.MaxInt64)) {
		return math.MaxInt64, nil
	}
	return t.UnixNano(), nil
}

// changeFeed prints the changes of the branches that a name has had.
type changeFeed struct {
	*app
	at           address
	after, until int64
	fromStart    bool             // of each log, wherever that is
	positions    map[string]int64 // by UID: the time of the last move that was printed, or ended
}

// ended is the position in a log that ends with the deletion of its branch: nothing will ever follow.
const ended = math.MaxInt64

// net prints the net effect of the window.
func (f *changeFeed) net(ctx context.Context, s *moraine.Store) error {
	b, err := s.GetBranch(ctx, f.at.repo, f.at.branch())
	if err != nil {
		return err
	}
	source := metalog.Source{Repository: f.at.repo, Branch: b.ID, UID: b.UID}
	if err := f.begin(ctx, s, &source); err != nil {
		return err
	}
	return f.print(metalog.New(s).Net(ctx, source, f.after, f.until))
}

// more prints the events of the window that were not printed yet.
func (f *changeFeed) more(ctx context.Context, s *moraine.Store) error {
	feed := metalog.New(s)
	sources, err := feed.Sources(ctx, f.at.repo, f.at.branch())
	if err != nil {
		return err
	}
	sources = slices.DeleteFunc(sources, func(s metalog.Source) bool { return f.positions[s.UID] == ended })
	for i := range sources {
		if err := f.begin(ctx, s, &sources[i]); err != nil {
			return err
		}
	}
	return f.print(feed.Events(ctx, sources, f.after, f.until))
}

// begin sets from where on a source is read.
func (f *changeFeed) begin(ctx context.Context, s *moraine.Store, source *metalog.Source) (err error) {
	position, known := f.positions[source.UID]
	if !known && f.fromStart {
		position, err = s.LogStart(ctx, source.Repository, graveler.LogName{Branch: source.Branch, UID: source.UID})
	}
	source.After = position
	return err
}

// follow prints what there is, and then what comes, until ctx is done, which is no failure.
func (f *changeFeed) follow(ctx context.Context, interval time.Duration) error {
	for waiting := false; ; {
		err := f.useBranch(ctx, reading, f.at, func(s *moraine.Store) error { return f.more(ctx, s) })
		locked := errors.Is(err, kv.ErrLocked)
		if locked && !waiting {
			f.note("%s", describe(err))
		}
		if waiting = locked; locked {
			err = nil // look again
		}
		if ctx.Err() != nil && errors.Is(err, context.Canceled) {
			err = nil
		}
		if err = errors.Join(err, f.printer.flush()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

func (f *changeFeed) print(events iter.Seq2[metalog.Event, error]) error {
	for e, err := range events {
		if err == nil && f.printer.json {
			err = f.printer.object(viewEvent(e))
		} else if err == nil {
			err = f.printer.line(f.eventLine(e))
		}
		if err != nil {
			return err
		}
		f.positions[e.UID] = e.Timestamp
		if e.Kind == metalog.Head && e.Commit == "" {
			f.positions[e.UID] = ended
		}
	}
	return nil
}

// eventLine is an event in text. What is part of a net effect is as in a difference, without a move.
func (f *changeFeed) eventLine(e metalog.Event) string {
	what := ""
	switch c := changeOf(graveler.Diff{Left: e.Previous, Right: e.Value}); {
	case e.Kind != metalog.Head:
		what = f.colored(c.color, c.sign+" "+describeKey(e.Key))
	case e.Commit == "":
		what = "* branch deleted"
	default:
		what = "* branch created"
	}
	if e.Op == 0 {
		return what
	}
	return fmt.Sprintf("%s  %-11s  %-*s  %s", formatTime(time.Unix(0, e.Timestamp)), opName(e.Op), shortDigits, orDash(shortID(e.Commit)), what)
}

func viewEvent(e metalog.Event) any {
	view := struct {
		Time      time.Time         `json:"time"`
		BranchUID string            `json:"branch_uid"`
		Operation string            `json:"operation,omitempty"`
		Commit    graveler.CommitID `json:"commit,omitempty"`
		Kind      string            `json:"kind"`
		*entryKeyView
		Value    *valueView `json:"value,omitempty"`
		Previous *valueView `json:"previous,omitempty"`
	}{Time: time.Unix(0, e.Timestamp).UTC(), BranchUID: e.UID, Commit: e.Commit, Kind: e.Kind.String(), Value: viewSide(e.Key, e.Value), Previous: viewSide(e.Key, e.Previous)}
	if e.Op != 0 {
		view.Operation = opName(e.Op)
	}
	if e.Kind != metalog.Head {
		key := viewEntryKey(e.Key)
		view.entryKeyView = &key
	}
	return view
}
