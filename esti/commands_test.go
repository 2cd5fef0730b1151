// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/moraine-store/moraine/pkg/kv"
)

// script is the state of a running script.
type script struct {
	*names
	engine engine
	store  string // its URL
	work   string
	held   *holding
	begun  *background
	victim *rangeFile
	spoilt *record
	newOld func() string // makes a database for old data
}

type scriptKey struct{}

func newScript(e engine, store, server, work string) *script {
	places := [][2]string{{store, "<store>"}, {kv.Redact(store), "<store>"}, {work, "$WORK"}}
	if server != "" {
		places = append(places, [2]string{server, "<server>"})
	}
	return &script{engine: e, store: store, work: work, names: newNames(places...)}
}

// commands are those that scripts have besides the usual ones.
func commands() map[string]func(*testscript.TestScript, bool, []string) {
	all := map[string]func(*testscript.TestScript, bool, []string){}
	for name, c := range map[string]struct {
		run   func(*script, *testscript.TestScript, []string)
		least int // number of arguments
		usage string
	}{
		"exit":     {(*script).exit, 2, "CODE COMMAND [ARG]..."},
		"together": {(*script).together, 3, "NUMBER CODE COMMAND [ARG]..."},
		"crowd":    {(*script).crowd, 1, "FILE"},
		"signal":   {(*script).signal, 4, "SIGNAL TEXT CODE COMMAND [ARG]..."},
		"begin":    {(*script).begin, 1, "COMMAND [ARG]..."},
		"end":      {(*script).end, 3, "SIGNAL TEXT CODE"},
		"hold":     {(*script).hold, 0, "[readonly]"},
		"release":  {(*script).release, 0, ""},
		"schema":   {(*script).schema, 1, "VERSION"},
		"sql":      {(*script).sql, 1, "STATEMENT"},
		"old":      {(*script).old, 0, ""},
		"oldsql":   {(*script).oldsql, 1, "STATEMENT"},
		"lake":     {(*script).lake, 0, ""},
		"write":    {(*script).write, 2, "FILE TEXT"},
		"files":    {(*script).files, 2, "DIR NUMBER"},
		"socket":   {(*script).socket, 1, "FILE"},
		"damage":   {(*script).damage, 1, "flip|cut|empty|replace|swap|remove|repair"},
		"spoil":    {(*script).spoil, 1, "remove|overwrite PARTITION PREFIX, or restore"},
		"upload":   {(*script).upload, 2, "REPO/BRANCH:KEY PARTS"},
		"disk":     {(*script).disk, 2, "DIR BYTES"},
		"anytime":  {(*script).anytime, 0, ""},
		"misplace": {(*script).misplace, 1, "REPO/BRANCH:KEY"},
	} {
		all[name] = func(ts *testscript.TestScript, neg bool, args []string) {
			if neg || len(args) < c.least {
				ts.Fatalf("usage: %s %s", name, c.usage)
			}
			c.run(ts.Value(scriptKey{}).(*script), ts, args)
		}
	}
	return all
}

// result is what a command came to. A code of 128 and more is the number of a signal that ended it, as in a shell.
type result struct {
	stdout, stderr string
	code           int
}

// command prepares a command in the environment of the script, of which it has the variables named here.
func (s *script) command(ts *testscript.TestScript, args []string) *exec.Cmd {
	var resolved []string
	for _, arg := range args {
		resolved = append(resolved, s.resolve(arg))
	}
	path, err := exec.LookPath(resolved[0]) // the PATH of scripts is ours
	ts.Check(err)
	cmd := exec.Command(path, resolved[1:]...)
	cmd.Args[0], cmd.Dir = resolved[0], ts.MkAbs(".")
	cmd.Env = os.Environ()
	for _, name := range []string{"MORAINE_STORE", "MORAINE_BLOCKS", "TZ", "USER", "GORACE", "WORK"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

func (s *script) run(ts *testscript.TestScript, args []string) result {
	var stdout, stderr bytes.Buffer
	cmd := s.command(ts, args)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return finished(cmd.Run(), cmd, &stdout, &stderr)
}

func finished(err error, cmd *exec.Cmd, stdout, stderr *bytes.Buffer) result {
	r := result{stdout: stdout.String(), stderr: stderr.String()}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		r.code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			r.code = 128 + int(status.Signal())
		}
	} else if err != nil {
		r.code, r.stderr = -1, fmt.Sprintf("run %s: %v\n", cmd.Path, err)
	}
	return r
}

func (s *script) exit(ts *testscript.TestScript, args []string) {
	s.record(ts, args[0], args[1:], "", s.run(ts, args[1:]))
}

// together runs a command several times at once. All must do the same.
func (s *script) together(ts *testscript.TestScript, args []string) {
	number, err := strconv.Atoi(args[0])
	ts.Check(err)
	results := make([]result, number)
	var group sync.WaitGroup
	for i := range results {
		group.Go(func() { results[i] = s.run(ts, args[2:]) })
	}
	group.Wait()
	for _, r := range results[1:] {
		if r != results[0] {
			ts.Fatalf("not the same:\n%+v\n%+v", results[0], r)
		}
	}
	s.record(ts, args[1], args[2:], fmt.Sprintf("  # %d at once", number), results[0])
}

