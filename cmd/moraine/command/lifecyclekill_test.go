// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/catalog"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/lifecycle"
	"github.com/moraine-store/moraine/pkg/lifecycle/dailyrun"
)

// killed is a store on disk whose passes are killed: some buckets, with and without versions, whose objects below due/ go after a
// day, those below later/ after three, and all others never.
type killed struct {
	*testing.T
	dir   string
	puts  int // rounds of objects
	kills int
}

var killedBuckets = []graveler.RepositoryID{"plain", "versioned", "counted"}

const killedObjects = 8 // of each kind, that are put in a round

func newKilled(t *testing.T) *killed {
	k := &killed{T: t, dir: t.TempDir()}
	k.use(func(s *moraine.Store, c *catalog.Catalog) {
		for _, bucket := range killedBuckets {
			require.NoError(t, c.CreateBucket(t.Context(), bucket, catalog.CreateBucketParams{}))
			if bucket != "plain" {
				require.NoError(t, c.SetVersioning(t.Context(), bucket, catalog.VersioningEnabled))
			}
			rules := `{"Rules":[{"ID":"a","Status":"Enabled","Filter":{"Prefix":"due/"},"Expiration":{"Days":1}},{"ID":"b","Status":"Enabled","Filter":{"Prefix":"later/"},"Expiration":{"Days":3}}`
			if bucket == "counted" {
				rules += `,{"ID":"c","Status":"Enabled","Filter":{"Prefix":"due/"},"NoncurrentVersionExpiration":{"NewerNoncurrentVersions":1}}`
			}
			configuration, err := lifecycle.ParseJSON([]byte(rules + `]}`))
			require.NoError(t, err)
			require.NoError(t, dailyrun.SetConfiguration(t.Context(), s, bucket, configuration))
		}
	})
	return k
}

func (k *killed) options() (store, blocks string) {
	return "bolt:" + filepath.Join(k.dir, "meta.db"), "file:" + filepath.Join(k.dir, "blocks")
}

func (k *killed) use(do func(s *moraine.Store, c *catalog.Catalog)) {
	store, blocks := k.options()
	s, err := moraine.Open(k.Context(), moraine.Options{Store: store, Blocks: blocks})
	require.NoError(k, err)
	c, err := catalog.New(catalog.Config{Store: s})
	require.NoError(k, err)
	do(s, c)
	require.NoError(k, s.Close())
}

// put puts a round of objects.
func (k *killed) put() {
	k.puts++
	k.use(func(s *moraine.Store, c *catalog.Catalog) {
		for _, bucket := range killedBuckets {
			for n := range killedObjects {
				for _, kind := range []string{"due", "later", "kept"} {
					key := fmt.Sprintf("%s/%d/%d", kind, k.puts, n)
					_, err := c.Put(k.Context(), catalog.Bucket{Repository: bucket}, key, catalog.Object{PhysicalAddress: key, Size: 1}, catalog.Conditions{})
					require.NoError(k, err)
				}
			}
			_, err := s.Commit(k.Context(), bucket, "main", graveler.CommitParams{Committer: "user"})
			require.NoError(k, err)
		}
	})
}

// left counts what users see at the heads, by the first part of the key: of all buckets together.
func (k *killed) left() map[string]int {
	left := map[string]int{}
	k.use(func(s *moraine.Store, _ *catalog.Catalog) {
		for _, bucket := range killedBuckets {
			for l, err := range s.List(k.Context(), bucket, "main@", graveler.ListOptions{}) {
				require.NoError(k, err)
				if place, err := catalog.ParseKey(l.Key); err == nil && place.Kind == catalog.KindCurrent {
					kind, _, _ := bytes.Cut(l.Key, []byte("/"))
					left[string(kind)]++
				}
			}
		}
	})
	return left
}

// pass runs the command with its clock ahead, and kills it after some time; never where that is 0. It reports whether the pass has ended by itself.
func (k *killed) pass(ahead string, after time.Duration) (ended bool) {
	store, blocks := k.options()
	cmd := exec.Command(os.Args[0], "--store", store, "--blocks", blocks, "lifecycle", "run", "--boundary", "exact", "--now", ahead, "--force", "--walk-every", "0")
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(k, cmd.Start())
	if after > 0 {
		kill := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
	}
	err := cmd.Wait()
	if err == nil {
		return true
	}
	require.Equal(k, -1, cmd.ProcessState.ExitCode(), "it was killed, or: %s", said.String())
	k.kills++
	return false
}

// The command is killed at any time of a pass, again and again. Whenever it stops nothing has gone that is not due, and when a
// pass ends by itself everything that was due has gone; the store is whole.
func TestAPassThatIsKilledAnywhereRemovesWhatIsDueAndNothingElse(t *testing.T) {
	k := newKilled(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	enough := func() func() bool {
		if os.Getenv("MORAINE_NIGHTLY") != "" {
			return func() bool { return k.kills >= 200 }
		}
		end := time.Now().Add(15 * time.Second)
		return func() bool { return k.kills >= 200 || k.kills > 0 && time.Now().After(end) }
	}()
	all := func() int { return k.puts * killedObjects * len(killedBuckets) }
	k.put()
	began := time.Now()
	require.True(t, k.pass("+25h", 0))
	takes := time.Since(began)
	for !enough() {
		k.put()
		due := killedObjects * len(killedBuckets)
		for ended := false; !ended; {
			ended = k.pass("+25h", time.Duration(random.Int64N(int64(takes+takes/4)))+1)
			left := k.left()
			require.LessOrEqual(t, left["due"], due, "what has gone does not come back")
			due = left["due"]
			require.Equal(t, all(), left["later"])
			require.Equal(t, all(), left["kept"])
		}
		require.Zero(t, due)
	}
	require.True(t, k.pass("+73h", 0))
	require.Equal(t, map[string]int{"kept": all()}, k.left())
	store, blocks := k.options()
	var out, problems bytes.Buffer
	require.Zero(t, Run(t.Context(), nil, []string{"--store", store, "--blocks", blocks, "fsck"}, &out, &problems), "%s%s", &out, &problems)
	t.Logf("%d kills", k.kills)
}
