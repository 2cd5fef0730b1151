// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

func (a *app) demo() *cobra.Command {
	var migration bool
	cmd := &cobra.Command{
		Use: "demo [DIR]", Short: "Take a tour with the files of a directory",
		Long: "Take a tour: import the files of a directory (default: the current one) into a new repository, then branch, change, commit, compare, tag, merge, revert, bring a deleted branch back, and let a lifecycle rule remove something on a clock that is moved ahead. Every step shows the command that does it. " +
			"The directory is only read; the repository stays in the store.\n\n" +
			"With --migrate the tour is of a migration: a throw-away PostgreSQL, which must be installed, is filled with what a deployment has there after years; that is carried over into the store, which must be empty, by a process that is killed half way, and then by one that goes on.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.printer.json {
				return usageError{"the tour is for people: it has no JSON form"}
			}
			if migration {
				if len(args) > 0 {
					return usageError{"--migrate makes its own data: give no directory"}
				}
				return (&tour{app: a}).migration(cmd.Context())
			}
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			t := tour{app: a, dir: dir}
			return t.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&migration, "migrate", false, "tour a migration from PostgreSQL tables")
	return cmd
}

// tour runs commands as if they had been typed.
type tour struct {
	app  *app
	dir  string
	repo string
	// input is what the commands that read '-' find there.
	input string
}

func (t *tour) run(ctx context.Context) error {
	if err := t.chooseName(ctx); err != nil {
		return err
	}
	err := t.do(ctx, "A repository keeps versions of entries. An entry has a key, and says where an object is and what it is like.",
		[]string{"repo", "create", t.repo},
		[]string{"import", t.dir, t.at("main:files/"), "--commit", "-m", "Import files"},
		[]string{"ls", t.at("main:files/"), "--limit", "10"})
	if err != nil {
		return err
	}
	files, err := t.files(ctx)
	if err != nil {
		return err
	}
	err = t.do(ctx, "A branch costs nothing, however much there is. What changes on it is uncommitted at first.", t.changes(files)...)
	if err != nil {
		return err
	}
	err = t.do(ctx, "A commit keeps the changes for good. The other branch does not have them, and a tag remembers where it was.",
		[]string{"commit", t.at("experiment"), "-m", "Try something", "--meta", "tour=yes"},
		[]string{"diff", t.at("main"), t.at("experiment")},
		[]string{"get", t.at("experiment:notes/today.txt")},
		[]string{"tag", "create", t.at("before-experiment"), t.at("main")},
	)
	if err != nil {
		return err
	}
	if err := t.merge(ctx); err != nil {
		return err
	}
	if err := t.expire(ctx); err != nil {
		return err
	}
	return t.say(fmt.Sprintf("All this stays in %s: look around. To remove it: moraine repo delete %s --force", kv.Redact(t.app.store), t.repo))
}

// merge brings the branches together again, and undoes it.
func (t *tour) merge(ctx context.Context) error {
	err := t.do(ctx, "Both branches have a note of that name now. A merge stops at such a conflict, and changes nothing.",
		[]string{"put", t.at("main:notes/today.txt"), "--size", "80", "--address", "s3://bucket/notes/other.txt"},
		[]string{"commit", t.at("main"), "-m", "Another note"},
		[]string{"merge", t.at("experiment"), t.at("main")})
	if err != nil {
		return err
	}
	err = t.do(ctx, "A strategy decides conflicts: all, or those of some keys.",
		[]string{"merge", t.at("experiment"), t.at("main"), "--strategy-for", "notes/=source-wins"},
		[]string{"log", t.at("main"), "--graph"})
	if err != nil {
		return err
	}
	err = t.do(ctx, "A revert undoes it by another commit: nothing is lost. The log of the branch has it all.",
		[]string{"revert", t.at("main"), "main", "--parent", "1"},
		[]string{"diff", t.at("main~1"), t.at("main")},
		[]string{"tag", "create", t.at("after-tour"), t.at("main")},
		[]string{"reflog", t.at("main")})
	if err != nil {
		return err
	}
	return t.do(ctx, "A branch that was deleted comes back with the head that it had. And a check reads it all once more.",
		[]string{"branch", "delete", t.at("experiment")},
		[]string{"branch", "list", t.repo, "--deleted"},
		[]string{"branch", "restore", t.at("experiment")},
		[]string{"ls", t.at("experiment:notes/")},
		[]string{"fsck", t.repo})
}

// notesExpire are rules under which notes go after a week.
const notesExpire = `{"Rules": [{"ID": "old notes", "Status": "Enabled", "Filter": {"Prefix": "notes/"}, "Expiration": {"Days": 7}}]}`

