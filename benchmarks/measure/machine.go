// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/moraine-store/moraine/benchmarks/result"
)

// Machine describes what this process runs on. dir is where stores are kept. What the system does not tell (only Linux tells all) is "unknown" or 0.
func Machine(dir string) result.Machine {
	m := result.Machine{CPU: "unknown", Cores: runtime.GOMAXPROCS(0), System: runtime.GOOS + "/" + runtime.GOARCH, Filesystem: filesystem(dir)}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if model, ok := field(string(text), "model name"); ok {
			m.CPU = strings.TrimSpace(strings.TrimPrefix(model, ":"))
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		total, _ := field(string(text), "MemTotal:")
		if kib, err := strconv.ParseInt(strings.TrimSuffix(total, " kB"), 10, 64); err == nil {
			m.MemoryBytes = kib << 10
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + strings.TrimSpace(string(text))
	}
	return m
}

// filesystem returns the kind of file system that holds a directory: that of the longest mount point above it.
func filesystem(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "unknown"
	}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return "unknown"
	}
	kind, longest := "unknown", ""
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := fields[1]
		if below := strings.HasPrefix(dir+"/", strings.TrimSuffix(point, "/")+"/"); below && len(point) >= len(longest) {
			kind, longest = fields[2], point
		}
	}
	return kind
}

// Versions returns the versions of Go, of this program, and of the libraries that the figures depend on.
func Versions() map[string]string {
	versions := map[string]string{"go": strings.TrimPrefix(runtime.Version(), "go")}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	versions["moraine"] = info.Main.Version
	names := map[string]string{"go.etcd.io/bbolt": "bbolt", "github.com/cockroachdb/pebble/v2": "pebble", "github.com/jackc/pgx/v5": "pgx"}
	for _, d := range info.Deps {
		if name, ok := names[d.Path]; ok {
			versions[name] = d.Version
		}
	}
	return versions
}
