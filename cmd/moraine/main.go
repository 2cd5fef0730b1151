// SPDX-License-Identifier: Apache-2.0

// Command moraine is the command line of a Moraine store. What it does is in package command.
package main

import "github.com/moraine-store/moraine/cmd/moraine/command"

//go:generate go run ./internal/gendocs ../../docs/cli.md

func main() { command.Main(nil) }