// expire lets a rule remove something by moving the clock. A pass is about all repositories, so that where another one has rules it is a dry run.
func (t *tour) expire(ctx context.Context) error {
	alone, err := t.noOtherRules(ctx)
	if err != nil {
		return err
	}
	t.input = notesExpire
	err = t.do(ctx, "Lifecycle rules say what is to go, and when: notes, a week after they were committed. It is too early for that.",
		[]string{"lifecycle", "set", t.repo, "-"},
		[]string{"lifecycle", "run"},
		[]string{"lifecycle", "explain", t.at("main:notes/today.txt")})
	if err != nil {
		return err
	}
	if !alone {
		return t.do(ctx, "With the clock moved ahead the note would go. Other repositories have rules, too, so it is only looked at.",
			[]string{"lifecycle", "run", "--now", "+8d", "--dry-run"},
			[]string{"lifecycle", "rm", t.repo})
	}
	return t.do(ctx, "With the clock moved ahead the note goes, by a commit. The rule was right, since the branch had shown it for more than a week by then; and older commits still have it.",
		[]string{"lifecycle", "run", "--now", "+8d", "--dry-run"},
		[]string{"lifecycle", "run", "--now", "+8d", "--force"},
		[]string{"diff", t.at("main~1"), t.at("main")},
		[]string{"get", t.at("after-tour:notes/today.txt")},
		[]string{"lifecycle", "rm", t.repo})
}

// noOtherRules reports whether no other repository has lifecycle rules.
func (t *tour) noOtherRules(ctx context.Context) (none bool, err error) {
	err = t.app.use(ctx, reading, func(s *moraine.Store) error {
		for r, err := range s.ListRepositories(ctx, "") {
			if err != nil {
				return err
			}
			if string(r.ID) == t.repo || r.State != graveler.RepositoryActive {
				continue
			}
			if _, err := dailyrun.GetConfiguration(ctx, s, r.ID); !errors.Is(err, dailyrun.ErrNoConfiguration) {
				return err
			}
		}
		none = true
		return nil
	})
	return none, err
}

// changes are commands that change entries on a new branch; files are among them where there are any.
func (t *tour) changes(files []string) [][]string {
	commands := [][]string{
		{"branch", "create", t.at("experiment"), t.at("main")},
		{"put", t.at("experiment:notes/today.txt"), "--size", "120", "--address", "s3://bucket/notes/today.txt", "--meta", "author=me"},
	}
	if len(files) > 0 {
		commands = append(commands, []string{"put", t.at("experiment:" + files[0]), "--size", "7"})
	}
	if len(files) > 1 {
		commands = append(commands, []string{"rm", t.at("experiment:" + files[1])})
	}
	return append(commands, []string{"status", t.at("experiment")}, []string{"diff", t.at("experiment")})
}

// files returns the keys of the first files that were imported.
func (t *tour) files(ctx context.Context) (keys []string, err error) {
	err = t.app.use(ctx, reading, func(s *moraine.Store) error {
		for l, err := range limited(s.List(ctx, graveler.RepositoryID(t.repo), "main", graveler.ListOptions{Prefix: graveler.Key("files/")}), 2) {
			if err != nil {
				return err
			}
			keys = append(keys, string(l.Key))
		}
		return nil
	})
	return keys, err
}

func (t *tour) at(rest string) string { return t.repo + "/" + rest }

// chooseName finds a name that no repository has.
func (t *tour) chooseName(ctx context.Context) error {
	return t.app.use(ctx, creating, func(s *moraine.Store) error {
		for n := 1; ; n++ {
			t.repo = "demo"
			if n > 1 {
				t.repo = fmt.Sprintf("demo-%d", n)
			}
			_, err := s.GetRepository(ctx, graveler.RepositoryID(t.repo))
			if errors.Is(err, graveler.ErrRepositoryNotFound) {
				return nil
			}
			if err != nil && !errors.Is(err, graveler.ErrRepositoryInDeletion) {
				return err
			}
		}
	})
}

// do runs commands, and shows each before its output.
func (t *tour) do(ctx context.Context, about string, commands ...[]string) error {
	if err := t.say(about); err != nil {
		return err
	}
	for _, args := range commands {
		quoted := make([]string, len(args))
		for i, arg := range args {
			quoted[i] = shellQuote(arg)
		}
		piped := ""
		if slices.Contains(args, "-") {
			piped = "echo " + shellQuote(t.input) + " | "
		}
		if err := errors.Join(t.app.printer.line("$ "+piped+"moraine "+strings.Join(quoted, " ")), t.app.printer.flush()); err != nil {
			return err
		}
		global := []string{
			"--store", t.app.store, "--blocks", t.app.blocks, fmt.Sprintf("--quiet=%t", t.app.quiet), fmt.Sprintf("--verbose=%t", t.app.verbose),
		}
		err := execute(ctx, t.app.backends, append(global, args...), strings.NewReader(t.input), t.app.stdout, t.app.stderr)
		if errors.Is(err, graveler.ErrConflict) { // a sight of the tour, not its failure
			err = t.app.printer.line("moraine: " + describe(err))
		}
		if err != nil {
			return err
		}
	}
	return t.app.printer.line("")
}

func (t *tour) say(text string) error { return t.app.printer.line("# " + text) }

// shellQuote puts what a shell would not take literally in quotes.
func shellQuote(arg string) string {
	const literal = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@,+%"
	if arg != "" && strings.Trim(arg, literal) == "" {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}
