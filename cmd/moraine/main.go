// SPDX-License-Identifier: Apache-2.0

// Command moraine is the command line of a Moraine store. What it does is in package command.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/moraine-store/moraine/cmd/moraine/command"
)

//go:generate go run ./internal/gendocs ../../docs/cli.md

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(command.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
