// SPDX-License-Identifier: Apache-2.0

// Package esti tests the moraine command from end to end: scripts run it as a user would, and everything that it prints is compared with golden text.
//
// It has tests only. TestScripts runs every script in testdata on every engine of the table in esti_test.go that does not leave
// it out by name, and those in testdata/NAME on the engine NAME alone. Among the engines are facades of two stores, such as there
// are during a migration; what one side says and the other does not is printed, and so makes the script fail (see
// facade_test.go). One golden text serves all engines, because what differs from run to run has a stable name in it (see
// names_test.go): <commit-1> is the first commit ID that the script sees, <time> is a moment of today, <store> the URL of the
// script's store, and so on. TestQuickStart does the same with docs/quickstart.md, which is a script too.
//
// # Adding a script
//
// A script is a file testdata/THEME.txtar. Its language is that of [github.com/rogpeppe/go-internal/testscript] with the commands
// of commands_test.go:
//
//	# A line about what is shown.
//	exit 0 moraine repo create lake
//	exit 4 moraine repo create lake
//	exit 0 moraine show 'lake/<commit-1>'
//	cmp transcript want
//	-- want --
//
// "exit CODE COMMAND..." runs a command, which must end with exactly this exit code, and writes the command and what it printed
// to the file transcript; lines of standard error begin with "! " there. A stable name in an argument stands for what it names;
// <commit-1:8> are its first eight characters. Whatever fails must say so in one line that begins with "moraine: " and says
// nothing twice. "go test ./esti -update" puts the golden text where want is: read it before you keep it.
//
// Each script has an empty directory, $WORK, and a store of its own, which the environment names: files below that directory, or
// a database on a server that the tests start, $SERVER, where "sql STATEMENT" works. "begin COMMAND..." begins a command, which
// goes on beside the others until "end SIGNAL TEXT CODE" has seen a line with TEXT on its standard output and sent it the signal.
// "crowd FILE" runs several commands again and again at the same time, for what must hold whoever comes first. "spoil remove
// PARTITION PREFIX" takes the first record whose key has a prefix out of the key/value store, "spoil overwrite" makes nonsense of
// it, and "spoil restore" puts it back; "damage" does such things to the largest range file. Standing in for COMMAND,
// "unprivileged COMMAND..." runs a command as a user who may not read and write everything, and "limited BYTES COMMAND..." one
// whose files cannot grow beyond a size. "upload REPO/BRANCH:KEY PARTS" begins a multipart upload, since no command does. "old"
// fills a database, $OLD, with tables of the kind that 'moraine migrate' reads, and "oldsql STATEMENT" changes them; "lake" fills
// one with what lakeFS keeps, whose files are below lake.
//
// TestEveryCommandIsInAScript makes sure that no command and no flag is forgotten.
package esti
