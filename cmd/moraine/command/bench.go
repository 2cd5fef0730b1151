// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moraine-store/moraine/benchmarks"
	"github.com/moraine-store/moraine/benchmarks/chart"
	"github.com/moraine-store/moraine/benchmarks/result"
)

// benchProcess is the command that the suite runs in other processes.
const benchProcess = "commit-process"

func (a *app) bench() *cobra.Command {
	var commands []*cobra.Command
	for _, w := range benchmarks.Workloads(benchmarks.Full) {
		commands = append(commands, a.benchWorkload(w))
	}
	g := group("bench", "Measure the store on any engine, and compare it with what limits it", append(commands, a.benchAll(), a.benchCompare(), a.benchProcess())...)
	g.Long = "Measure the store on any engine, and compare it with what limits it: the raw engine, the disk, other files of sorted records. Each workload runs in a new store in a temporary directory (PostgreSQL is started for it, if it is " +
		"installed), or in the store that --store names, which must be empty and is empty again afterwards; the environment does not count here. What is compared is measured several times, in turn; shown are medians with the range. " +
		"Every run checks that the store holds what it acknowledged, and fails where it does not. Sizes are those that the targets are for; --short takes smaller ones. benchmarks/README.md says more."
	return g
}

// benchFlags are those of every command that measures.
type benchFlags struct {
	engines    string
	short      bool
	rounds     int
	seed       uint64
	valueBytes int
	dir, out   string
}

func (f *benchFlags) define(flags *pflag.FlagSet, engines string) {
	flags.StringVar(&f.engines, "engine", engines, "engines to measure, side by side, separated by commas: "+strings.Join(benchmarks.Engines(), ", "))
	flags.BoolVar(&f.short, "short", false, "take smaller sizes and shorter times, except where a flag says otherwise")
	flags.IntVar(&f.rounds, "rounds", 5, "how often what is compared is measured, in turn")
	flags.Uint64Var(&f.seed, "seed", 1, "what keys, values and the order of reads follow from")
	flags.IntVar(&f.valueBytes, "value-bytes", 200, "size of a value")
	flags.StringVar(&f.dir, "dir", "", "where temporary directories are made, and thus which disk is measured (default: $TMPDIR, or /tmp)")
	flags.StringVar(&f.out, "out", "", "directory to write all figures (result.json) and the plots to")
}

func (f *benchFlags) setting() benchmarks.Setting {
	if f.short {
		return benchmarks.Short
	}
	return benchmarks.Full
}

func (a *app) benchWorkload(w benchmarks.Workload) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use: w.Name, Short: w.About, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := w.Use(f.setting(), cmd.Flags()); err != nil {
				return err
			}
			d, err := a.measure(cmd, &f, []benchmarks.Workload{w})
			if d == nil {
				return err
			}
			_, failed := a.report(d, f.out)
			return errors.Join(err, failed)
		},
	}
	w.Flags(cmd.Flags())
	f.define(cmd.Flags(), "bolt")
	return cmd
}

func (a *app) benchAll() *cobra.Command {
	var f benchFlags
	var readme string
	cmd := &cobra.Command{
		Use: "all", Short: "Run all workloads, and compare the figures with the targets", Args: cobra.NoArgs,
		Example: "moraine bench all --short --out figures",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if readme != "" && f.out == "" {
				return usageError{"--readme needs --out, where the plots are"}
			}
			d, err := a.measure(cmd, &f, benchmarks.Workloads(f.setting()))
			if d == nil {
				return err
			}
			plots, failed := a.report(d, f.out)
			if err = errors.Join(err, failed); err == nil && readme != "" {
				err = benchmarks.Refresh(readme, d, plots, f.out)
			}
			return err
		},
	}
	f.define(cmd.Flags(), "bolt,postgres,pebble")
	cmd.Flags().StringVar(&readme, "readme", "", "page whose figures and plots are replaced by these, unless something failed")
	return cmd
}

// measure runs workloads as the flags say.
func (a *app) measure(cmd *cobra.Command, f *benchFlags, workloads []benchmarks.Workload) (*result.Document, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := benchmarks.Config{
		Dir: f.dir, Setting: f.setting(), Rounds: f.rounds, Seed: f.seed, ValueBytes: f.valueBytes,
		Self: []string{self, "bench", benchProcess}, Progress: func(line string) { a.note("%s …", line) },
	}
	flags := cmd.Flags()
	switch {
	case !flags.Changed("store"):
		c.Engines = strings.Split(f.engines, ",")
	case flags.Changed("engine"):
		return nil, usageError{"--engine and --store exclude each other"}
	default:
		c.Store = a.store
	}
	if flags.Changed("blocks") {
		c.Blocks = a.blocks
	}
	return benchmarks.Run(cmd.Context(), c, workloads)
}

// report prints a document, and writes it to a directory, with its plots, whose names it returns.
func (a *app) report(d *result.Document, out string) (plots []string, err error) {
	if a.printer.json {
		err = a.printer.object(d)
	} else {
		err = d.WriteText(a.printer.w)
	}
	if err != nil || out == "" {
		return nil, err
	}
	if plots, err = chart.Write(d, out); err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(out, "result.json"))
	if err != nil {
		return nil, err
	}
	return plots, errors.Join(d.Write(f), f.Close())
}

func (a *app) benchCompare() *cobra.Command {
	return &cobra.Command{
		Use: "compare BEFORE.json AFTER.json", Short: "Compare two results, figure by figure",
		Long: "Compare two results, which are what --out writes into result.json, figure by figure, where both have measured the same. Shown is the ratio of the medians, and between what it would be with any other of the samples. " +
			"A figure is better or worse only where even the samples that are closest to each other say so.",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			before, err := result.Read(args[0])
			if err != nil {
				return err
			}
			after, err := result.Read(args[1])
			if err != nil {
				return err
			}
			changes := result.Compare(before, after)
			if !a.printer.json {
				return result.WriteChanges(a.printer.w, changes)
			}
			for _, c := range changes {
				if err := a.printer.object(c); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) benchProcess() *cobra.Command {
	return &cobra.Command{
		Use: benchProcess, Short: "Commit as standard input says", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return benchmarks.Serve(cmd.Context(), os.Stdin, a.stdout)
		},
	}
}
