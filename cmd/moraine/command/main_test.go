// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"testing"
)

// asCommand is the variable that tells this program, run again by a test, to be the command.
const asCommand = "MORAINE_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		Main(nil)
	}
	os.Exit(m.Run())
}
