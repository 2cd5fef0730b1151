// SPDX-License-Identifier: Apache-2.0

// Package house holds the rules of the house that a machine can check: licence headers, package
// comments, the size of interfaces, the direction of imports, and what an embedder links.
// It has tests only; `make check` runs them.
package house

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	root        = "../.."
	licenceLine = "// SPDX-License-Identifier: Apache-2.0\n"
	maxMethods  = 10
)

// source is one parsed Go file that was written by hand.
type source struct {
	path string // slash-separated, relative to the module's root
	text []byte
	file *ast.File
	fset *token.FileSet
}

func (s source) at(n ast.Node) string {
	return s.fset.Position(n.Pos()).String()
}

// walk calls fn for every file of the module that is neither hidden nor test data.
func walk(t *testing.T, fn func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		fn(filepath.ToSlash(rel))
		return nil
	})
	require.NoError(t, err)
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	walk(t, func(path string) {
		if !strings.HasSuffix(path, ".go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments)
		require.NoError(t, err)
		if !ast.IsGenerated(file) {
			all = append(all, source{path, text, file, fset})
		}
	})
	require.NotEmpty(t, all)
	return all
}

func TestEveryFileStartsWithTheLicence(t *testing.T) {
	for _, s := range sources(t) {
		if !bytes.HasPrefix(s.text, []byte(licenceLine)) {
			t.Errorf("%s: the first line is not %q", s.path, strings.TrimSpace(licenceLine))
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	documented := map[string][]string{}
	for _, s := range sources(t) {
		dir := filepath.Dir(s.path)
		documented[dir] = append(documented[dir], "")
		if s.file.Doc == nil {
			continue
		}
		text := s.file.Doc.Text()
		name := strings.TrimSuffix(s.file.Name.Name, "_test")
		if !strings.HasPrefix(text, "Package "+name+" ") && !(name == "main" && strings.HasPrefix(text, "Command ")) {
			t.Errorf("%s: the comment above the package clause does not say what the package is (%q)", s.path, firstLine(text))
			continue
		}
		documented[dir] = append(documented[dir], s.path)
	}
	for dir, files := range documented {
		files = slices.DeleteFunc(files, func(f string) bool { return f == "" })
		if len(files) != 1 {
			t.Errorf("%s: %d package comments, want one %v", dir, len(files), files)
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Methods of embedded interfaces are not counted: joining small interfaces is how large ones are avoided.
func TestInterfacesAreSmall(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			i, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			methods := 0
			for _, m := range i.Methods.List {
				methods += len(m.Names)
			}
			if methods > maxMethods {
				t.Errorf("%s: an interface of %d methods, at most %d", s.at(i), methods, maxMethods)
			}
			return true
		})
	}
}

func TestNothingRunsAtStart(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
				t.Errorf("%s: an init function", s.at(f))
			}
		}
	}
}

// The words are put together here so that this file does not hold them itself.
func TestNoForbiddenWords(t *testing.T) {
	forbidden := []string{"/" + "work/", "/" + "root/", "/tmp/" + "w/", "TO" + "DO", "FIX" + "ME"}
	walk(t, func(path string) {
		if strings.HasSuffix(path, ".pb.go") {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		for _, word := range forbidden {
			if before, _, found := bytes.Cut(text, []byte(word)); found {
				t.Errorf("%s:%d: %q", path, 1+bytes.Count(before, []byte("\n")), word)
			}
		}
	})
}
