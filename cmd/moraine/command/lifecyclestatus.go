// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle/cursor"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

func (a *app) lifecycleStatus() *cobra.Command {
	var f passFlags
	cmd := &cobra.Command{
		Use: "status", Short: "Show how far lifecycle passes have come, and what is in their way",
		Long: "Show how far lifecycle passes have come, by branch, by delay of its rules in days (0: what depends on other versions, or has no delay), and by shard; shards that are in one state are on one line. " +
			"READ TO is the last move of the branch that was looked at, LAG how much later the newest one is that could have been, NEXT when the next one falls due, WALKED when the last walk began. BLOCKED names the first key that is in the way, and why; lines for 'walk' and 'lock' are there where that is so for walks, or for what a lock had barred until it ended. Give the --day, --boundary and --retention-days that passes have.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.readPasses(cmd, &f, func(c dailyrun.Config) error {
				status, unread := dailyrun.ReadStatus(cmd.Context(), c)
				if status == nil {
					return unread
				}
				rows := statusRows(status)
				if len(rows) == 0 && unread == nil {
					a.note("no repository has lifecycle rules")
				}
				if !a.printer.json {
					rows = together(rows)
				}
				return table(a.printer, thenError(rows, unread), []string{"BRANCH", "DAYS", "SHARDS", "READ TO", "LAG", "NEXT", "WALKED", "BLOCKED"}, statusRow.view, statusRow.cells)
			})
		},
	}
	f.view(cmd)
	return cmd
}

// thenError yields items, and then an error, if there is one.
func thenError[T any](items []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, item := range items {
			if !yield(item, nil) {
				return
			}
		}
		if err != nil {
			var none T
			yield(none, err)
		}
	}
}

// statusRow is a lane in one shard, or in several that are in one state. Without shards it is about the branch: that passes leave
// it out, or that something is in the way of what no lane does.
type statusRow struct {
	source dailyrun.SourceStatus
	lane   dailyrun.LaneStatus
	shards []int
	done   time.Time // up to when the shard has done everything
	of     string    // what something is in the way of: walks, or objects whose lock has ended
	block  *cursor.Block
}

func statusRows(status *dailyrun.Status) (rows []statusRow) {
	shards := map[int]dailyrun.ShardReport{}
	for _, s := range status.Shards {
		shards[s.Shard] = s
	}
	for _, source := range status.Sources {
		if len(source.Lanes) == 0 {
			rows = append(rows, statusRow{source: source})
		}
		if b := source.WalkBlocked; b != nil {
			rows = append(rows, statusRow{source: source, of: "walk", block: b})
		}
		if b := source.LockBlocked; b != nil {
			rows = append(rows, statusRow{source: source, of: "lock", block: b})
		}
		for _, lane := range source.Lanes {
			rows = append(rows, statusRow{source: source, lane: lane, shards: []int{lane.Shard}, done: shards[lane.Shard].Time})
		}
	}
	return rows
}

// together joins the rows of shards that show the same.
func together(rows []statusRow) (joined []statusRow) {
	by := map[string]int{}
	for _, r := range rows {
		cells := r.cells()
		cells[2] = "" // the shards
		same := fmt.Sprint(cells)
		if i, ok := by[same]; ok {
			joined[i].shards = append(joined[i].shards, r.shards...)
			continue
		}
		by[same] = len(joined)
		joined = append(joined, r)
	}
	slices.SortStableFunc(joined, func(a, b statusRow) int {
		return cmp.Or(cmp.Compare(sourceText(a.source.Source), sourceText(b.source.Source)), cmp.Compare(a.lane.Delay, b.lane.Delay))
	})
	return joined
}

func (r statusRow) view() any {
	view := struct {
		Repository graveler.RepositoryID `json:"repository"`
		Branch     graveler.BranchID     `json:"branch"`
		BranchUID  string                `json:"branch_uid,omitempty"`
		Skipped    string                `json:"skipped,omitempty"`
		LastWalked time.Time             `json:"last_walked,omitzero"`
		WalkedTo   *string               `json:"walked_to,omitempty"`
		WalkBlock  *blockView            `json:"walk_blocked,omitempty"`
		LockBlock  *blockView            `json:"lock_blocked,omitempty"`
		*laneView
	}{r.source.Repository, r.source.Branch, r.source.UID, r.source.Skipped, r.source.LastWalked, r.source.WalkedTo, nil, nil, nil}
	switch {
	case len(r.shards) > 0:
		view.laneView = r.viewLane()
	case r.of == "walk":
		view.WalkBlock = viewBlock(r.block)
	case r.of == "lock":
		view.LockBlock = viewBlock(r.block)
	}
	return view
}

type laneView struct {
	Shard        int        `json:"shard"`
	Days         int        `json:"days"`
	Cold         bool       `json:"cold"`
	Unfinished   bool       `json:"unfinished"`
	ReadTo       time.Time  `json:"read_to,omitzero"`
	Horizon      time.Time  `json:"horizon,omitzero"`
	LagSeconds   float64    `json:"lag_seconds"`
	WaitingUntil time.Time  `json:"waiting_until,omitzero"`
	DoneUpTo     time.Time  `json:"done_up_to,omitzero"`
	Blocked      *blockView `json:"blocked,omitempty"`
}

type blockView struct {
	keyView
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
}

func (r statusRow) viewLane() *laneView {
	l := r.lane
	return &laneView{
		Shard: l.Shard, Days: l.Delay, Cold: l.Cold, Unfinished: l.Unfinished, ReadTo: l.Head, Horizon: l.Horizon, LagSeconds: l.Lag.Seconds(), WaitingUntil: l.WaitingUntil, DoneUpTo: r.done,
		Blocked: viewBlock(l.Blocked),
	}
}

func viewBlock(b *cursor.Block) *blockView {
	if b == nil {
		return nil
	}
	return &blockView{viewKey(b.Key), time.Unix(0, b.Since).UTC(), b.Reason}
}

func (r statusRow) cells() []string {
	source, walked := sourceText(r.source.Source), formatTime(r.source.LastWalked)
	switch {
	case len(r.shards) > 0:
	case r.block != nil:
		return []string{source, r.of, "-", "-", "-", "-", walked, blockText(r.block)}
	default:
		return []string{source, "-", "-", "-", "-", "-", walked, orDash(r.source.Skipped)}
	}
	l := r.lane
	readTo, lag := formatTime(l.Head), lagText(l.Lag)
	if l.Cold {
		readTo, lag = "nothing yet", "-"
	}
	return []string{
		source, strconv.Itoa(l.Delay), shardsText(r.shards), readTo, lag, formatTime(l.WaitingUntil), walked, blockText(l.Blocked),
	}
}

// lagText is a lag in its largest unit.
func lagText(d time.Duration) string {
	switch {
	case d >= day:
		return fmt.Sprintf("%dd", d/day)
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}

func blockText(b *cursor.Block) string {
	if b == nil {
		return "-"
	}
	return fmt.Sprintf("at %s since %s: %s", escape(b.Key), formatTime(time.Unix(0, b.Since)), oneLine(b.Reason))
}
