// SPDX-License-Identifier: Apache-2.0

package house

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/moraine-store/moraine"

// arrows says which packages of this module a package may import, tests aside. The first rule whose
// package matches counts; "..." matches the package itself and everything below it. Generated
// messages (a last element in "pb") count as part of the package above them.
var arrows = []struct {
	importer string
	imports  []string
}{
	{"pkg/kv/all", []string{"pkg/kv/..."}},
	{"pkg/kv/postgres/...", []string{"pkg/kv", "pkg/kv/postgres/...", "internal/pgpool"}},
	{"pkg/kv/...", []string{"pkg/kv", "pkg/kv/internal/files"}},
	{"pkg/block/all", []string{"pkg/block/..."}},
	{"pkg/block/...", []string{"pkg/block"}},

	{"pkg/graveler/rangefile", nil},
	{"pkg/graveler/extsort", nil},
	{"pkg/graveler/committed", []string{"pkg/graveler", "pkg/graveler/rangefile", "pkg/block", "pkg/kv"}},
	// A staged write is fenced with a record that ref keeps.
	{"pkg/graveler/staging", []string{"pkg/graveler", "pkg/graveler/ref", "pkg/kv"}},
	{"pkg/graveler", []string{"pkg/graveler/extsort", "pkg/kv", "pkg/block"}},
	// A check looks at records as they lie in the store.
	{"pkg/graveler/fsck", []string{"pkg/graveler", "pkg/graveler/ref", "pkg/graveler/staging", "pkg/kv", "pkg/block"}},
	{"pkg/graveler/...", []string{"pkg/graveler", "pkg/kv", "pkg/block"}},

	{"pkg/catalog/...", []string{"pkg/catalog/...", "pkg/graveler", "pkg/graveler/metalog", "pkg/kv"}},
	{"pkg/lifecycle/...", []string{"pkg/lifecycle/...", "pkg/catalog/...", "pkg/graveler", "pkg/graveler/extsort", "pkg/graveler/metalog", "pkg/kv"}},
	{"pkg/migrate/...", []string{"pkg/migrate/...", "pkg/catalog/...", "pkg/graveler/...", "pkg/kv", "pkg/block", "internal/pgpool"}},

	{".", []string{"pkg/..."}},
	// The tour of a migration makes its own old data, in a server of its own.
	{"cmd/...", []string{".", "benchmarks/...", "cmd/...", "pkg/...", "internal/oldsql", "internal/pgserver"}},
	{"examples/...", []string{".", "examples/...", "pkg/..."}},
	{"esti/...", []string{".", "esti/...", "cmd/...", "pkg/...", "internal/..."}},
	{"benchmarks/...", []string{".", "benchmarks/...", "pkg/...", "internal/..."}},
	{"internal/...", []string{".", "internal/...", "pkg/..."}},
}

func matches(pattern, pkg string) bool {
	if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == tree || strings.HasPrefix(pkg, tree+"/")
	}
	return pkg == pattern
}

// local turns an import path into a path below the module's root, and reports whether it is one.
func local(imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	rel, ok := strings.CutPrefix(imported, module+"/")
	if strings.HasSuffix(rel, "pb") {
		rel = path.Dir(rel)
	}
	return rel, ok
}

func TestImportsFollowTheArrows(t *testing.T) {
	for _, s := range sources(t) {
		importer, ok := local(path.Join(module, path.Dir(s.path)))
		require.True(t, ok, s.path)
		if strings.HasSuffix(s.path, "_test.go") {
			continue
		}
		rule := slices.IndexFunc(arrows, func(a struct {
			importer string
			imports  []string
		}) bool {
			return matches(a.importer, importer)
		})
		if rule < 0 {
			t.Errorf("%s: no arrow says what %s may import", s.path, importer)
			continue
		}
		for _, spec := range s.file.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			imported, ours := local(name)
			if !ours || imported == importer {
				continue
			}
			if !slices.ContainsFunc(arrows[rule].imports, func(p string) bool { return matches(p, imported) }) {
				t.Errorf("%s: %s imports %s, against the arrows", s.at(spec), importer, imported)
			}
		}
	}
}

// embedded is what everybody who embeds the store links; linkable are the modules that it may bring along.
var (
	embedded = []string{"pkg/graveler", "pkg/kv/bolt", "pkg/block/local"}
	linkable = regexp.MustCompile(`^(` + strings.Join([]string{
		regexp.QuoteMeta(module),
		`google\.golang\.org/protobuf`,
		`go\.etcd\.io/bbolt`,
		`github\.com/rs/xid`,
		`github\.com/google/uuid`,
		`github\.com/klauspost/compress`,
		`github\.com/cespare/xxhash/v2`,
		`github\.com/maypok86/otter/v2`,
		`golang\.org/x/[a-z]+`,
	}, `|`) + `)$`)
)

func TestAnEmbedderLinksLittle(t *testing.T) {
	args := []string{"list", "-deps", "-f", "{{with .Module}}{{$.ImportPath}} {{.Path}}{{end}}"}
	for _, pkg := range embedded {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		require.NoError(t, err)
		if len(files) > 0 {
			args = append(args, "./"+pkg)
		}
	}
	list := exec.Command("go", args...)
	list.Dir = root
	list.Stderr = os.Stderr
	out, err := list.Output()
	require.NoError(t, err)

	for line := range strings.Lines(string(out)) {
		pkg, mod, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !linkable.MatchString(mod) {
			t.Errorf("an embedder would link %s, of %s", pkg, mod)
		}
	}
}
