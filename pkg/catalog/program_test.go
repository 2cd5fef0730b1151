// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"flag"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/moraine-store/moraine/pkg/graveler"
)

var programKeys = rapid.SampledFrom([]string{"a", "a\x00b", "b\xff"})

// TestObjectsBehaveAsS3Documents runs random programs and compares all that a bucket has with a model of what S3 documents, after every step.
func TestObjectsBehaveAsS3Documents(t *testing.T) {
	for name, url := range engineURLs(t) {
		t.Run(name, func(t *testing.T) {
			e := openEngine(t, url)
			if name == "mem" {
				for range rounds() {
					rapid.Check(t, func(t *rapid.T) { runProgram(t, e) })
				}
				return
			}
			few(t, func(t *rapid.T) { runProgram(t, e) })
		})
	}
}

// rounds is how often the tests in memory are repeated: by night, with as many checks as `make nightly` asks for, it makes 100,000 programs.
func rounds() int {
	if os.Getenv("MORAINE_NIGHTLY") != "" {
		return 5
	}
	return 1
}

// few runs a property on an engine on disk, by day for a tenth of the checks.
func few(t *testing.T, property func(t *rapid.T)) {
	checks := flag.Lookup("rapid.checks").Value
	if n, err := strconv.Atoi(checks.String()); err == nil && os.Getenv("MORAINE_NIGHTLY") == "" {
		require.NoError(t, checks.Set(strconv.Itoa(max(n/10, 1))))
		defer func() { require.NoError(t, checks.Set(strconv.Itoa(n))) }()
	}
	rapid.Check(t, property)
}

// program is a run on a bucket with two branches, beside the model of it.
type program struct {
	*fixture
	versioning Versioning
	locks      bool
	branches   map[string]modelBranch // what they show
	heads      map[string]modelBranch // what is committed
	names      int
	loose      bool // something was interrupted: what is out of form is not an error any more
}

func runProgram(t *rapid.T, e *engine) {
	p := &program{fixture: e.bucket(t), branches: map[string]modelBranch{"main": {}}, heads: map[string]modelBranch{"main": {}}}
	if rapid.Bool().Draw(t, "object lock") {
		require.NoError(t, p.SetVersioning(context.Background(), p.name, VersioningEnabled))
		require.NoError(t, p.SetObjectLock(context.Background(), p.name, ObjectLockConfig{Enabled: true}))
		p.versioning, p.locks = VersioningEnabled, true
	}
	t.Repeat(map[string]func(*rapid.T){
		"put":              p.doPut,
		"put again":        p.doPut,
		"delete":           p.doDelete,
		"delete version":   p.doDeleteVersion,
		"delete many":      p.doDeleteMany,
		"delete prefix":    p.doDeletePrefix,
		"copy":             p.doCopy,
		"edit":             p.doEdit,
		"set versioning":   p.doVersioning,
		"commit":           p.doCommit,
		"branch":           p.doBranch,
		"reset":            p.doReset,
		"interrupted move": p.doInterrupted,
		"mend":             p.doMend,
		"":                 p.compare,
	})
}

// on draws a process, and a branch with its bucket and its model.
func (p *program) on(t *rapid.T) (c *Catalog, now time.Time, b Bucket, model modelBranch) {
	p.clock.Add(int64(rapid.SampledFrom([]time.Duration{0, 1, time.Second, 2 * apart, 48 * time.Hour}).Draw(t, "later")))
	i := rapid.IntRange(0, 1).Draw(t, "process")
	name := "main"
	if len(p.branches) > 1 && rapid.Bool().Draw(t, "other branch") {
		name = "other"
	}
	b = Bucket{Repository: p.name, Ref: name}
	if name == "main" && rapid.Bool().Draw(t, "by default") {
		b.Ref = ""
	}
	return p.both[i], p.now().Add(time.Duration(i) * apart), b, p.branches[name]
}

func (p *program) doVersioning(t *rapid.T) {
	c, _, _, _ := p.on(t)
	v := rapid.SampledFrom([]Versioning{VersioningEnabled, VersioningSuspended}).Draw(t, "versioning")
	err := c.SetVersioning(context.Background(), p.name, v)
	if p.locks && v == VersioningSuspended {
		require.ErrorIs(t, err, InvalidBucketState)
		return
	}
	require.NoError(t, err)
	p.versioning = v
}

func (p *program) doCommit(t *rapid.T) {
	for name := range p.branches {
		_, err := p.Graveler.Commit(context.Background(), p.name, graveler.BranchID(name), graveler.CommitParams{AllowEmpty: true})
		require.NoError(t, err)
		p.heads[name] = p.branches[name].clone()
	}
}

func (p *program) doBranch(t *rapid.T) {
	if len(p.branches) == 1 {
		_, err := p.CreateBranch(context.Background(), p.name, "other", "main")
		require.NoError(t, err)
		p.branches["other"], p.heads["other"] = p.heads["main"].clone(), p.heads["main"].clone()
	}
}

func (p *program) doReset(t *rapid.T) {
	now := p.now().Add(apart) // of the process whose store it is
	refused := false
	for key, k := range p.branches["main"] {
		refused = refused || p.locks && k.loses(p.heads["main"][key], now)
	}
	err := p.ResetStaged(context.Background(), p.name, "main", nil)
	if refused {
		require.ErrorIs(t, err, AccessDenied)
		return
	}
	require.NoError(t, err)
	p.branches["main"] = p.heads["main"].clone()
}

// compare holds everything to the model that a bucket has, and that its operations show.
func (p *program) compare(t *rapid.T) {
	for name, model := range p.branches {
		for ref, want := range map[string]modelBranch{name: model, name + "@": p.heads[name]} {
			got, err := p.show(ref, !p.loose)
			require.NoError(t, err)
			require.Empty(t, got.differ(want), ref)
		}
	}
	c, _, b, model := p.on(t)
	key := programKeys.Draw(t, "key")
	o, err := c.Get(context.Background(), b, key, GetParams{})
	if cur := model[key].current(); cur != nil {
		require.NoError(t, err)
		require.Equal(t, cur.address, o.PhysicalAddress)
	} else {
		require.ErrorIs(t, err, NoSuchKey)
		require.Equal(t, len(model[key].versions) > 0 && !model[key].headless, o.DeleteMarker)
	}
	for _, v := range model[key].versions {
		o, err := c.Get(context.Background(), b, key, GetParams{VersionID: v.id})
		if v.marker {
			require.ErrorIs(t, err, MethodNotAllowed)
		} else {
			require.NoError(t, err)
		}
		got := modelOf(o)
		if v.marker {
			got.since = v.since
		}
		require.Equal(t, v.String(), got.String())
	}
	_, err = c.Get(context.Background(), b, key, GetParams{VersionID: newVersionID(1)})
	require.True(t, errors.Is(err, NoSuchVersion))
}
