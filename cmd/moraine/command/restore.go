// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"iter"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

func (a *app) branchRestore() *cobra.Command {
	var uid string
	cmd := &cobra.Command{
		Use: "restore REPO/BRANCH", Short: "Make a deleted branch again, with the head that it had",
		Long: "Make a deleted branch again, with the head that it had. It is a new branch with a log of its own; changes that were not committed do not come back. " +
			"Of several branches that had the name it is the one that was deleted last, unless --uid names another: 'moraine branch list REPO --deleted' shows them.",
		Example: "moraine branch restore lake/experiment",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseBranch(args[0])
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				b, err := s.RestoreBranch(cmd.Context(), at.repo, at.branch(), uid)
				if errors.Is(err, graveler.ErrExists) {
					err = hinted{err, "the name must be free"}
				}
				return a.done(notDeleted(err), func() any { return viewBranch(b) })
			})
		},
	}
	cmd.Flags().StringVar(&uid, "uid", "", "which of several branches that had the name")
	return cmd
}

// notDeleted explains that no deleted branch was found.
func notDeleted(err error) error {
	if errors.Is(err, graveler.ErrBranchNotFound) {
		return hinted{err, "'moraine branch list REPO --deleted' shows what there is"}
	}
	return err
}

func (a *app) listDeleted(branches iter.Seq2[graveler.DeletedBranch, error]) error {
	return table(a.printer, branches, []string{"NAME", "UID", "HEAD", "DELETED"}, viewDeleted, func(d graveler.DeletedBranch) []string {
		return []string{string(d.ID), d.UID, shortID(d.Head), formatTime(time.Unix(0, d.LastMove.Time))}
	})
}

func viewDeleted(d graveler.DeletedBranch) any {
	return struct {
		Name    graveler.BranchID `json:"name"`
		UID     string            `json:"uid"`
		Head    graveler.CommitID `json:"head"`
		Deleted time.Time         `json:"deleted"`
	}{d.ID, d.UID, d.Head, time.Unix(0, d.LastMove.Time).UTC()}
}
