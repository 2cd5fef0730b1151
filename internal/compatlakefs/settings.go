// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/migrate/lakefs"
)

// settings compares what only the kv table has, and expected.json has not: what is said of repositories and branches beside their names.
func (c *comparison) settings(ctx context.Context, s *loaded, r graveler.Repository) error {
	keyValue, err := s.isKeyValue(ctx)
	if err != nil || !keyValue {
		return err
	}
	return within(ctx, s.url, func(conn *pgx.Conn) error {
		kv := lakefs.NewKV(conn)
		var found lakefs.Repository
		for have, err := range kv.Repositories(ctx) {
			if err != nil {
				return err
			}
			if have.ID == string(r.ID) {
				found = have
			}
		}
		c.equal("settings", "read-only", r.ReadOnly, found.ReadOnly)
		return c.settingsOf(ctx, kv, found)
	})
}

func (c *comparison) settingsOf(ctx context.Context, kv *lakefs.KV, r lakefs.Repository) error {
	metadata, err := kv.Metadata(ctx, r)
	if err != nil {
		return err
	}
	got, err := c.g.RepositoryMetadata(ctx, c.id)
	if err != nil {
		return err
	}
	c.equal("settings", "metadata", fmt.Sprint(got), fmt.Sprint(metadata))

	rules, err := kv.Protection(ctx, r)
	if err != nil {
		return err
	}
	protected, err := c.g.BranchProtection(ctx, c.id)
	if err != nil {
		return err
	}
	forbidden := map[string]graveler.Actions{}
	for _, rule := range protected {
		forbidden[rule.Pattern] |= rule.Forbid
	}
	c.equal("settings", "protection rules", len(protected), len(rules))
	for _, rule := range rules {
		c.equal("settings", "protection of "+rule.Pattern, forbidden[rule.Pattern]&graveler.ActionStage != 0, rule.StagingWrite)
		c.equal("settings", "protection of "+rule.Pattern, forbidden[rule.Pattern]&graveler.ActionCommit != 0, rule.Commit)
	}
	hidden := map[string]bool{}
	for b, err := range c.g.ListAllBranches(ctx, c.id, "") {
		if err != nil {
			return err
		}
		hidden[string(b.ID)] = b.Hidden
	}
	for b, err := range kv.Branches(ctx, r) {
		if err != nil {
			return err
		}
		c.equal("settings", b.ID+" hidden", hidden[b.ID], b.Hidden)
	}
	return nil
}
