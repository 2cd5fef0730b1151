// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine/pkg/kv"
)

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version  string `json:"version"`
				Revision string `json:"revision,omitempty"`
				Go       string `json:"go"`
				Platform string `json:"platform"`
				Schema   int    `json:"schema"`
			}{programVersion(), "", runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, kv.SchemaVersion}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, s := range info.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			return a.printer.record(v, "Version", v.Version, "Revision", orDash(v.Revision), "Go", v.Go, "Platform", v.Platform,
				"Store schema", fmt.Sprint(v.Schema))
		},
	}
}

func programVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
