// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shell runs commands on a store of its own.
type shell struct {
	*testing.T
	dir    string
	global []string
}

func newShell(t *testing.T) *shell {
	dir := t.TempDir()
	return &shell{t, dir, []string{"--store", "bolt:" + filepath.Join(dir, "store", "meta.db"), "--blocks", "file:" + filepath.Join(dir, "store", "blocks")}}
}

// newLake is newShell with a repository lake.
func newLake(t *testing.T) *shell {
	s := newShell(t)
	s.ok("repo", "create", "lake")
	return s
}

func (s *shell) run(args ...string) (code int, stdout, stderr string) {
	return s.runContext(s.Context(), args...)
}

func (s *shell) runContext(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	s.Helper()
	var out, err bytes.Buffer
	code = Run(ctx, nil, append(append([]string{}, s.global...), args...), &out, &err)
	return code, out.String(), err.String()
}

// ok runs a command that must succeed, and returns what it printed.
func (s *shell) ok(args ...string) string {
	s.Helper()
	code, stdout, stderr := s.run(args...)
	require.Zero(s, code, "%q: %s", args, stderr)
	return stdout
}

// fails runs a command that must fail in one way, and returns the one line that it says.
func (s *shell) fails(want int, args ...string) string {
	s.Helper()
	code, stdout, stderr := s.run(args...)
	require.Equal(s, want, code, "%q: %s", args, stderr)
	require.Empty(s, stdout, "%q", args)
	require.True(s, strings.HasPrefix(stderr, "moraine: "), stderr)
	require.Equal(s, 1, strings.Count(stderr, "\n"), stderr)
	return strings.TrimSuffix(stderr, "\n")
}

// objects runs a command in JSON, and returns what it printed.
func (s *shell) objects(args ...string) []map[string]any {
	s.Helper()
	var all []map[string]any
	d := json.NewDecoder(strings.NewReader(s.ok(append([]string{"--output", "json"}, args...)...)))
	for {
		var o map[string]any
		err := d.Decode(&o)
		if err == io.EOF {
			return all
		}
		require.NoError(s, err)
		all = append(all, o)
	}
}

