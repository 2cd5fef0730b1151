// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

func (a *app) lifecycleWorker() *cobra.Command {
	var f passFlags
	var every time.Duration
	var force bool
	cmd := &cobra.Command{
		Use: "worker --every DURATION", Short: "Repeat lifecycle passes, and share the work with other workers",
		Long: "Make a lifecycle pass now, and then one every so often, until it is interrupted; the pass under way ends early then, with what it did saved. An error of a pass is printed, and the next pass tries again.\n\n" +
			"The workers of a store share the shards by leases in it, and the --rate in proportion: give all of them the same. A worker that joins has its share in less than a minute, also during a pass of the others, and makes a pass over those of them whose last one is older than --every. " +
			"The shards of one that dies move on after a minute, to those that are left, or to the same one when it has been started again; until then it may have none, and says so by status=idle shards=0.\n\n" +
			"It keeps the store open. bolt and pebble belong to one process, so that nothing else can write there meanwhile: use 'moraine lifecycle run', once a day.\n\n" +
			"A --day of less than 24 hours, for tests and demonstrations, needs --force.",
		Example: "moraine lifecycle worker --every 24h --rate 500 --metrics-listen :9100",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			if every <= 0 {
				return usageError{fmt.Sprintf("--every %s: expected more than 0", every)}
			}
			if f.day < day && !force {
				return hinted{usageError{fmt.Sprintf("--day %s: what is not due yet would be removed", f.day)}, "use 'moraine lifecycle run --dry-run' to see it, or --force to have it removed"}
			}
			return a.useLifecycle(cmd.Context(), writing, func(s *moraine.Store, records kv.Store) error {
				c, err := f.config(s, records, time.Now)
				if err != nil {
					return err
				}
				return a.serving(f.metrics, func(o dailyrun.Observer) error {
					c.Observer = o
					return a.work(cmd.Context(), c, &f, every)
				})
			})
		},
	}
	f.calendar(cmd)
	f.log(cmd)
	f.work(cmd)
	cmd.Flags().DurationVar(&every, "every", day, "how long after the beginning of a pass the next one begins")
	cmd.Flags().BoolVar(&force, "force", false, "remove indeed what is due by shorter days")
	return cmd
}

// givingBack is how long a worker that ends may take to give back its shards.
const givingBack = 10 * time.Second

// work makes passes on the shards that this process holds, until ctx ends, which is no failure.
func (a *app) work(ctx context.Context, c dailyrun.Config, f *passFlags, every time.Duration) (err error) {
	w, err := cluster.New(cluster.Config{Store: c.Records, Name: hostName(), Shards: c.Shards, DeletesPerSecond: f.rate, DeletesBurst: f.burst})
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), givingBack)
		defer cancel()
		err = errors.Join(err, w.Close(ending))
	}()
	if err := w.Start(ctx); err != nil {
		return err
	}
	c.Limiter = w.Limiter()
	for turn := range w.Turns(ctx, every) {
		c.Holder = turn
		r, err := dailyrun.Run(ctx, c)
		if r == nil { // the settings make no sense
			return err
		}
		err = a.printPass(r, errors.Join(err, w.Err()))
		if err != nil && (ctx.Err() == nil || r.Errors > 0) {
			a.warn("the pass has failed: %s", describe(err))
		}
		if err := a.printer.flush(); err != nil {
			return err
		}
	}
	return nil
}
