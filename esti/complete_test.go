// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/cmd/moraine/command"
)

// TestEveryCommandIsInAScript looks for every command, and for every flag in a line with its command.
func TestEveryCommandIsInAScript(t *testing.T) {
	lines := scriptLines(t)
	var visit func(c *cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" {
				return
			}
			forms := []string{"--" + f.Name}
			if f.Shorthand != "" {
				forms = append(forms, "-"+f.Shorthand)
			}
			requireLine(t, lines, c, forms)
		})
		if !c.HasSubCommands() {
			requireLine(t, lines, c, nil)
		}
	}
	visit(command.Root())
}

// requireLine looks for a line with a command, and with one of several words.
func requireLine(t *testing.T, lines [][]string, c *cobra.Command, words []string) {
	t.Helper()
	path := strings.Fields(c.CommandPath())
	if !slices.ContainsFunc(lines, func(line []string) bool {
		return containsAll(line, path) && (words == nil || slices.ContainsFunc(words, func(w string) bool { return slices.Contains(line, w) }))
	}) {
		t.Errorf("no script runs %q %q", c.CommandPath(), words)
	}
}

// containsAll reports whether a line has words in this order.
func containsAll(line, words []string) bool {
	for _, w := range words {
		at := slices.Index(line, w)
		if at < 0 {
			return false
		}
		line = line[at+1:]
	}
	return true
}

func scriptLines(t *testing.T) (lines [][]string) {
	t.Helper()
	err := filepath.WalkDir("testdata", func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		require.Contains(t, string(archive.Comment), "\ncmp transcript want\n", path)
		for line := range strings.Lines(string(archive.Comment)) {
			lines = append(lines, strings.Fields(line))
		}
		return nil
	})
	require.NoError(t, err)
	return lines
}
