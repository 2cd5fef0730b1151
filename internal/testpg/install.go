// SPDX-License-Identifier: Apache-2.0

package testpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/moraine-store/moraine/internal/pgserver"
)

// start starts a server, after installing it where that is needed and possible.
func start() (*Server, error) {
	running, err := pgserver.Start("")
	if errors.Is(err, pgserver.ErrNotInstalled) {
		if failed := install(); failed != nil {
			return nil, fmt.Errorf("%w: %w", err, failed)
		}
		running, err = pgserver.Start("")
	}
	if err != nil {
		return nil, err
	}
	return &Server{Server: running}, nil
}

func install() error {
	if os.Geteuid() != 0 {
		return errors.New("only root may install it")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"update", "-q"},
		{"install", "-q", "-y", "--no-install-recommends", "postgresql"},
	} {
		// Several test processes may want it at once. In runlevel 1 the package starts no server.
		c := exec.Command("apt-get", append([]string{"-o", "DPkg::Lock::Timeout=300"}, arguments...)...)
		c.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", c.Args, err, out)
		}
	}
	return nil
}
