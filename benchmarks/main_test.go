// SPDX-License-Identifier: Apache-2.0

package benchmarks

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

const processArgument = "commit-process"

// TestMain makes this binary the process that concurrent-commits starts, too.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == processArgument {
		if err := Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// config is for runs of a moment.
func config(t *testing.T, engines ...string) Config {
	return Config{Engines: engines, Dir: t.TempDir(), Setting: Tiny, Rounds: 2, Seed: 1, ValueBytes: 100, Self: []string{os.Args[0], processArgument}}
}

// tiny returns the workload with a name, with parameters that the given ones replace.
func tiny(t *testing.T, name string, params map[string]string) Workload {
	for _, w := range Workloads(Tiny) {
		if w.Name != name {
			continue
		}
		flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
		w.Flags(flags)
		for flag, value := range params {
			require.NoError(t, flags.Set(flag, value))
		}
		return w
	}
	require.Fail(t, "no such workload", name)
	return Workload{}
}
