// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/cmd/moraine/command"
	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/bolt"
	"github.com/moraine-store/moraine/pkg/kv/pebble"
	"github.com/moraine-store/moraine/pkg/kv/postgres"
	"github.com/moraine-store/moraine/pkg/migrate/sqlstore"
)

var update = flag.Bool("update", false, "write the golden texts anew")

// engine is what the scripts run on.
type engine struct {
	name    string
	open    kv.Opener                               // nil: it is no key/value engine
	newURL  func(tb testing.TB, work string) string // of a store for the script that runs in the directory work
	without map[string]string                       // the scripts that make no sense on it, and why
}

// passes is why scripts with lifecycle passes do not run on tables.
const passes = "what lifecycle passes remember is in a key/value store"

func engineTable() []engine {
	engines := []engine{
		{"bolt", bolt.Open, func(_ testing.TB, work string) string { return "bolt:" + filepath.Join(work, "store", "meta.db") }, nil},
		{"pebble", pebble.Open, func(_ testing.TB, work string) string { return "pebble:" + filepath.Join(work, "store", "meta") }, nil},
		{"postgres", postgres.Open, func(tb testing.TB, _ string) string { return testpg.Start(tb).NewDatabase(tb) }, nil},
		{"sql", nil, func(tb testing.TB, _ string) string {
			return sqlstore.Scheme + strings.TrimPrefix(testpg.Start(tb).NewDatabase(tb), "postgres")
		}, map[string]string{
			"demo.txtar":      "it ends in fsck, which is for key/value stores",
			"fsck.txtar":      "fsck is for key/value stores",
			"lifecycle.txtar": passes, "lifecycleblocked.txtar": passes, "lifecycleversions.txtar": passes,
			"migrate.txtar":       "a migration ends in a key/value store",
			"migratelakefs.txtar": "a migration ends in a key/value store",
			"newer.txtar":         "it makes a record of the key/value store say another version",
			"raw.txtar":           "the kv commands are for key/value stores",
			"readers.txtar":       "it holds a key/value store open",
		}},
	}
	return append(engines, facadeEngines(engines[len(engines)-1])...)
}

// scriptsAtOnce is how many scripts run at the same time, unless -parallel says otherwise. Much of a script is waiting: for
// processes, disks and locks.
const scriptsAtOnce = "6"

// TestMain makes this binary the programs that scripts run, too.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", scriptsAtOnce); err != nil {
		panic(err)
	}
	testscript.Main(m, programs())
}

func programs() map[string]func() {
	return map[string]func(){"moraine": func() { command.Main(facades()) }, "unprivileged": unprivileged, "limited": limited, "holder": holder}
}

func TestScripts(t *testing.T) {
	for i, e := range engineTable() {
		t.Run(e.name, func(t *testing.T) {
			if !*update {
				t.Parallel()
			}
			for dir, own := range map[string]bool{"testdata": false, filepath.Join("testdata", e.name): true} {
				p := params(e)
				p.Files, p.RequireUniqueNames = e.scripts(t, dir), true
				if own && len(p.Files) == 0 {
					continue
				}
				require.NotEmpty(t, p.Files)
				p.UpdateScripts = *update && (own || i == 0) // all engines share the text
				testscript.Run(t, p)
			}
		})
	}
}

// scripts are those of a directory that the engine runs.
func (e engine) scripts(t *testing.T, dir string) (files []string) {
	all, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	require.NoError(t, err)
	for _, file := range all {
		if e.without[filepath.Base(file)] == "" {
			files = append(files, file)
		}
	}
	return files
}

func params(e engine) testscript.Params {
	return testscript.Params{Setup: e.setup, Cmds: commands(), Condition: condition}
}

func (e engine) setup(env *testscript.Env) error {
	store, blocks := e.newURL(env.T().(testing.TB), env.WorkDir), "file:"+filepath.Join(env.WorkDir, "store", "blocks")
	parsed, err := url.Parse(store)
	if err != nil {
		return err
	}
	env.Values[scriptKey{}] = newScript(e, store, parsed.Host, env.WorkDir)
	env.Values[scriptKey{}].(*script).newOld = func() string { return newOld(env.T().(testing.TB)) }
	for name, value := range map[string]string{
		"MORAINE_STORE": store, "MORAINE_BLOCKS": blocks, "TZ": "UTC", "USER": "ann",
		"SERVER": parsed.Host,         // of a database
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
