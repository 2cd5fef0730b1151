// SPDX-License-Identifier: Apache-2.0

package pgserver

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// debian is where Debian keeps the servers of its versions, out of the PATH.
const debian = "/usr/lib/postgresql/*/bin"

// ErrNotInstalled says that there is no PostgreSQL to start, and what to do about it.
var ErrNotInstalled = errors.New("initdb is neither on the PATH nor in " + debian + ": install the PostgreSQL server (Debian: apt-get install postgresql)")

// installed returns the directory of initdb and pg_ctl, "" if there is none.
func installed() string {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && isBin(filepath.Dir(path)) {
			return filepath.Dir(path)
		}
	}
	// The pattern is well-formed, which is all that Glob can complain about.
	found, _ := filepath.Glob(debian)
	found = slices.DeleteFunc(found, func(dir string) bool { return !isBin(dir) })
	if len(found) == 0 {
		return ""
	}
	return slices.MaxFunc(found, func(a, b string) int { return cmp.Compare(version(a), version(b)) })
}

// isBin tells a server from an installation of the client programs only.
func isBin(dir string) bool {
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// version returns the 15 of /usr/lib/postgresql/15/bin.
func version(bin string) float64 {
	v, err := strconv.ParseFloat(filepath.Base(filepath.Dir(bin)), 64)
	if err != nil {
		return 0
	}
	return v
}

// unprivileged returns whom the server is to run as, since it refuses root, or nil if we are not root.
func unprivileged() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// open reports whether everybody may pass through a directory and those above it, and write into it,
// as is needed to remove what is in there.
func open(dir string) bool {
	const pass, write = 0o001, 0o002
	for need := os.FileMode(pass | write); ; need = pass {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&need != need {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}
