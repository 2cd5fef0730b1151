// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// background is a command that runs beside the others. What it prints stays in the pipe until it is ended, so it must not be much.
type background struct {
	args   []string
	cmd    *exec.Cmd
	stdout io.Reader
	stderr bytes.Buffer
}

// tooLong is how long a command in the background may take to print what a script waits for.
const tooLong = 2 * time.Minute

// begin starts a command that goes on until end.
func (s *script) begin(ts *testscript.TestScript, args []string) {
	b := &background{args: args, cmd: s.command(ts, args)}
	pipe, err := b.cmd.StdoutPipe()
	ts.Check(err)
	b.stdout, b.cmd.Stderr = pipe, &b.stderr
	ts.Check(b.cmd.Start())
	s.begun = b
	ts.Defer(func() {
		if s.begun == b { // the script failed before it came to the end
			_ = b.cmd.Process.Kill()
			_ = b.cmd.Wait()
		}
	})
}

// end waits until the command in the background has printed a line with a text, and sends it a signal.
func (s *script) end(ts *testscript.TestScript, args []string) {
	sent, b := signalOf(ts, args[0]), s.begun
	if b == nil {
		ts.Fatalf("no command was begun")
	}
	s.begun = nil
	bound := time.AfterFunc(tooLong, func() { _ = b.cmd.Process.Kill() }) // the exit code tells
	defer bound.Stop()
	var stdout bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(b.stdout, &stdout))
	for done := false; lines.Scan(); {
		if !done && strings.Contains(lines.Text(), args[1]) {
			done = true
			ts.Check(b.cmd.Process.Signal(sent))
		}
	}
	err := errors.Join(lines.Err(), b.cmd.Wait())
	s.record(ts, args[2], b.args, "  # SIG"+args[0], finished(err, b.cmd, &stdout, &b.stderr))
}
