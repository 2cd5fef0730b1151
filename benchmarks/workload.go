// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// Workload is one thing that is measured.
type Workload struct {
	Name  string
	About string // one line
	parameters
}

// parameters are those of a workload, and what it does with them.
type parameters interface {
	// Flags defines a flag for each parameter, which has the value of the workload's setting unless it is given.
	Flags(f *pflag.FlagSet)
	run(ctx context.Context, b *bench) error
}

// Setting is a set of sizes and durations.
type Setting int

const (
	// Full is as large as the targets demand; some workloads take minutes per engine.
	Full Setting = iota
	// Short is for a look: all workloads on three engines in minutes.
	Short
	// Tiny is for tests: its figures mean nothing.
	Tiny
)

func (s Setting) String() string { return [...]string{"full", "short", "tiny"}[s] }

// of chooses the value for a setting.
func of[T any](s Setting, full, short, tiny T) T { return [...]T{full, short, tiny}[s] }

// Workloads returns all workloads, in the order in which they run, with the parameters of a setting.
func Workloads(s Setting) []Workload {
	return []Workload{
		// The first one, because the process does not give back all memory that a run has taken.
		{"commit-size", "Commits of more and more entries, and the memory that they take", newCommitSize(s)},
		{"kv", "Writes to the engine alone, against the raw engine", newKVWrites(s)},
		{"staged-writes", "Writes to one branch, against the engine's own", newStagedWrites(s)},
		{"long-commit", "One long commit while writers keep staging on the same branch", newLongCommit(s)},
		{"small-commits", "Commits of one change, on one branch and on many", newSmallCommits(s)},
		{"one-change", "What a few changes cost in small and in large repositories", newOneChange(s)},
		{"list", "Pages and whole listings of a commit and of a branch", newList(s)},
		{"point-get", "Single entries of a commit and of a branch, against raw bbolt", newPointGet(s)},
		{"merge", "A merge of some changes, against committing them", newMerge(s)},
		{"import", "Sorted entries into an empty branch", newImport(s)},
		{"concurrent-commits", "Goroutines and processes that commit to one branch", newConcurrentCommits(s)},
		{"objects", "Objects of buckets: puts against staged writes, listings with a delimiter, many deletions at once", newStoring(s)},
		{"lifecycle", "Lifecycle passes that find nothing due, something every day, and all at once", newExpiring(s)},
	}
}

// Use gives those parameters of a workload that none of the flags has set the values of a setting.
func (w Workload) Use(s Setting, flags *pflag.FlagSet) error {
	all := Workloads(s)
	at := slices.IndexFunc(all, func(o Workload) bool { return o.Name == w.Name })
	defaults := pflag.NewFlagSet(w.Name, pflag.ContinueOnError)
	all[at].Flags(defaults)
	var err error
	defaults.VisitAll(func(f *pflag.Flag) {
		if err == nil && !flags.Changed(f.Name) {
			err = flags.Set(f.Name, f.DefValue)
		}
	})
	return err
}

// numbers is the value of a flag that takes several positive numbers, and puts them in ascending order.
type numbers []int

func (n *numbers) String() string {
	var texts []string
	for _, v := range *n {
		texts = append(texts, strconv.Itoa(v))
	}
	return strings.Join(texts, ",")
}

// Set implements [pflag.Value].
func (n *numbers) Set(text string) error {
	var all []int
	for part := range strings.SplitSeq(text, ",") {
		v, err := strconv.Atoi(part)
		if err != nil || v < 1 {
			return fmt.Errorf("%q is not a number above zero", part)
		}
		all = append(all, v)
	}
	slices.Sort(all)
	*n = slices.Compact(all)
	return nil
}

// Type implements [pflag.Value].
func (n *numbers) Type() string { return "N,N,..." }

// positive is the value of a flag that takes one.
type positive int

func (p *positive) String() string { return strconv.Itoa(int(*p)) }

// Set implements [pflag.Value].
func (p *positive) Set(text string) error {
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 {
		return fmt.Errorf("%q is not a number above zero", text)
	}
	*p = positive(v)
	return nil
}

// Type implements [pflag.Value].
func (p *positive) Type() string { return "N" }
