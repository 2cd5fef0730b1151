// SPDX-License-Identifier: Apache-2.0

package esti

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/kv/all"
)

// nobody is the user and group without rights of its own.
const nobody = 65534

// unprivileged is the program that runs another one as a user to whom file modes apply. If that is who runs the tests, so much the better.
func unprivileged() {
	if os.Getuid() == 0 {
		must(errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody)))
	}
	become(os.Args[1:])
}

// limited is the program that runs another one, whose files cannot grow beyond a size: as on a disk that is full.
func limited() {
	bytes, err := strconv.ParseUint(os.Args[1], 10, 64)
	must(err)
	signal.Ignore(syscall.SIGXFSZ) // or it would end the process
	must(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: bytes}))
	become(os.Args[2:])
}

// become goes on as another program of this binary.
func become(args []string) {
	os.Args = args
	programs()[args[0]]()
}

// holder is the program that has the store open until its standard input ends.
func holder() {
	store, err := kv.Open(context.Background(), os.Getenv("MORAINE_STORE"), all.Engines(), kv.OpenOptions{ReadOnly: len(os.Args) > 1})
	must(err)
	fmt.Println("held")
	_, err = io.Copy(io.Discard, os.Stdin)
	must(errors.Join(err, store.Close()))
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
}
