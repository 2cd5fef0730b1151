// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) reflog() *cobra.Command {
	return &cobra.Command{
		Use: "reflog REPO/BRANCH", Short: "List the moves of a branch's head, oldest first",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.useBranch(cmd.Context(), reading, at, func(s *moraine.Store) error {
				return table(a.printer, s.BranchLog(cmd.Context(), at.repo, at.branch(), 0), []string{"TIME", "OPERATION", "OLD", "NEW", "ACTOR"}, viewMove,
					func(m graveler.Move) []string {
						return []string{formatTime(time.Unix(0, m.Time)), opName(m.Op), orDash(shortID(m.Old)), orDash(shortID(m.New)), orDash(escape(m.Actor))}
					})
			})
		},
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

func viewMove(m graveler.Move) any {
	return struct {
		Time      time.Time         `json:"time"`
		Operation string            `json:"operation"`
		Old       graveler.CommitID `json:"old,omitempty"`
		New       graveler.CommitID `json:"new,omitempty"`
		Actor     string            `json:"actor,omitempty"`
	}{time.Unix(0, m.Time).UTC(), opName(m.Op), m.Old, m.New, m.Actor}
}
