// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate"
)

func (a *app) migrate() *cobra.Command {
	g := group("migrate", "Move the metadata of a deployment that keeps them in PostgreSQL tables into the store",
		a.migratePlan(), a.migrateRun(), a.migrateVerify(), a.migrateStatus(), a.migrateCutover())
	g.Long = "Move the metadata of a deployment that keeps them in PostgreSQL tables (graveler_repositories and so on) into the store: all repositories with their branches, tags, commits, and what is staged, as of one instant. 'plan' says what would be done, and what stands " +
		"in the way; 'run' does it, and may be interrupted and run again; 'verify' compares the two sides; 'cutover' makes the tables read-only to this program. The range files are found where the tables say, in the block storage of --blocks or by URL.\n\n" +
		"A database that lakeFS keeps, in such tables or in its kv table, is named lakefs+postgres://…: its range files are converted. They are found where the storage namespaces say, or below the folder that --from-blocks names, each namespace where what stands behind its :// leads from there."
	return g
}

// migrationFlags adds the flags that name the database and its files.
func migrationFlags(cmd *cobra.Command, m *migrate.Migration) *cobra.Command {
	cmd.Flags().StringVar(&m.SourceBlocks, "from-blocks", "", "URL of the folder that has the range files of lakeFS, if they are not where the storage namespaces say")
	return sourceFlag(cmd, &m.Source)
}

// allLostFlag adds the flag that names repositories without files, and has it refused where nothing may be missing.
func allLostFlag(cmd *cobra.Command, m *migrate.Migration) {
	cmd.Flags().StringSliceVar(&m.AllLost, "all-lost", nil, "repositories of lakeFS of which --allow-missing may find no range file at all, with commas between them; others are refused, since their files are rather elsewhere")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if len(m.AllLost) > 0 && !m.AllowMissing {
			return usageError{"--all-lost is for --allow-missing"}
		}
		return nil
	}
}

// sourceFlag adds the flag that names the database.
func sourceFlag(cmd *cobra.Command, from *string) *cobra.Command {
	cmd.Flags().StringVar(from, "from", "", "URL of the PostgreSQL database: postgres://… for tables, lakefs+postgres://… for what lakeFS keeps")
	if err := cmd.MarkFlagRequired("from"); err != nil {
		panic(err) // the flag is above
	}
	return cmd
}

func (a *app) migratePlan() *cobra.Command {
	var m migrate.Migration
	cmd := &cobra.Command{
		Use: "plan", Short: "Say what a migration would carry over, what it would refuse, and what it would leave behind",
		Long: "Say what a migration would carry over, what it would refuse and why, what it would leave behind: rows under staging tokens that no branch has, and of repositories that do not exist; and which repositories are in the store already, complete or begun. Nothing is written. It ends with the exit code that 'run' would " +
			"end with, 0 if nothing is refused. Of lakeFS all trees are looked at: which range files are missing or too small to be whole, what is lost with them, and which ones nothing needs. Ranges are not read.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.useMigration(cmd.Context(), &m, func() error {
				bar := a.newProgress()
				bar.beginWait("plan")
				p, err := m.Plan(cmd.Context())
				bar.end()
				if err != nil {
					return err
				}
				return errors.Join(a.printPlan(p), refusedBy(p))
			})
		},
	}
	cmd.Flags().BoolVar(&m.InPlace, "in-place", false, "plan for 'run --in-place'")
	cmd.Flags().BoolVar(&m.AllowMissing, "allow-missing", false, "plan for 'run --allow-missing'")
	allLostFlag(cmd, &m)
	return migrationFlags(cmd, &m)
}

