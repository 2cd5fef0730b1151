// SPDX-License-Identifier: Apache-2.0

package graveler_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/block/local"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/committed"
	"github.com/moraine-store/moraine/pkg/graveler/ref"
	"github.com/moraine-store/moraine/pkg/graveler/staging"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
)

// The variables that make this program, run again by the test below, a process that takes steps on a store.
const (
	stepperStore = "MORAINE_TEST_STORE"
	stepperFiles = "MORAINE_TEST_FILES"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(stepperStore); url != "" {
		if err := stepper(url, os.Getenv(stepperFiles)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// stepRecord is an event as a process reports it.
type stepRecord struct {
	Do, Key, Text, Value, View, Commit, Err string
	Began, Done                             int64
}

// outcomes are the errors whose outcome is known, by the names under which they are reported.
var outcomes = map[string]error{
	"absent": graveler.ErrEntryNotFound, "refused": graveler.ErrPreconditionFailed, "no changes": graveler.ErrNoChanges,
}

const stepsPerClient = 5

// openProcess opens a store of its own on a database and a directory.
func openProcess(ctx context.Context, url, files string) (g *graveler.Graveler, closeAll func() error, err error) {
	store, err := kv.Open(ctx, url, kv.Engines{"postgres": postgres.Open}, kv.OpenOptions{})
	if err != nil {
		return nil, nil, err
	}
	blocks, err := local.OpenDir(files, block.OpenOptions{})
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	trees, err := committed.New(committed.Config{Storage: func(_ context.Context, ns string) (block.Storage, error) { return block.Sub(blocks, ns), nil }})
	if err == nil {
		g, err = graveler.New(graveler.Config{Refs: ref.New(store), Staging: staging.New(store), Trees: trees, Grace: time.Nanosecond})
	}
	return g, func() error { return errors.Join(trees.Close(), blocks.Close(), store.Close()) }, err
}

// stepper takes a round of steps with two clients for each seed that it reads, and reports them in one line.
func stepper(url, files string) error {
	ctx := context.Background()
	g, closeAll, err := openProcess(ctx, url, files)
	if err != nil {
		return err
	}
	report := json.NewEncoder(os.Stdout)
	for in := json.NewDecoder(os.Stdin); ; {
		var round struct {
			Repository graveler.RepositoryID
			Seed       uint64
		}
		if err := in.Decode(&round); err == io.EOF {
			return closeAll()
		} else if err != nil {
			return errors.Join(err, closeAll())
		}
		var records [2][]stepRecord
		var clients sync.WaitGroup
		for c := range records {
			clients.Go(func() { records[c] = takeRound(ctx, g, round.Repository, round.Seed+uint64(c)) })
		}
		clients.Wait()
		if err := report.Encode(append(records[0], records[1]...)); err != nil {
			return errors.Join(err, closeAll())
		}
	}
}

func takeRound(ctx context.Context, g *graveler.Graveler, repo graveler.RepositoryID, seed uint64) []stepRecord {
	random := rand.New(rand.NewPCG(seed, 3))
	kinds := []string{"set", "set", "delete", "set-if-absent", "delete-prefix", "get", "get", "list", "commit", "compact", "maintain"}
	var records []stepRecord
	for i := range stepsPerClient {
		e := event{step: step{do: kinds[random.IntN(len(kinds))], key: []string{"a", "b", "b/c"}[random.IntN(3)], text: fmt.Sprint(seed, "-", i)}}
		began := time.Now().UnixNano()
		err := take(ctx, g, repo, &e)
		r := stepRecord{Do: e.do, Key: e.key, Text: e.text, Value: e.value, View: e.view, Commit: string(e.commit), Began: began, Done: time.Now().UnixNano()}
		if err != nil {
			r.Err = err.Error()
			for name, known := range outcomes {
				if errors.Is(err, known) {
					r.Err = name
				}
			}
		}
		records = append(records, r)
	}
	return records
}

// Two processes with two clients each work on one branch on PostgreSQL, and their merged history must be one that the contract of a branch allows.
func TestHistoriesOfTwoProcessesAreLinearizable(t *testing.T) {
	rounds := 60
	if nightly() {
		rounds = 5000
	}
	ctx := context.Background()
	url, files := testpg.Start(t).NewDatabase(t), t.TempDir()
	g, closeAll, err := openProcess(ctx, url, files)
	require.NoError(t, err)
	defer func() { require.NoError(t, closeAll()) }()
	processes := []*process{startProcess(t, url, files), startProcess(t, url, files)}

	first, events := rand.Uint64(), 0
	for round := range rounds {
		seed := first + uint64(round)*4
		repo := graveler.RepositoryID(fmt.Sprintf("round-%d", round))
		setScene(t, g, repo)
		for i, p := range processes {
			require.NoError(t, p.to.Encode(map[string]any{"Repository": repo, "Seed": seed + uint64(2*i)}))
		}
		var history []porcupine.Operation
		for i, p := range processes {
			var records []stepRecord
			require.NoError(t, p.from.Decode(&records))
			for n, r := range records {
				e := r.event(t, g, repo)
				if e.do == "commit" && errors.Is(e.err, graveler.ErrNoChanges) {
					continue // what the head was meanwhile is not known here
				}
				history = append(history, porcupine.Operation{ClientId: 10*i + n/stepsPerClient, Input: e, Call: r.Began, Output: e, Return: r.Done})
			}
		}
		last := &event{step: step{do: "list"}}
		last.view, last.err = listed(ctx, g, repo, "dev")
		history = append(history, porcupine.Operation{ClientId: 99, Input: last, Call: time.Now().UnixNano(), Output: last, Return: time.Now().UnixNano() + 1})
		events += len(history)
		if result := porcupine.CheckOperationsTimeout(branchSpec, history, 20*time.Second); result != porcupine.Ok {
			for _, op := range history {
				t.Logf("%d [%d, %d] %+v", op.ClientId, op.Call, op.Return, op.Output)
			}
			t.Fatalf("seed %d: %s", seed, result)
		}
		require.NoError(t, g.DeleteRepository(ctx, repo))
	}
	for _, p := range processes {
		p.stop(t)
	}
	t.Logf("%d histories, %d steps", rounds, events)
}

// setScene makes a repository with what the model of a branch begins with.
func setScene(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID) {
	ctx := context.Background()
	_, err := g.CreateRepository(ctx, repo, graveler.CreateRepositoryParams{})
	require.NoError(t, err)
	require.NoError(t, g.Set(ctx, repo, "main", key("b"), value("0")))
	_, err = g.Commit(ctx, repo, "main", graveler.CommitParams{})
	require.NoError(t, err)
	_, err = g.CreateBranch(ctx, repo, "dev", "main")
	require.NoError(t, err)
}

// event turns a report into what the model compares; what a commit holds is read now.
func (r stepRecord) event(t *testing.T, g *graveler.Graveler, repo graveler.RepositoryID) *event {
	e := &event{step: step{do: r.Do, key: r.Key, text: r.Text}, value: r.Value, view: r.View}
	if r.Err != "" {
		e.err = outcomes[r.Err]
		require.Error(t, e.err, "unexpected error of %s: %s", e.step, r.Err)
	}
	if r.Do == "commit" && r.Err == "" {
		view, err := listed(context.Background(), g, repo, r.Commit)
		require.NoError(t, err)
		e.view = view
	}
	return e
}

// process is a stepper that runs.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	to   *json.Encoder
	from *json.Decoder
}

func startProcess(t *testing.T, url, files string) *process {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), stepperStore+"="+url, stepperFiles+"="+files)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return &process{cmd: cmd, in: in, to: json.NewEncoder(in), from: json.NewDecoder(bufio.NewReader(out))}
}

func (p *process) stop(t *testing.T) {
	require.NoError(t, p.in.Close())
	require.NoError(t, p.cmd.Wait())
}
