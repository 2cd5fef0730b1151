// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moraine-store/moraine/cmd/moraine/command"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
)

var update = flag.Bool("update", false, "write the golden texts anew")

// engine is a key/value engine that the scripts run on.
type engine struct {
	name string
	url  func(work string) string // of a store of the script that runs in the directory work
	open kv.Opener
}

func engineTable() []engine {
	return []engine{
		{"bolt", func(work string) string { return "bolt:" + filepath.Join(work, "store", "meta.db") }, bolt.Open},
	}
}

// TestMain makes this binary the programs that scripts run, too.
func TestMain(m *testing.M) {
	testscript.Main(m, programs())
}

func programs() map[string]func() {
	return map[string]func(){"moraine": command.Main, "unprivileged": unprivileged, "limited": limited, "holder": holder}
}

func TestScripts(t *testing.T) {
	for i, e := range engineTable() {
		t.Run(e.name, func(t *testing.T) {
			for _, dir := range []string{"testdata", filepath.Join("testdata", e.name)} {
				p := params(e)
				p.Dir, p.RequireUniqueNames = dir, true
				p.UpdateScripts = *update && i == 0 // all engines share the text
				testscript.Run(t, p)
			}
		})
	}
}

func params(e engine) testscript.Params {
	return testscript.Params{Setup: e.setup, Cmds: commands(), Condition: condition}
}

func (e engine) setup(env *testscript.Env) error {
	env.Values[scriptKey{}] = newScript(e, env.WorkDir)
	store, blocks := e.url(env.WorkDir), "file:"+filepath.Join(env.WorkDir, "store", "blocks")
	for name, value := range map[string]string{
		"MORAINE_STORE": store, "MORAINE_BLOCKS": blocks, "TZ": "UTC", "USER": "ann",
		"GORACE": "atexit_sleep_ms=0", // with the race detector, each command would take a second longer
	} {
		env.Setenv(name, value)
	}
	return openWay(env.WorkDir)
}

// openWay lets users without privileges come to a directory.
func openWay(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && info.Mode()&0o005 != 0o005 {
		err = os.Chmod(dir, info.Mode()|0o005)
	}
	if parent := filepath.Dir(dir); err == nil && parent != dir {
		return openWay(parent)
	}
	return err
}
