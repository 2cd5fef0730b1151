// SPDX-License-Identifier: Apache-2.0

package moraine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// victimDir is the variable that tells this program, run again by the test below, to be the victim on the store in the directory that it names.
const victimDir = "MORAINE_TEST_VICTIM"

// victim stages and commits for ever, and prints a line for everything that was acknowledged.
func victim(dir string) error {
	ctx := context.Background()
	s, err := moraine.Open(ctx, onDisk(dir))
	if err != nil {
		return err
	}
	run := time.Now().UnixNano()
	for i := 0; ; i++ {
		k := fmt.Sprintf("k%d/%d", i%40, run)
		if err := s.Set(ctx, "lake", "main", graveler.Key(k), entryValue(fmt.Sprint(i))); err != nil {
			return err
		}
		fmt.Printf("staged %s %d\n", k, i)
		if i%7 == 6 {
			res, err := s.Commit(ctx, "lake", "main", graveler.CommitParams{Message: fmt.Sprint(i)})
			if err != nil {
				return err
			}
			fmt.Printf("committed %s %s\n", res.Commit.ID, k)
		}
	}
}

// A process that stages and commits is killed fifty times at any point. Each time everything that it had acknowledged is there,
// and the next commit works.
func TestKilledProcessesLoseNothing(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	s := open(t, onDisk(dir))
	_, err := s.CreateRepository(ctx, "lake", graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.NoError(t, s.Close())

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	staged, commits := map[string]string{}, map[string]string{}
	for round := range 50 {
		killVictim(t, dir, 1+random.IntN(30), staged, commits)
		s := open(t, onDisk(dir))
		for k, text := range staged {
			v, err := s.Get(ctx, "lake", "main", graveler.Key(k))
			require.NoError(t, err, k)
			require.Equal(t, text, string(v.Data), k)
		}
		for id, k := range commits {
			_, err := s.Get(ctx, "lake", id, graveler.Key(k))
			require.NoError(t, err, "%s in commit %s", k, id)
		}
		_, err := s.Commit(ctx, "lake", "main", graveler.CommitParams{Message: fmt.Sprint("after kill ", round)})
		if !errors.Is(err, graveler.ErrNoChanges) {
			require.NoError(t, err)
		}
		require.NoError(t, s.Close())
	}
	t.Logf("%d acknowledged writes, %d acknowledged commits", len(staged), len(commits))
}

// killVictim runs a victim until it has printed a number of lines, kills it, and notes what it acknowledged.
func killVictim(t *testing.T, dir string, lines int, staged, commits map[string]string) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	scanner := bufio.NewScanner(out)
	for scanner.Scan() {
		switch f := strings.Fields(scanner.Text()); {
		case len(f) == 3 && f[0] == "staged":
			staged[f[1]] = f[2]
		case len(f) == 3 && f[0] == "committed" && len(f[1]) == 64:
			commits[f[1]] = f[2]
		}
		if lines--; lines == 0 {
			require.NoError(t, cmd.Process.Kill()) // and go on reading: what is in the pipe was acknowledged too
		}
	}
	require.NoError(t, scanner.Err())
	require.Error(t, cmd.Wait(), "killed")
	require.LessOrEqual(t, lines, 0, "the victim ended by itself")
}