// file makes a file below the shell's directory, and returns its path.
func (s *shell) file(name, content string) string {
	s.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func (s *shell) noStore() {
	s.Helper()
	require.NoDirExists(s, filepath.Join(s.dir, "store"))
}

func lines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

func TestAStoreIsMadeByRepoCreateAlone(t *testing.T) {
	s := newShell(t)
	for _, args := range [][]string{
		{"repo", "list"}, {"ls", "lake/main:"}, {"commit", "lake/main", "-m", "x"}, {"put", "lake/main:a"}, {"repo", "delete", "lake", "--force"},
		{"kv", "scan", "graveler"}, {"clean"},
	} {
		require.Regexp(t, `^moraine: no store at bolt:.*/meta.db \(create one with 'moraine repo create REPO'\)$`, s.fails(1, args...))
	}
	s.fails(2, "repo", "create", "NO")
	s.noStore()
	require.Empty(t, s.ok("repo", "create", "lake"))
	require.Len(t, lines(s.ok("repo", "list")), 2)
}

func TestBlockStorageThatIsNotThereIsNotMadeAnew(t *testing.T) {
	s := newLake(t)
	for _, args := range [][]string{{"ls", "lake/main:"}, {"put", "lake/main:a"}, {"clean"}} {
		message := s.fails(1, append([]string{"--blocks", "file:" + filepath.Join(s.dir, "elsewhere")}, args...)...)
		require.Regexp(t, `nothing at file:.*/elsewhere \(name the one that belongs to the store with --blocks\)$`, message)
	}
	require.NoDirExists(t, filepath.Join(s.dir, "elsewhere"))
}

func TestTheStoreIsNamedByTheEnvironmentToo(t *testing.T) {
	s := newLake(t)
	t.Setenv("MORAINE_STORE", s.global[1])
	t.Setenv("MORAINE_BLOCKS", s.global[3])
	s.global = nil
	require.Equal(t, "lake", s.objects("repo", "list")[0]["name"])
	require.Regexp(t, "no store at bolt:elsewhere ", s.fails(1, "--store", "bolt:elsewhere", "repo", "list"), "the flag counts more")
}

func TestWrongUsageIsExplainedBeforeAnythingIsDone(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		`unknown command "bogus" for "moraine" (see 'moraine --help')`:                           {"bogus"},
		`unknown command "bogus" for "moraine repo" (see 'moraine repo --help')`:                 {"repo", "bogus"},
		`required flag(s) "message" not set (usage: moraine commit REPO/BRANCH -m MESSAGE)`:      {"commit", "lake/main"},
		`accepts 1 arg(s), received 0 (usage: moraine repo show REPO)`:                           {"repo", "show"},
		`unknown flag: --bogus (usage: moraine repo list)`:                                       {"repo", "list", "--bogus"},
		`--output xml: expected text or json (usage: moraine repo list)`:                         {"repo", "list", "--output", "xml"},
		`--quiet and --verbose exclude each other (usage: moraine repo list)`:                    {"repo", "list", "--quiet", "--verbose"},
		`"lake": expected REPO/REF:KEY, such as lake/main:data/x.csv`:                            {"get", "lake"},
		`"lake/main": expected REPO/REF:PREFIX, such as lake/main:data/`:                         {"ls", "lake/main"},
		`"lake/main:x": expected REPO/BRANCH, such as lake/main`:                                 {"commit", "lake/main:x", "-m", "x"},
		`"lake/main": expected REPO, such as lake`:                                               {"repo", "show", "lake/main"},
		`lake/a and sea/main are not in the same repository`:                                     {"branch", "create", "lake/a", "sea/main"},
		`--meta "x": expected KEY=VALUE`:                                                         {"commit", "lake/main", "-m", "x", "--meta", "x"},
		`--meta: "x" is given twice`:                                                             {"commit", "lake/main", "-m", "x", "--meta", "x=1", "--meta", "x=2"},
		`time "today": expected a form such as 2026-01-31T23:59:59Z or 2026-01-31`:               {"commit", "lake/main", "-m", "x", "--date", "today"},
		`--if-absent and --if-match: give one of them only (usage: moraine put REPO/BRANCH:KEY)`: {"put", "lake/main:a", "--if-match", "00", "--if-absent"},
		`--message must not be empty`:                                                            {"commit", "lake/main", "-m", ""},
		`--limit "-1": not a value for this flag (usage: moraine ls REPO/REF:PREFIX)`:            {"ls", "lake/main:", "--limit", "-1"},
		`--commit and --message belong together`:                                                 {"import", ".", "lake/main:", "--commit"},
		`--graph is a drawing: it has no JSON form`:                                              {"log", "lake/main", "--graph", "--output", "json"},
		`the tour is for people: it has no JSON form`:                                            {"demo", "--output", "json"},
		`invalid name: branch "a..b": must not contain '..'`:                                     {"rm", "lake/a..b:x"},
		`invalid name: an entry's key must not be empty`:                                         {"put", "lake/main:"},
		`put lake/main:a: encode object: invalid value: size -1 is negative`:                     {"put", "lake/main:a", "--size", "-1"},
	} {
		require.Equal(t, "moraine: "+want, s.fails(2, args...))
	}
	s.noStore()
}

func TestHelpSucceeds(t *testing.T) {
	s := newShell(t)
	for _, args := range [][]string{{}, {"--help"}, {"repo"}, {"commit", "--help"}, {"help", "repo", "create"}} {
		require.Contains(t, s.ok(args...), "Usage:")
	}
	require.Contains(t, s.ok("completion", "bash"), "__start_moraine")
	require.Contains(t, s.ok("version"), "Store schema")
}

