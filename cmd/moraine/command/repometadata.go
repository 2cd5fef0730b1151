// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moraine-store/moraine"
)

func (a *app) repoMetadata() *cobra.Command {
	var set, unset []string
	cmd := &cobra.Command{
		Use: "metadata REPO", Short: "Show or change what is noted about a repository",
		Example: "moraine repo metadata lake --set owner=data-team",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseRepo(args[0])
			if err != nil {
				return err
			}
			pairs, err := parsePairs("set", set)
			if err != nil {
				return err
			}
			for _, k := range unset {
				if _, both := pairs[k]; both {
					return usageError{fmt.Sprintf("%q is both set and unset", k)}
				}
			}
			if len(pairs) == 0 && len(unset) == 0 {
				return a.use(cmd.Context(), reading, func(s *moraine.Store) error {
					m, err := s.RepositoryMetadata(cmd.Context(), id)
					if err != nil {
						return err
					}
					return a.printMetadata(m)
				})
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				var now map[string]string
				err := s.UpdateRepositoryMetadata(cmd.Context(), id, func(m map[string]string) (map[string]string, error) {
					maps.Copy(m, pairs)
					maps.DeleteFunc(m, func(k, _ string) bool { return slices.Contains(unset, k) })
					now = m
					return m, nil
				})
				return a.done(err, func() any { return now })
			})
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "note as KEY=VALUE; may be repeated")
	cmd.Flags().StringArrayVar(&unset, "unset", nil, "key to remove; may be repeated")
	return cmd
}

func (a *app) printMetadata(m map[string]string) error {
	if a.printer.json {
		return a.printer.object(m)
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if err := a.printer.line(oneLine(k) + "=" + oneLine(m[k])); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) repoReadOnly() *cobra.Command {
	return &cobra.Command{
		Use: "read-only REPO on|off", Short: "Refuse all changes of what is in a repository, or allow them again",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := parseRepo(args[0])
			if err == nil && args[1] != "on" && args[1] != "off" {
				err = usageError{fmt.Sprintf("%q: expected on or off", args[1])}
			}
			if err != nil {
				return err
			}
			return a.use(cmd.Context(), writing, func(s *moraine.Store) error {
				if err := s.SetReadOnly(cmd.Context(), id, args[1] == "on"); err != nil {
					return err
				}
				r, err := s.GetRepository(cmd.Context(), id)
				return a.done(err, func() any { return viewRepository(r) })
			})
		},
	}
}
