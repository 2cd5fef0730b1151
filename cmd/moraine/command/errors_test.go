// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/pkg/block"
	"github.com/moraine-store/moraine/pkg/graveler"
)

// A sentinel error that is added to one of these packages needs an exit code.
func TestEverySentinelErrorHasAnExitCode(t *testing.T) {
	table := map[string]bool{}
	ast.Inspect(parse(t, "errors.go"), func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok && f.Name.Name != "exitCodes" {
			return false
		}
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok {
				table[pkg.Name+"."+s.Sel.Name] = true
			}
		}
		return true
	})
	for _, dir := range []string{"pkg/graveler", "pkg/graveler/dump", "pkg/kv", "pkg/block", "pkg/migrate", "pkg/migrate/cutover"} {
		found := 0
		for _, name := range sentinels(t, filepath.Join("../../..", dir)) {
			found++
			require.True(t, table[filepath.Base(dir)+"."+name], "%s: %s has no row in exitCodes", dir, name)
		}
		require.NotZero(t, found)
	}
	codes := regexp.MustCompile(`(?m)^\t(\w+) +Code = "`).FindAllStringSubmatch(read(t, "../../../pkg/catalog/code.go"), -1)
	require.NotEmpty(t, codes)
	for _, code := range codes {
		require.True(t, table["catalog."+code[1]], "catalog.%s has no row in exitCodes", code[1])
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	require.NoError(t, err)
	return f
}

// sentinels returns the names of the exported errors that a package declares.
func sentinels(t *testing.T, dir string) (names []string) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		for _, d := range parse(t, path).Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.VAR {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if strings.HasPrefix(name.Name, "Err") {
						names = append(names, name.Name)
					}
				}
			}
		}
	}
	return names
}

func TestDamageDoesNotPassForNotFound(t *testing.T) {
	require.Equal(t, exitFailed, exitCode(fmt.Errorf("%w: %w", graveler.ErrCorrupt, graveler.ErrCommitNotFound)))
	require.Equal(t, exitFailed, exitCode(fmt.Errorf("read: %w", block.ErrNotFound)))
	require.Equal(t, exitNotFound, exitCode(fmt.Errorf("%w (%w)", graveler.ErrRefNotFound, graveler.ErrBranchNotFound)))
	require.Equal(t, exitFailed, exitCode(context.Canceled))
	require.Zero(t, exitCode(nil))
}

func TestAnErrorIsOneLine(t *testing.T) {
	err := errors.Join(errors.New("first\x1b[31m"), fmt.Errorf("second %w", graveler.ErrNoChanges), errors.New(`C:\x`))
	require.Equal(t, `first\x1b[31m; second nothing to commit; C:\x (use --allow-empty to commit anyway)`, describe(err))
	require.Equal(t, "list: context canceled (interrupted)", describe(fmt.Errorf("list: %w", context.Canceled)))
}

func TestLongWordsOfAnErrorAreShortened(t *testing.T) {
	key := strings.Repeat("ü", 1000)
	require.Equal(t, "get lake/main:"+strings.Repeat("ü", 118)+"…"+strings.Repeat("ü", 63)+": entry not found",
		describe(fmt.Errorf("get lake/main:%s: %w", key, graveler.ErrEntryNotFound)))
}

func TestARunThatIsInterruptedSaysHowToGoOn(t *testing.T) {
	s := newShell(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"migrate", "run", "--from", "postgres://127.0.0.1:1/x"}, {"copy", "--from", s.global[1], "--to", "mem:"}} {
		if args[0] == "copy" {
			s.ok("repo", "create", "lake")
		}
		code, _, stderr := s.runContext(ctx, args...)
		require.Equal(t, exitFailed, code)
		require.Contains(t, stderr, "(interrupted; run it again to go on)")
	}
}
