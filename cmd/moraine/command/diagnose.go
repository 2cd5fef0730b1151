// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
	"github.com/moraine-store/moraine/pkg/kv"
	"github.com/moraine-store/moraine/pkg/migrate"
)

func (a *app) diagnose() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use: "diagnose", Short: "Print a report on the store, or on PostgreSQL tables, to attach to a bug",
		Long: "Print a report on the store, or with --from on the PostgreSQL tables of a deployment that keeps its metadata there (with lakefs+postgres:// also on the kv table of lakeFS), to attach to a bug: versions, numbers, sizes, what waits and what nothing refers to. There are no names, keys, URLs or contents in it; users are only counted. " +
			"It is one JSON object in either form. A table with -1 rows does not exist.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from != "" {
				d, err := migrate.DiagnoseSource(cmd.Context(), from)
				if err != nil {
					return err
				}
				return a.printReportObject(struct {
					Program string `json:"program"`
					migrate.SourceDiagnosis
				}{programVersion(), d})
			}
			return a.useOther(cmd.Context(), a.store, a.blocks, reading, func(s *moraine.Store, store kv.Store) error {
				d, err := migrate.Diagnose(cmd.Context(), s.Graveler, store)
				if err != nil {
					return err
				}
				return a.printReportObject(struct {
					Program string `json:"program"`
					Engine  string `json:"engine"`
					migrate.StoreDiagnosis
				}{programVersion(), schemeOf(a.store), d})
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "URL of the PostgreSQL database that has the tables: postgres://… or lakefs+postgres://…")
	return cmd
}

// printReportObject prints an object on one line, or for people on several.
func (a *app) printReportObject(v any) error {
	if a.printer.json {
		return a.printer.object(v)
	}
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return a.printer.line(string(bytes.TrimSpace(text)))
}
