// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestMain looks for what the tests left open.
func TestMain(m *testing.M) {
	before := openFiles()
	goroutines := runtime.NumGoroutine()
	code := m.Run()
	if after := openFiles(); len(after) > len(before) {
		fmt.Printf("FAIL: open files before %v, after %v\n", before, after)
		code = 1
	}
	// A goroutine that has done its work may take a moment to be gone.
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > goroutines; runtime.Gosched() {
		if time.Now().After(deadline) {
			fmt.Printf("FAIL: %d goroutines before, %d after\n", goroutines, runtime.NumGoroutine())
			code = 1
			break
		}
	}
	os.Exit(code)
}

// openFiles lists open files and directories; what the runtime keeps (pipes, epoll) is left out.
func openFiles() []string {
	const dir = "/proc/self/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		panic(err)
	}
	var files []string
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(to, os.TempDir()) {
			files = append(files, to)
		}
	}
	return files
}
