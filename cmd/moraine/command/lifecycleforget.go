// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

func (a *app) lifecycleForget() *cobra.Command {
	var text string
	var force bool
	cmd := &cobra.Command{
		Use: "forget --shards LIST --force", Short: "Forget how far lifecycle passes have come in some shards",
		Long: "Forget how far lifecycle passes have come in some shards, so that the next pass starts cold there: it looks at everything, and removes what is due. It is for records that are damaged, which keep their shard from work. " +
			"Forgotten are also what is known of walks, which are over all shards, and damaged records of who works on what. " +
			"Nothing that is due is lost by it, and nothing else goes; it prints how many records there were. End the passes that are under way before.",
		Example: "moraine lifecycle forget --shards 3 --force",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			shards, err := parseShards(text)
			if err != nil {
				return err
			}
			if !force {
				return hinted{usageError{"forget shards: the next pass would have to look at everything"}, "use --force where that is wanted"}
			}
			return a.useLifecycle(cmd.Context(), writing, func(s *moraine.Store, records kv.Store) error {
				removed, err := cluster.ForgetMalformed(cmd.Context(), records)
				if err != nil {
					return err
				}
				for _, shard := range shards {
					n, err := dailyrun.Forget(cmd.Context(), s, records, shard)
					removed += n
					if err != nil {
						return err
					}
				}
				return a.printer.record(struct {
					Removed int `json:"removed"`
				}{removed}, "Records removed", count(removed))
			})
		},
	}
	cmd.Flags().StringVar(&text, "shards", "", "the shards, such as 3 or 0-7,12")
	cmd.Flags().BoolVar(&force, "force", false, "forget them indeed")
	mustRequire(cmd, "shards")
	return cmd
}