func TestEverydayCommands(t *testing.T) {
	s := newLake(t)
	require.Empty(t, s.ok("put", "lake/main:data/a", "--size", "3"))
	require.Empty(t, s.ok("put", "lake/main:data/b", "--size", "2048"))
	require.Equal(t, "+ data/a\n+ data/b\n", s.ok("diff", "lake/main"))
	require.Empty(t, s.ok("diff", "lake/main", "lake/main"))

	id := lines(s.ok("commit", "lake/main", "-m", "first\n\nmore", "--meta", "k=v", "--date", "2026-01-31", "--committer", "ann"))
	require.Len(t, id, 1)
	require.Len(t, id[0], 64)
	require.Empty(t, s.ok("diff", "lake/main"))
	show := s.ok("show", "lake/main")
	require.Contains(t, show, id[0])
	require.Contains(t, show, "\n    first\n\n    more\n")
	commit := s.objects("show", "lake/"+id[0][:8])[0]
	require.Equal(t, map[string]any{"k": "v"}, commit["metadata"])
	require.Equal(t, "2026-01-31T00:00:00Z", commit["created_at"])
	require.Equal(t, "ann", commit["committer"])

	s.ok("branch", "create", "lake/side", "lake/main")
	s.ok("put", "lake/side:data/a", "--size", "4")
	s.ok("rm", "lake/side:data/b")
	s.ok("put", "lake/side:data/c")
	require.Regexp(t, `Uncommitted: +1 added, 1 changed, 1 removed\n`, s.ok("status", "lake/side"))
	require.Regexp(t, `delete branch lake/side: branch has uncommitted changes \(commit them, or use --force to lose them\)$`, s.fails(4, "branch", "delete", "lake/side"))
	s.ok("compact", "lake/side")
	require.Equal(t, "~ data/a\n- data/b\n+ data/c\n", s.ok("diff", "lake/side"))
	require.NotEmpty(t, s.objects("status", "lake/side")[0]["base"])
	s.ok("commit", "lake/side", "-m", "second")
	require.Equal(t, "~ data/a\n- data/b\n+ data/c\n", s.ok("diff", "lake/main", "lake/side"))
	require.Equal(t, "+ data/c\n", s.ok("diff", "lake/main", "lake/side", "--prefix", "data/c"))

	s.ok("tag", "create", "lake/v1", "lake/side~1")
	require.Equal(t, id[0], s.objects("tag", "show", "lake/v1")[0]["commit"])
	require.Len(t, lines(s.ok("tag", "list", "lake")), 2)
	graph := lines(s.ok("log", "lake/side", "--graph"))
	require.Len(t, graph, 3)
	require.Regexp(t, `^\*  [0-9a-f]{12}  .*  second  \(side\)$`, graph[0])
	require.Regexp(t, `first  \(main, tag: v1\)$`, graph[1])
	require.Len(t, s.objects("log", "lake/side"), 3)
	require.Len(t, s.objects("log", "lake/side", "--limit", "2"), 2)

	var operations []any
	for _, move := range s.objects("reflog", "lake/side") {
		operations = append(operations, move["operation"])
	}
	require.Equal(t, []any{"create", "commit"}, operations)
	require.Equal(t, "~ data/a\n", s.ok("diff", "lake/main", "lake/side", "--limit", "1"))

	s.ok("tag", "delete", "lake/v1")
	s.ok("branch", "delete", "lake/side")
	require.Len(t, s.objects("branch", "list", "lake"), 1)
	require.Empty(t, s.ok("tag", "list", "lake"))
	s.ok("clean")
	require.Contains(t, s.fails(2, "repo", "delete", "lake"), "would be lost (use --force to delete them)")
	s.ok("repo", "delete", "lake", "--force")
	require.Empty(t, s.ok("repo", "list"))
	require.Contains(t, s.fails(3, "repo", "delete", "lake"), "repository not found")
}

