// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/cluster"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
	"github.com/moraine-store/moraine/pkg/lifecycle/dispatch"
)

// errPass is what all errors of a pass match, and errBlocked that something which was due was not done without there being an error.
var (
	errPass    = errors.New("lifecycle pass")
	errBlocked = errors.New("lifecycle is blocked")
)

// passError is the errors of a pass. What they mean elsewhere, such as that a name is wrong, is not the caller's fault here.
type passError struct{ error }

func (e passError) Unwrap() error        { return e.error }
func (e passError) Is(target error) bool { return target == errPass }

func (a *app) lifecycleRun() *cobra.Command {
	var f passFlags
	var at string
	var dryRun, force bool
	cmd := &cobra.Command{
		Use: "run [REPO]...", Short: "Remove what the lifecycle rules of repositories say is due",
		Long: "Remove what the lifecycle rules of all repositories, or of those that are named, say is due: one pass, which goes on where the last one ended. Run it once a day. What it removes from a branch is a commit of its own, and older commits still show it; " +
			"what is uncommitted stays, and is not looked at. A pass that is cut off, or that fails with one branch, has done the rest, and the next one catches up. It prints how much it did.\n\n" +
			"A pass over some repositories is for when one must not wait. It leaves to the schedule what is remembered of all together: how far shards have come.\n\n" +
			"--dry-run lists what would go, and when it was due, and changes nothing.\n\n" +
			"--now moves the clock of the pass, for tests and demonstrations: to a time, or with +31d or +36h so much ahead of the machine's. What that removes is gone from the branch: also what a retention lock keeps longer, if it ends by the moved clock. What the pass remembers is ahead then, too; " +
			"nothing that falls due is lost by it. A clock ahead, or a --day of less than 24 hours, needs --force, unless it is for a --dry-run.",
		Example: "moraine lifecycle run --dry-run --now +31d\nmoraine lifecycle run --rate 500 --max-runtime 30m\nmoraine lifecycle run lake",
		RunE: func(cmd *cobra.Command, args []string) error {
			var repositories []graveler.RepositoryID
			for _, arg := range args {
				repo, err := parseRepo(arg)
				if err != nil {
					return err
				}
				repositories = append(repositories, repo)
			}
			if err := f.complete(cmd); err != nil {
				return err
			}
			machine := time.Now()
			now, err := parseClock(at, machine)
			if err != nil {
				return err
			}
			if ahead := now.After(machine) || f.day < day; ahead && !dryRun && !force {
				return hinted{usageError{"run ahead of time: what is not due yet would be removed"}, "use --dry-run to see it, or --force to have it removed"}
			}
			if machine.Sub(now) > time.Minute {
				a.note("the clock is behind: what has fallen due since %s stays", formatTime(now))
			}
			limiter, err := cluster.NewLimiter(f.rate, f.burst)
			if err != nil {
				return err
			}
			how := writing
			if dryRun {
				how = reading
			}
			a.lockClock = clockAt(at, now)
			return a.useLifecycle(cmd.Context(), how, func(s *moraine.Store, records kv.Store) error {
				c, err := f.config(s, records, a.lockClock)
				if err != nil {
					return err
				}
				c.Limiter, c.Repositories = limiter, repositories
				if dryRun {
					return a.dryRun(cmd.Context(), c)
				}
				return a.serving(f.metrics, func(o dailyrun.Observer) error {
					c.Observer = o
					r, err := dailyrun.Run(cmd.Context(), c)
					return a.printPass(r, err)
				})
			})
		},
	}
	f.calendar(cmd)
	f.log(cmd)
	f.work(cmd)
	cmd.Flags().StringVar(&at, "now", "", "what time it is for the pass, or how much later than now it is, such as +31d (default: the time of this machine)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "change nothing, and list what would be removed")
	cmd.Flags().BoolVar(&force, "force", false, "remove indeed what is due by a clock ahead, or by shorter days")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "force")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "metrics-listen") // a dry run changes no metric
	return cmd
}

// clockAt returns the clock of a pass, which stands still where it was moved.
func clockAt(at string, now time.Time) func() time.Time {
	if at == "" {
		return time.Now
	}
	return func() time.Time { return now }
}

// dryRun lists what a pass would remove, as it finds it.
func (a *app) dryRun(ctx context.Context, c dailyrun.Config) error {
	var report *dailyrun.Report
	var failure error
	err := table(a.printer, func(yield func(planned, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		more := true
		c.DryRun = func(source dispatch.Source, item dispatch.Item) {
			if more = more && yield(planned{source, item}, nil); !more {
				cancel() // the output has failed, and says so
			}
		}
		report, failure = dailyrun.Run(ctx, c)
	}, []string{"BRANCH", "ACTION", "RULE", "DUE", "VERSION", "KEY"}, planned.view, planned.cells)
	if err != nil || report == nil {
		return cmp.Or(err, failure)
	}
	return a.conclude(report, failure)
}

func passFailure(r *dailyrun.Report, err error) error {
	if r == nil || err == nil { // it has not begun
		return err
	}
	return passError{err}
}

func (a *app) lifecycleWorker() *cobra.Command {
	var f passFlags
	var every time.Duration
	cmd := &cobra.Command{
		Use: "worker --every DURATION", Short: "Repeat lifecycle passes, and share the work with other workers",
		Long: "Make a lifecycle pass now, and then one every so often, until it is interrupted; the pass under way ends early then, with what it did saved. An error of a pass is printed, and the next pass tries again. The workers of a store share the shards by leases in it, and the --rate in proportion: give all of them the same. " +
			"The shards of one that dies move on after a minute.\n\n" +
			"It keeps the store open. bolt and pebble belong to one process, so that nothing else can write there meanwhile: use 'moraine lifecycle run', once a day.",
		Example: "moraine lifecycle worker --every 24h --rate 500 --metrics-listen :9100",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(cmd); err != nil {
				return err
			}
			if every <= 0 {
				return usageError{fmt.Sprintf("--every %s: expected more than 0", every)}
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
	c.Holder, c.Limiter = w, w.Limiter()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
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
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
