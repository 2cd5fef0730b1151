// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	quickStart = "../docs/quickstart.md"
	// readersHome is the directory in which the reader of the quick start is.
	readersHome = "/home/ann"
)

// consoleBlock is a block of commands and what they print. The commands of one that is marked with "locked" find the store locked.
var consoleBlock = regexp.MustCompile("(?s)```console( locked)?\n(.*?)```\n")

// TestQuickStart runs the commands of docs/quickstart.md, and compares what they print with what the page says.
func TestQuickStart(t *testing.T) {
	page, err := os.ReadFile(quickStart)
	require.NoError(t, err)
	home := filepath.Join(t.TempDir(), "ann")
	require.NoError(t, os.Mkdir(home, 0o755))

	now := consoleBlock.ReplaceAllStringFunc(string(page), func(block string) string {
		parts := consoleBlock.FindStringSubmatch(block)
		if parts[1] != "" {
			release := lock(t, home)
			defer release()
		}
		return "```console" + parts[1] + "\n" + rerun(t, home, parts[2]) + "```\n"
	})
	if *update {
		require.NoError(t, os.WriteFile(quickStart, []byte(now), 0o644))
		return
	}
	require.Equal(t, withoutTimes(string(page)), withoutTimes(now))
}

func withoutTimes(page string) string {
	n := newNames()
	n.allTimes = true
	return n.apply(page)
}

// rerun runs the commands of a block, and returns them with what they print.
func rerun(t *testing.T, home, block string) string {
	var b strings.Builder
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue // what it printed
		}
		// What a command comes to shows in what it prints.
		out, _ := readerCommand(home, "sh", "-c", command).CombinedOutput()
		b.WriteString(line + strings.ReplaceAll(string(out), home, readersHome))
	}
	return b.String()
}

func readerCommand(home, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "TZ=UTC", "USER=ann", "GORACE=atexit_sleep_ms=0", "MORAINE_STORE=", "MORAINE_BLOCKS=")
	return cmd
}

// lock holds the reader's store until it is released.
func lock(t *testing.T, home string) (release func()) {
	cmd := readerCommand(home, "holder")
	cmd.Env = append(cmd.Env, "MORAINE_STORE=bolt:.moraine/meta.db")
	h, err := startHolding(cmd)
	require.NoError(t, err)
	return func() { require.NoError(t, h.end()) }
}

// The first command of the page takes too long for a test; that it is what the Makefile does can be seen without running it.
func TestQuickStartBuildsTheCommand(t *testing.T) {
	page, err := os.ReadFile(quickStart)
	require.NoError(t, err)
	require.Contains(t, string(page), "\nmake build\n")
	out, err := exec.Command("make", "-C", "..", "-n", "build").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "build -o bin/moraine ./cmd/moraine")
}
