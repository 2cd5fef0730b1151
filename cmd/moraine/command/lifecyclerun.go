// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"errors"
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