func (a *app) migrateRun() *cobra.Command {
	var m migrate.Migration
	cmd := &cobra.Command{
		Use: "run", Short: "Carry everything over, or go on with it",
		Long: "Carry everything over as of one instant, into the store, which must be empty or this migration's own, and is made where there is none. What a plan refuses is refused before anything is written or made. No repository is seen before it is complete. When it is interrupted, run it again: " +
			"it goes on where it was, repository by repository; what is complete stays as it is. Delete a repository to have it carried over again. While it runs nobody else should write into the store.\n\n" +
			"The range files are copied into folders of the repositories' own. With --in-place they stay where they are and belong to the store from then on, which the tables must be cut over for. Those of lakeFS are converted, and stay as they are. A run stops at one that is missing or damaged; with --allow-missing it goes on without its entries, or in the place of a metarange with an empty tree, and notes that: 'status' shows it, and 'verify' tells when it can be had again. A repository of which no range file is found is refused all the same, unless --all-lost names it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWorkers(m.Workers); err != nil {
				return err
			}
			err := a.migrateInto(cmd.Context(), &m, func() error {
				bar := a.newRowProgress("migrate")
				bar.beginWait("plan")
				m.Progress = bar.show
				r, err := m.Run(cmd.Context())
				bar.end()
				if err == nil {
					err = a.printAllLost(r.Lost)
				}
				if err != nil {
					return err
				}
				if r.AlreadyThere > 0 {
					a.note("what an earlier run has completed stays as it was then: 'moraine migrate verify' tells whether the source has changed since")
				}
				view := struct {
					Copied       int   `json:"copied"`
					Resumed      int   `json:"resumed"`
					Restarted    int   `json:"restarted"`
					AlreadyThere int   `json:"already_there"`
					Rows         int64 `json:"rows"`
					Trees        int64 `json:"trees_converted,omitempty"`
					LostFiles    int   `json:"lost_files,omitempty"`
				}{r.Copied, r.Resumed, r.Restarted, r.AlreadyThere, r.Rows, r.Trees, len(r.Lost)}
				fields := []string{"Repositories carried over", count(r.Copied), "of which gone on with", count(r.Resumed), "of which begun anew", count(r.Restarted),
					"Repositories that were there", count(r.AlreadyThere), "Rows written", count(int(r.Rows))}
				if r.Trees > 0 {
					fields = append(fields, "Trees converted", count(int(r.Trees)))
				}
				if len(r.Lost) > 0 {
					fields = append(fields, "But for files that were lost", count(len(r.Lost)))
				}
				return a.printer.record(view, fields...)
			})
			return goOn(err)
		},
	}
	cmd.Flags().BoolVar(&m.InPlace, "in-place", false, "leave the range files where they are and take them over")
	cmd.Flags().IntVar(&m.Workers, "workers", 0, "how many repositories are read at a time, each over its own connection (0: 4)")
	cmd.Flags().BoolVar(&m.AllowMissing, "allow-missing", false, "go on without range files of lakeFS that are missing or damaged, and note what is lost")
	allLostFlag(cmd, &m)
	return migrationFlags(cmd, &m)
}

func (a *app) migrateVerify() *cobra.Command {
	var m migrate.Migration
	cmd := &cobra.Command{
		Use: "verify", Short: "Compare the tables and the store row by row",
		Long: "Compare the tables, as of now, and the store row by row, and committed entries of lakeFS one by one: numbers, a digest for each repository and kind, and the first differences of each repository. What was written on either side since the migration is a difference. It can be run any time, also on " +
			"another machine, and only reads. Exit code 1 means that the sides differ.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkWorkers(m.Workers); err != nil {
				return err
			}
			return a.useMigration(cmd.Context(), &m, func() error {
				bar := a.newProgress()
				bar.beginWait("verify")
				v, err := m.Verify(cmd.Context())
				bar.end()
				if err != nil {
					return err
				}
				return errors.Join(a.printVerified(v), v.Err())
			})
		},
	}
	cmd.Flags().IntVar(&m.Workers, "workers", 0, "how many repositories are read at a time, each over its own connection (0: 4)")
	return migrationFlags(cmd, &m)
}

func (a *app) migrateStatus() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Show how far the migration into the store has come", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.useKV(cmd.Context(), func(s kv.Store) error {
				status, err := (&migrate.Migration{KV: s}).Status(cmd.Context())
				if err != nil {
					return err
				}
				return a.printMigrationStatus(status)
			})
			if errors.Is(err, errNoStore) {
				return hinted{err, "'moraine migrate run' makes one; 'moraine migrate plan' needs none"}
			}
			return err
		},
	}
}

func (a *app) migrateCutover() *cobra.Command {
	var from string
	var back bool
	cmd := &cobra.Command{
		Use: "cutover", Short: "Make the tables read-only to this program, or writable again",
		Long: "Set a marker in the database that makes the tables read-only to this program, once the writes under way have ended; with --back take it away. Other programs do not know the marker, lakeFS among them: a database that it keeps is refused. Repeating it changes nothing.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := migrate.Cutover(cmd.Context(), from, back)
			if err != nil {
				return err
			}
			view := struct {
				CutOver bool       `json:"cut_over"`
				Since   *time.Time `json:"since,omitempty"`
			}{CutOver: m != nil}
			text := "writable"
			if m != nil {
				at := m.At.UTC()
				view.Since, text = &at, "read-only since "+formatTime(at)
			}
			return a.printer.record(view, "Tables", text)
		},
	}
	cmd.Flags().BoolVar(&back, "back", false, "take the marker away")
	sourceFlag(cmd, &from)
	cmd.Flags().Lookup("from").Usage = "URL of the PostgreSQL database that has the tables: postgres://…"
	return cmd
}

// checkWorkers refuses a number that makes no sense.
func checkWorkers(n int) error {
	if n < 0 {
		return usageError{fmt.Sprintf("--workers %d: expected how many repositories are read at a time, or 0 for the usual 4", n)}
	}
	return nil
}

// printAllLost names range files that were left out.
func (a *app) printAllLost(lost []migrate.Lost) (err error) {
	for _, l := range lost {
		if err == nil {
			err = a.printLost(l)
		}
	}
	return err
}

// plannedTime is an estimate for people.
func plannedTime(d time.Duration) string {
	if d < time.Minute {
		return "less than a minute"
	}
	return fmt.Sprintf("about %s", d.Round(time.Minute))
}