// crowd runs the lines of a file, all at once, each in a loop of its own. A line is ROUNDS CODES COMMAND [ARG]...: each time the
// command must end with one of the codes. # in an argument is the number of the round. What is printed is not compared, since it
// depends on who comes first.
func (s *script) crowd(ts *testscript.TestScript, args []string) {
	var group sync.WaitGroup
	var mu sync.Mutex
	var problems []string
	text := ""
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		fields := strings.Fields(line)
		rounds, err := strconv.Atoi(fields[0])
		ts.Check(err)
		codes, command := strings.Split(fields[1], ","), fields[2:]
		text += fmt.Sprintf("$ %s  # rounds: %d, exit: %s\n", s.apply(strings.Join(command, " ")), rounds, fields[1])
		loop := make([]*exec.Cmd, rounds)
		for i := range loop {
			loop[i] = s.command(ts, strings.Split(strings.ReplaceAll(strings.Join(command, " "), "#", strconv.Itoa(i)), " "))
		}
		group.Go(func() {
			for _, cmd := range loop {
				var stdout, stderr bytes.Buffer
				cmd.Stdout, cmd.Stderr = &stdout, &stderr
				r := finished(cmd.Run(), cmd, &stdout, &stderr)
				problem := badErrors(r, r.stderr)
				if !slices.Contains(codes, strconv.Itoa(r.code)) {
					problem = fmt.Sprintf("exit code %d", r.code)
				}
				if problem != "" {
					mu.Lock()
					problems = append(problems, fmt.Sprintf("%q: %s:\n%s%s", cmd.Args, problem, r.stdout, r.stderr))
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	if len(problems) > 0 {
		ts.Fatalf("%s", strings.Join(problems, "\n"))
	}
	s.transcribe(ts, text)
}

// signal runs a command, and sends it a signal when it has written a line with a text to standard error.
func (s *script) signal(ts *testscript.TestScript, args []string) {
	sent := signalOf(ts, args[0])
	cmd := s.command(ts, args[3:])
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	pipe, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	lines := bufio.NewScanner(io.TeeReader(pipe, &stderr))
	for lines.Scan() {
		if strings.Contains(lines.Text(), args[1]) {
			ts.Check(cmd.Process.Signal(sent))
		}
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	r := finished(err, cmd, &stdout, &stderr)
	if sent == syscall.SIGKILL { // how much followed is chance
		if before, after, ok := strings.Cut(r.stderr, args[1]); ok {
			rest, _, _ := strings.Cut(after, "\n")
			r.stderr = before + args[1] + rest + "\n"
		}
	}
	s.record(ts, args[2], args[3:], "  # SIG"+args[0], r)
}

// anytime has all times replaced in what follows, not only those of today: those that a moved clock brings differ each day.
func (s *script) anytime(*testscript.TestScript, []string) { s.allTimes = true }

func signalOf(ts *testscript.TestScript, name string) os.Signal {
	sent, ok := map[string]os.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[name]
	if !ok {
		ts.Fatalf("signal %s: expected INT, TERM or KILL", name)
	}
	return sent
}

// record checks what a command came to, and adds it to the transcript.
func (s *script) record(ts *testscript.TestScript, want string, args []string, remark string, r result) {
	stdout, stderr := s.apply(r.stdout), s.apply(r.stderr)
	if strconv.Itoa(r.code) != want {
		ts.Fatalf("exit code %d, want %s\n%s%s", r.code, want, stdout, stderr)
	}
	if problem := badErrors(r, stderr); problem != "" {
		ts.Fatalf("%s:\n%s", problem, stderr)
	}
	text := "$"
	for _, arg := range args {
		text += " " + quote(s.apply(arg))
	}
	text += remark + "\n" + stdout
	for line := range strings.Lines(stderr) {
		text += "! " + line
	}
	if r.code != 0 {
		text += fmt.Sprintf("exit %d\n", r.code)
	}
	s.transcribe(ts, text)
}

func (s *script) transcribe(ts *testscript.TestScript, text string) {
	f, err := os.OpenFile(filepath.Join(s.work, "transcript"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	_, err = f.WriteString(text)
	ts.Check(errors.Join(err, f.Close()))
}

// badErrors says what is wrong with how a command reports that it failed, or did not.
func badErrors(r result, stderr string) string {
	var failures []string
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "moraine: ") {
			failures = append(failures, line)
		}
	}
	switch {
	case r.code >= 128:
		return ""
	case (r.code != 0) != (len(failures) == 1), len(failures) > 1:
		return fmt.Sprintf("%d lines about a failure, with exit code %d", len(failures), r.code)
	case r.code != 0 && !strings.HasSuffix(stderr, failures[0]):
		return "the failure is not the last line"
	}
	for _, line := range failures {
		parts := strings.Split(strings.TrimSpace(line), ": ")
		if len(slices.Compact(slices.Clone(parts))) != len(parts) {
			return "something is said twice"
		}
	}
	return ""
}

// quote shows an argument as a shell would take it, but leaves $WORK and names alone.
func quote(arg string) string {
	if arg == "" || strings.ContainsAny(arg, " '\"\\\n*;&|()") {
		return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return arg
}
