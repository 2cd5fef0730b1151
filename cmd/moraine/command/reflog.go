// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) reflog() *cobra.Command {
	var deleted bool
	var uid string
	cmd := &cobra.Command{
		Use: "reflog REPO/BRANCH", Short: "List the moves of a branch's head, oldest first",
		Long: "List the moves of a branch's head, oldest first, with their numbers: 'moraine branch reset REPO/BRANCH --to-move N' goes back to the head that the move N left. " +
			"Numbers count from the oldest move that is kept.",
		Example: "moraine reflog lake/main\nmoraine reflog lake/experiment --deleted",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			if uid != "" && !deleted {
				return usageError{"--uid is for --deleted"}
			}
			if deleted {
				return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
					return notDeleted(a.printMoves(s.DeletedBranchLog(cmd.Context(), at.repo, at.branch(), uid, 0)))
				})
			}
			return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error {
				return a.printMoves(s.BranchLog(cmd.Context(), at.repo, at.branch(), 0))
			})
		},
	}
	cmd.Flags().BoolVar(&deleted, "deleted", false, "of the branch of this name that was deleted last")
	cmd.Flags().StringVar(&uid, "uid", "", "with --deleted: which of several branches that had the name")
	return cmd
}

func (a *app) printMoves(moves iter.Seq2[graveler.Move, error]) error {
	return table(a.printer, numbered(moves), []string{"MOVE", "TIME", "OPERATION", "OLD", "NEW", "ACTOR"}, viewNumbered,
		func(m numberedMove) []string {
			return []string{strconv.Itoa(m.number), formatTime(time.Unix(0, m.Time)), opName(m.Op), orDash(shortID(m.Old)), orDash(shortID(m.New)), orDash(escape(m.Actor))}
		})
}

// numberedMove is a move of a log with its number, by which people name it.
type numberedMove struct {
	number int
	graveler.Move
}

func numbered(moves iter.Seq2[graveler.Move, error]) iter.Seq2[numberedMove, error] {
	return func(yield func(numberedMove, error) bool) {
		n := 0
		for m, err := range moves {
			n++
			if !yield(numberedMove{n, m}, err) {
				return
			}
		}
	}
}

func opName(op graveler.Op) string {
	names := map[graveler.Op]string{
		graveler.OpCreate: "create", graveler.OpCommit: "commit", graveler.OpMerge: "merge", graveler.OpRevert: "revert", graveler.OpCherryPick: "cherry-pick",
		graveler.OpImport: "import", graveler.OpReset: "reset", graveler.OpLifecycle: "lifecycle", graveler.OpMigrate: "migrate", graveler.OpDelete: "delete",
	}
	if name, ok := names[op]; ok {
		return name
	}
	return fmt.Sprintf("operation %d", op) // of a newer program
}

type moveView struct {
	Time      time.Time         `json:"time"`
	Operation string            `json:"operation"`
	Old       graveler.CommitID `json:"old,omitempty"`
	New       graveler.CommitID `json:"new,omitempty"`
	Actor     string            `json:"actor,omitempty"`
}

func viewMove(m graveler.Move) moveView {
	return moveView{time.Unix(0, m.Time).UTC(), opName(m.Op), m.Old, m.New, m.Actor}
}

func viewNumbered(m numberedMove) any {
	return struct {
		Move int `json:"move"`
		moveView
	}{m.number, viewMove(m.Move)}
}
