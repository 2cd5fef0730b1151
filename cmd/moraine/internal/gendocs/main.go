// SPDX-License-Identifier: Apache-2.0

// Command gendocs writes the page that describes every command of moraine into the file that it is given.
package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/cmd/moraine/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gendocs FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], page(command.Root()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func page(root *cobra.Command) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Generated from the commands by `make generate`. -->\n\n# The command line\n\n%s\n\n", root.Long)
	fmt.Fprintf(&b, "Flags of every command:\n\n```\n%s```\n", root.PersistentFlags().FlagUsages())
	for _, c := range root.Commands() {
		describe(&b, c, "##")
	}
	return b.Bytes()
}

// describe writes a section about a command, and below it about those that it holds.
func describe(b *bytes.Buffer, c *cobra.Command, heading string) {
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	fmt.Fprintf(b, "\n%s %s\n\n%s\n", heading, c.CommandPath(), strings.TrimSpace(about))
	if c.HasSubCommands() {
		for _, sub := range c.Commands() {
			if !sub.Hidden {
				describe(b, sub, heading+"#")
			}
		}
		return
	}
	fmt.Fprintf(b, "\n```\n%s\n", c.UseLine())
	if flags := c.LocalFlags().FlagUsages(); flags != "" {
		fmt.Fprintf(b, "\n%s", flags)
	}
	fmt.Fprint(b, "```\n")
	if c.Example != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", c.Example)
	}
}
