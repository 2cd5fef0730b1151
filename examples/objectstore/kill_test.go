// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/catalog"
)

// victim is the variable that tells this program to be the object store, not its test.
const victim = "OBJECTSTORE_TEST_VICTIM"

// startVictim starts an object store as a process of its own and returns its URL.
func startVictim(t *testing.T, dir string, flags ...string) (process *exec.Cmd, url string) {
	t.Helper()
	process = exec.Command(os.Args[0], append(flags, "-data", dir, "-listen", "127.0.0.1:0", "-keep-days", "1")...)
	process.Env = append(os.Environ(), victim+"=1")
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, process.Start())
	t.Cleanup(func() { _ = process.Process.Kill() }) // where the test ended early
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), lines.Err())
	url, ok := strings.CutPrefix(lines.Text(), "listening on ")
	require.True(t, ok, lines.Text())
	return process, "http://" + url
}

// writer is one of those who change objects. Each has keys of its own, so that it knows what they hold.
type writer struct {
	random *rand.Rand
	keys   []string
	// known is what was acknowledged last, "" being no object; maybe is what was sent after that, and not acknowledged: it may be there or not.
	known, maybe map[string]string
	acknowledged int
	refused      []string // answers other than success, of which there should be none
}

// write puts and deletes until the store is gone.
func (w *writer) write(url string) {
	for {
		key := w.keys[w.random.IntN(len(w.keys))]
		method, content := http.MethodPut, fmt.Sprintf("%s %x", key, w.random.Uint64())
		if w.random.IntN(5) == 0 {
			method, content = http.MethodDelete, ""
		}
		w.maybe[key] = content
		r, err := http.NewRequest(method, url+object(key), strings.NewReader(content))
		if err != nil {
			return
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(answer.Body)
		if answer.Body.Close() != nil || err != nil {
			return
		}
		if answer.StatusCode/100 != 2 {
			w.refused = append(w.refused, fmt.Sprintf("%s %s: %s", method, key, body))
			return
		}
		w.known[key] = content
		delete(w.maybe, key)
		w.acknowledged++
	}
}

// check compares what is there with what was acknowledged, and takes note of what it finds.
func (w *writer) check(c client) {
	c.t.Helper()
	require.Empty(c.t, w.refused)
	for _, key := range w.keys {
		got := c.do(http.MethodGet, object(key), "")
		if got.status == http.StatusNotFound {
			got.body = ""
		} else {
			got.is(http.StatusOK)
		}
		sent, unsure := w.maybe[key]
		if !unsure || got.body != sent {
			require.Equal(c.t, w.known[key], got.body, "%s", key)
		}
		w.known[key] = got.body
		delete(w.maybe, key)
	}
}

// An object store under many writers is killed at random times. All that was acknowledged is there, with its bytes; clean-up
// leaves no bytes that nothing refers to, and takes none that something does; and when retention has let go of the past there are
// the bytes of the present, and no others.
func TestKilledStoresKeepEveryObjectAndNoOtherBytes(t *testing.T) {
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var writers []*writer
	for i := range 8 {
		w := &writer{random: rand.New(rand.NewPCG(seed, uint64(i+1))), known: map[string]string{}, maybe: map[string]string{}}
		for k := range 6 {
			w.keys = append(w.keys, fmt.Sprintf("w%d/%d", i, k))
		}
		writers = append(writers, w)
	}
	rounds := 8
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		rounds = 100
	}
	for round := range rounds {
		process, url := startVictim(t, dir, "-checkpoint-changes", "20", "-checkpoint-interval", "100ms", "-clean-every", "50ms")
		c := client{t, url}
		if round == 0 {
			c.do(http.MethodPut, "/"+bucket, "").is(http.StatusOK)
		}
		for _, w := range writers {
			w.check(c)
		}
		var writing sync.WaitGroup
		for _, w := range writers {
			writing.Go(func() { w.write(url) })
		}
		// The moment is what is tried, at random; nothing waits for it.
		kill := time.AfterFunc(time.Duration(50+random.IntN(700))*time.Millisecond, func() { _ = process.Process.Kill() })
		writing.Wait()
		kill.Stop()
		_ = process.Process.Kill()
		require.Error(t, process.Wait(), "killed")
	}

	f := newFixture(t, dir, nil)
	acknowledged := 0
	for _, w := range writers {
		w.check(f.client)
		acknowledged += w.acknowledged
	}
	before := len(f.addresses())
	require.NoError(t, f.cleaner.clean(t.Context()))
	f.days(1)
	require.Equal(t, f.referred(), f.addresses())
	t.Logf("%d acknowledged, %d files of bytes before clean-up, %d referred to", acknowledged, before, len(f.addresses()))
	for _, w := range writers {
		w.check(f.client)
	}

	f.do(http.MethodDelete, object(writers[0].keys[0]), "").is(http.StatusNoContent)
	writers[0].known[writers[0].keys[0]] = ""
	f.days(9)
	present := map[string]bool{}
	for o, err := range f.catalog.Objects(context.Background(), photos, "", "") {
		require.NoError(t, err)
		present[o.PhysicalAddress] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(present)), f.addresses())
	for _, w := range writers {
		w.check(f.client)
	}
}

// A store that is told to stop ends by itself, and everything is committed then.
func TestAStoppedStoreHasCommittedEverything(t *testing.T) {
	dir := t.TempDir()
	process, url := startVictim(t, dir, "-checkpoint-interval", "1h")
	c := client{t, url}
	c.do(http.MethodPut, "/"+bucket, "").is(http.StatusOK)
	c.put("k", "one")
	require.NoError(t, process.Process.Signal(os.Interrupt))
	require.NoError(t, process.Wait())
	f := newFixture(t, dir, nil)
	_, err := f.catalog.Get(t.Context(), catalog.Bucket{Repository: bucket, Ref: "main@"}, "k", catalog.GetParams{})
	require.NoError(t, err)
}

func TestFlagsThatMeanNothingAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-keep-days", "0"}, {"-clean-every", "-1h"}, {"more"}} {
		require.Error(t, run(t.Context(), args), args)
	}
}
