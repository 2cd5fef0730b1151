// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
)

func (a *app) clock() *cobra.Command {
	var reset, force bool
	cmd := &cobra.Command{
		Use: "clock [--reset --force]", Short: "Compare this machine's clock with the newest time that the store has seen",
		Long: "Show the newest time that any machine has used for a move in the store, give or take a minute, the time of this machine, and how far this machine is ahead. A machine that is more than 5 minutes behind is refused.\n\n" +
			"--reset makes the time of this machine the newest, after a machine whose clock was far ahead has been corrected. A branch that it has moved stays " +
			"refused until it is deleted and made again.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case !reset && force:
				return usageError{"--force is for --reset"}
			case !reset:
				return a.use(cmd.Context(), reading, func(s *moraine.Store) error { return a.showClock(cmd.Context(), s) })
			case !force:
				return hinted{usageError{"reset the clock: if this machine's is wrong, all others will be refused, or their moves be out of order"}, "use --force where it is right"}
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				if err := s.ResetClock(cmd.Context()); err != nil || !a.printer.json {
					return err
				}
				return a.showClock(cmd.Context(), s)
			})
		},
	}
	cmd.Flags().BoolVar(&reset, "reset", false, "make the time of this machine the newest that the store has seen")
	cmd.Flags().BoolVar(&force, "force", false, "reset it indeed")
	return cmd
}

func (a *app) showClock(ctx context.Context, s *moraine.Store) error {
	seen, err := s.ClockWatermark(ctx)
	if err != nil {
		return err
	}
	now := time.Now().UTC()
	view := struct {
		Store        time.Time `json:"store,omitzero"`
		Machine      time.Time `json:"machine"`
		AheadSeconds *int64    `json:"ahead_seconds,omitempty"`
	}{Store: seen, Machine: now}
	ahead := "-"
	if !seen.IsZero() {
		d := now.Sub(seen).Truncate(time.Second)
		seconds := int64(d / time.Second)
		view.AheadSeconds, ahead = &seconds, d.String()
	}
	return a.printer.record(view, "Store", formatTime(seen), "This machine", formatTime(now), "Ahead", ahead)
}