func TestWhatIsForbiddenOrMissingHasItsExitCode(t *testing.T) {
	s := newLake(t)
	s.ok("repo", "create", "ice", "--read-only", "--default-branch", "trunk")
	s.ok("tag", "create", "lake/v1", "lake/main")
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{4, `commit lake/main: nothing to commit (use --allow-empty to commit anyway)`, []string{"commit", "lake/main", "-m", "x"}},
		{4, `create repository lake: exists already`, []string{"repo", "create", "lake"}},
		{4, `exists already`, []string{"branch", "create", "lake/main", "lake/main"}},
		{4, `exists already`, []string{"tag", "create", "lake/v1", "lake/main"}},
		{4, `is the default branch`, []string{"branch", "delete", "lake/main", "--force"}},
		{4, `read-only`, []string{"put", "ice/trunk:a"}},
		{4, `read-only`, []string{"import", t.TempDir(), "ice/trunk:"}},
		{3, `repository not found ('moraine repo list' shows what there is)`, []string{"ls", "sea/main:"}},
		{3, `branch not found`, []string{"branch", "show", "lake/nope"}},
		{3, `branch not found ('moraine branch list REPO' shows what there is)`, []string{"put", "lake/nope:a"}},
		{3, `branch not found (v1 is a tag or a commit, which never changes)`, []string{"put", "lake/v1:a"}},
		{3, `branch not found`, []string{"import", t.TempDir(), "lake/nope:"}},
		{3, `tag not found`, []string{"tag", "delete", "lake/nope"}},
		{3, `ref not found`, []string{"log", "lake/main~5"}},
		{3, `get lake/main:"a": NoSuchKey`, []string{"get", "lake/main:a"}},
		{3, `key not found`, []string{"kv", "get", "graveler", "nope"}},
		{2, `invalid ref expression "main~x"`, []string{"show", "lake/main~x"}},
		{2, `too large`, []string{"commit", "lake/main", "-m", strings.Repeat("x", 100_000)}},
		{2, `unknown engine "nope"`, []string{"--store", "nope:x", "repo", "list"}},
		{2, `(for a file write bolt:meta.db)`, []string{"--store", "meta.db", "repo", "list"}},
		{2, `(for a directory write file:blocks)`, []string{"--blocks", "blocks", "repo", "list"}},
	} {
		require.Contains(t, s.fails(c.code, c.args...), c.want, "%q", c.args)
	}
	s.ok("commit", "lake/main", "-m", "x", "--allow-empty")
}

func TestPasswordsAreNotShown(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		"connect: ":                    {"--store", "postgres://me:secret@127.0.0.1:1/db", "repo", "list"},
		"it has no scheme":             {"--store", "host=h password=secret", "repo", "list"},
		"unknown block storage engine": {"--store", "mem:", "--blocks", "s3://me:secret@bucket", "repo", "list"},
	} {
		_, _, stderr := s.run(args...)
		require.Contains(t, stderr, want)
		require.NotContains(t, stderr, "secret")
	}
}

func TestOutputHasNoColourWhereNobodySeesIt(t *testing.T) {
	s := newLake(t)
	s.ok("put", "lake/main:a")
	require.NotContains(t, s.ok("diff", "lake/main")+s.ok("log", "lake/main", "--graph"), "\x1b")
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestOutputThatIsLostIsAnError(t *testing.T) {
	s := newLake(t)
	var stderr bytes.Buffer
	code := Run(t.Context(), nil, append(s.global, "repo", "list"), brokenPipe{}, &stderr)
	require.Equal(t, 1, code)
	require.Contains(t, stderr.String(), "write to standard output: ")
}

func TestVerboseLogsOperations(t *testing.T) {
	s := newLake(t)
	code, _, stderr := s.run("--verbose", "put", "lake/main:a")
	require.Zero(t, code)
	require.Contains(t, stderr, "msg=transact")
}
