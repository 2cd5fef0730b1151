// SPDX-License-Identifier: Apache-2.0

// Package command is the command line of a Moraine store: the tree of commands, and [Run], which executes one of them within this process.
//
// A command turns its arguments into calls of the packages below and prints what they return; it has no logic of its own. There
// is one file per group of commands. The rest is what they share: address.go reads how repositories, refs and entries are named,
// store.go opens the store, output.go and format.go print, errors.go says what an error means for the exit code and what may
// help.
//
// Results go to standard output: text for people, or one JSON object per line, whose fields keep their names and meaning between
// versions. Everything else goes to standard error; an error is exactly one line there.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const about = `Moraine keeps versions of the metadata of an object store: repositories with branches, commits and tags over entries.

An entry is named REPO/REF:KEY, a ref REPO/REF, a repository REPO. A ref is a branch, a tag, a commit ID or the beginning of one, and may go on
with ~N (N times the first parent), ^N (the N-th parent), or @ (the head of a branch, without its uncommitted changes). get, ls and
status see a bare branch with its uncommitted changes, all other commands see its head.

The store is named by --store and --blocks or by the environment (MORAINE_STORE, MORAINE_BLOCKS); by default it is in the directory
.moraine where the command runs. 'moraine repo create' makes one. 'moraine completion SHELL' prints what a shell needs to complete
commands.

Results go to standard output, for people or (--output json) as one JSON object per line: names in snake case, times in UTC, and a key that is
not UTF-8 once more as key_base64. Commands that only change something print nothing for people; in JSON, create, restore and load print what show would, compact,
checkpoint and 'branch reset' what 'branch show' would, put, cp and rm print what they wrote or removed, and delete prints nothing. All else goes to standard error; an error is
one line.

Exit codes: 0 done; 1 failed; 2 wrong usage or a bad name; 3 not found; 4 the state of the store forbids it (exists already, merge conflict,
nothing to commit, failed precondition, uncommitted changes, read-only).`

// app is what the commands of one run share.
type app struct {
	store, blocks, output string
	quiet, verbose        bool
	backends              Backends
	lockClock             func() time.Time // by which locks of objects hold; nil: that of the machine

	stdout, stderr io.Writer
	printer        *printer // of results, on stdout
	color          bool     // of text on stdout
	started        bool     // the command line was understood
}

// Main is the whole program: it executes the command line of this process, and ends it. A signal ends the command in good order,
// a second one at once. A program of somebody else who has back ends of his own names them; nil: there are none.
func Main(own Backends) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(Run(ctx, own, os.Args[1:], os.Stdout, os.Stderr))
}

// Run executes the command line args, which begin after the program's name, and returns the exit code. When ctx is cancelled the
// command ends early and says so.
func Run(ctx context.Context, own Backends, args []string, stdout, stderr io.Writer) int {
	err := execute(ctx, own, args, os.Stdin, stdout, stderr)
	if err != nil {
		fmt.Fprintf(stderr, "moraine: %s\n", describe(err))
	}
	return exitCode(err)
}

func execute(ctx context.Context, own Backends, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	a := &app{
		stdout: stdout, stderr: stderr, printer: newPrinter(stdout), backends: own,
		color: isTerminal(stdout) && os.Getenv("NO_COLOR") == "",
	}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(a.printer.w)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !a.started {
		err = misused(cmd, err)
	}
	return errors.Join(err, a.printer.flush())
}

// exclusiveFlags finds the names in what cobra says of flags that exclude each other.
var exclusiveFlags = regexp.MustCompile(`none of the others can be; \[(.*)\] were all set`)

// misused is the error of a command line that was not understood.
func misused(cmd *cobra.Command, err error) error {
	if both := exclusiveFlags.FindStringSubmatch(err.Error()); both != nil {
		err = fmt.Errorf("--%s: give one of them only", strings.ReplaceAll(both[1], " ", " and --"))
	}
	if cmd.HasSubCommands() {
		return hinted{usageError{err.Error()}, "see '" + cmd.CommandPath() + " --help'"}
	}
	return hinted{usageError{err.Error()}, "usage: " + strings.TrimSuffix(cmd.UseLine(), " [flags]")}
}

// Root returns the tree of commands, for tools that describe it.
func Root() *cobra.Command {
	return (&app{stdout: io.Discard, stderr: io.Discard, printer: newPrinter(io.Discard)}).root()
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "moraine", Short: "Versions for the metadata of an object store", Long: about,
		SilenceErrors: true, SilenceUsage: true, DisableSuggestions: true,
		PersistentPreRunE: a.prepare,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
			return fmt.Errorf("--%s %q: not a value for this flag", invalid.GetFlag().Name, invalid.GetValue()) // without the names of Go functions
		}
		return err
	})
	flags := root.PersistentFlags()
	flags.StringVar(&a.store, "store", defaultStore, "URL of the key/value store (environment: MORAINE_STORE)")
	flags.StringVar(&a.blocks, "blocks", defaultBlocks, "URL of the block storage (environment: MORAINE_BLOCKS)")
	flags.StringVar(&a.output, "output", "text", "form of results: text or json")
	flags.BoolVar(&a.quiet, "quiet", false, "show no progress and no notes, only results and errors")
	flags.BoolVar(&a.verbose, "verbose", false, "log what is done to standard error")
	root.AddCommand(
		a.demo(), a.repo(), a.branch(), a.tag(),
		a.importCommand(), a.put(), a.get(), a.ls(), a.rm(), a.cp(), a.tagging(), a.versioning(), a.objectLock(), a.uploads(), a.checkpoint(), a.mend(),
		a.status(), a.commit(), a.log(), a.commits(), a.show(), a.diff(), a.compare(), a.reflog(), a.changes(),
		a.merge(), a.revert(), a.cherryPick(), a.refs(),
		a.compact(), a.clean(), a.retention(), a.lifecycle(), a.migrate(), a.copyCommand(), a.fsck(), a.stats(), a.diagnose(), a.clock(), a.kv(), a.bench(), a.version(),
	)
	return root
}

// prepare settles the global flags, and marks the command line as understood.
func (a *app) prepare(cmd *cobra.Command, _ []string) error {
	if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
		return err
	}
	for flag, value := range map[string]*string{"store": &a.store, "blocks": &a.blocks} {
		if v := os.Getenv("MORAINE_" + strings.ToUpper(flag)); v != "" && !cmd.Flags().Changed(flag) {
			*value = v
		}
	}
	switch a.output {
	case "text":
	case "json":
		a.printer.json = true
	default:
		return fmt.Errorf("--output %s: expected text or json", a.output)
	}
	if a.quiet && a.verbose {
		return errors.New("--quiet and --verbose exclude each other")
	}
	a.started = true
	return nil
}

// group returns a command that only holds others.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: name, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	g.AddCommand(commands...)
	return g
}

// note tells people what a result does not show.
func (a *app) note(format string, args ...any) {
	if !a.quiet {
		a.warn("%s", shorten(fmt.Sprintf(format, args...)))
	}
}

// warn is note for what must not be missed.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.stderr, format+"\n", args...)
}
