// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// checkpointerDir is the variable that tells this program, run again by the test below, to be the checkpointer on the store in
// the directory that it names.
const checkpointerDir = "MORAINE_TEST_CHECKPOINTER"

// lakeCatalog is a catalog that commits every three changes.
func lakeCatalog(s *moraine.Store) (*catalog.Catalog, error) {
	return catalog.New(catalog.Config{Store: s, Checkpoint: catalog.CheckpointPolicy{Changes: 3, Interval: time.Millisecond}})
}

// checkpointer puts versions for ever beside checkpoints, and prints a line for each that was acknowledged.
func checkpointer(dir string) error {
	ctx := context.Background()
	s, err := moraine.Open(ctx, onDisk(dir))
	if err != nil {
		return err
	}
	c, err := lakeCatalog(s)
	if err != nil {
		return err
	}
	go func() {
		_ = c.Run(ctx, func(b catalog.Bucket, err error) { fmt.Fprintln(os.Stderr, b, err); os.Exit(1) })
	}()
	for i := 0; ; i++ {
		key := fmt.Sprint("k", i%5)
		o, err := c.Put(ctx, catalog.Bucket{Repository: "lake"}, key, catalog.Object{PhysicalAddress: "x"}, catalog.Conditions{})
		if err != nil {
			return err
		}
		fmt.Printf("put %s %s\n", key, o.VersionID)
	}
}

// A process that commits on behalf of its users is killed at any point. Each time every version that it had acknowledged is
// there, once, and the next process commits what was left.
func TestKilledCheckpointersLoseNothing(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	s := open(t, onDisk(dir))
	c, err := lakeCatalog(s)
	require.NoError(t, err)
	require.NoError(t, c.CreateBucket(ctx, "lake", catalog.CreateBucketParams{}))
	require.NoError(t, c.SetVersioning(ctx, "lake", catalog.VersioningEnabled))
	require.NoError(t, s.Close())

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acknowledged := map[string]bool{}
	for range 15 {
		killCheckpointer(t, dir, 1+random.IntN(30), acknowledged)
		s := open(t, onDisk(dir))
		c, err := lakeCatalog(s)
		require.NoError(t, err)
		run, stop := context.WithCancel(ctx)
		ended := make(chan error)
		go func() { ended <- c.Run(run, nil) }()
		for uncommitted(t, s) { // until it has taken over what was left
		}
		stop()
		require.NoError(t, <-ended)
		seen := map[string]int{}
		for v, err := range c.Versions(ctx, catalog.Bucket{Repository: "lake", Ref: "main@"}, "", "") {
			require.NoError(t, err)
			seen[v.Key+" "+v.VersionID]++
		}
		for version := range acknowledged {
			require.Equal(t, 1, seen[version], version)
		}
		report, err := c.Mend(ctx, catalog.Bucket{Repository: "lake"})
		require.NoError(t, err)
		require.Zero(t, report.Keys, "moves are atomic on this engine")
		require.NoError(t, s.Close())
	}
	t.Logf("%d acknowledged versions", len(acknowledged))
}

func uncommitted(t *testing.T, s *moraine.Store) bool {
	for _, err := range s.DiffUncommitted(t.Context(), "lake", "main", graveler.DiffOptions{}) {
		require.NoError(t, err)
		return true
	}
	return false
}

// killCheckpointer runs a checkpointer until it has printed a number of lines, kills it, and notes what it acknowledged.
func killCheckpointer(t *testing.T, dir string, lines int, acknowledged map[string]bool) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), checkpointerDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		if f := strings.Fields(scanner.Text()); len(f) == 3 {
			acknowledged[f[1]+" "+f[2]] = true
		}
		if lines--; lines == 0 {
			require.NoError(t, cmd.Process.Kill()) // and go on reading: what is in the pipe was acknowledged too
		}
	}
	require.NoError(t, scanner.Err())
	require.Error(t, cmd.Wait(), "killed")
	require.LessOrEqual(t, lines, 0, "the checkpointer ended by itself")
}
