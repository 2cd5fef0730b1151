// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// sideTables looks for tables in which this program's own SQL store keeps what the old ones cannot hold. A migration does not carry them over (a copy does); but what a branch shows must not depend on them.
func (p *planning) sideTables(ctx context.Context) error {
	const side = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename LIKE 'moraine\_%' AND tablename <> 'moraine_cutover' ORDER BY 1`
	var names []string
	for name, err := range rowsOf(ctx, p.r, "pg_tables", scanText, side) {
		if err != nil {
			return err
		}
		names = append(names, name)
	}
	for _, name := range names {
		l := LeftBehind{Table: name}
		if err := p.r.conn.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{name}.Sanitize()).Scan(&l.Rows); err != nil {
			return fmt.Errorf("count %s: %w", name, err)
		}
		if l.Rows > 0 {
			p.leave(l)
		}
		if name == sideBranches {
			if err := p.sealed(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// sideBranches has beside each branch what its row cannot hold, as JSON.
const sideBranches = "moraine_branches"

// sealed names the branches that show more than what is staged under their tokens.
func (p *planning) sealed(ctx context.Context) error {
	const sealed = `SELECT b.repository_id, b.id FROM moraine_branches s JOIN graveler_branches b USING (repository_id, id)
		WHERE s.record::jsonb ?| ARRAY['items', 'base'] ORDER BY 1, 2`
	type branch struct{ repository, id string }
	scan := func(rows pgx.Rows) (v branch, err error) { return v, rows.Scan(&v.repository, &v.id) }
	for v, err := range rowsOf(ctx, p.r, sideBranches, scan, sealed) {
		if err != nil {
			return err
		}
		p.note(&RowError{Table: sideBranches, Repository: v.repository, Key: v.id, Reason: ErrSealed})
	}
	return nil
}
