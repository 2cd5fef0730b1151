// SPDX-License-Identifier: Apache-2.0

package sqlstore

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/moraine-store/moraine/internal/testpg"
	"github.com/moraine-store/moraine/pkg/graveler"
	"github.com/moraine-store/moraine/pkg/graveler/stest"
	"github.com/moraine-store/moraine/pkg/kv"
)

var (
	scan = regexp.MustCompile(`Scan (Backward )?(using \S+ )?on (graveler|moraine)_`)
	// whole are conditions that ask an index for no more than what is meant.
	whole = regexp.MustCompile(`Index Cond: .*\b(id|key|staging_token|partition)\b`)
)

// A plan is made once per connection, and then kept. It must not look at every row of a table because there were few when it was made.
func TestPlansOfSmallTablesAreGoodForLargeOnes(t *testing.T) {
	database := testpg.Start(t).NewDatabase(t)
	s, err := Open(t.Context(), Scheme+strings.TrimPrefix(database, "postgres"), kv.OpenOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	repo := stest.Repository(t, s)
	require.NoError(t, s.PutCommit(t.Context(), repo, &graveler.Commit{ID: "c1"}))
	require.NoError(t, s.Apply(t.Context(), nil, "t", []graveler.StagedWrite{{Key: graveler.Key("k")}}))
	explain := func(sql string, arguments []any) (plan []string) {
		require.NoError(t, s.pool.Read(t.Context(), func(conn *pgx.Conn) error {
			rows, err := conn.Query(t.Context(), "EXPLAIN "+s.tables.Replace(sql), arguments...)
			if err == nil {
				plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
			}
			return err
		}))
		return plan
	}
	require.NoError(t, s.pool.Read(t.Context(), func(conn *pgx.Conn) error {
		_, err := conn.Exec(t.Context(), "VACUUM ANALYZE")
		return err
	}))
	key := [][]byte{[]byte("k")}
	staged := []any{"lake", "main", "stamp", "t", key, key, key}
	for name, c := range map[string]query{
		"get branch":        {getBranch, hereArguments(repo, "main")},
		"scan branches":     {scanBranches, hereArguments(repo, "a", "a", pageRows)},
		"get commit":        {getCommit, hereArguments(repo, "c1")},
		"scan commits":      {scanCommits, hereArguments(repo, "a", "a", pageRows)},
		"put commit":        {putCommit, hereArguments(repo, "c1", "", "", repo.CreatedAt, "", nil, nil, 1, 1, "{}")},
		"create branch":     {createBranch, hereArguments(repo, "main", "t", "c1", "{}")},
		"replace branch":    {replaceBranch, hereArguments(repo, "main", "t", "c1", "{}", "stamp", "partition", "uid")},
		"remove branch":     {removeBranch, hereArguments(repo, "main", "stamp")},
		"old branch":        {oldBranch, hereArguments(repo, "main")},
		"scan old branches": {scanOldBranches, hereArguments(repo, "a", pageRows)},
		"get tag":           {getTag, hereArguments(repo, "v1")},
		"scan tags":         {scanTags, hereArguments(repo, "a", "a", pageRows)},
		"remove tag":        {removeTag, hereArguments(repo, "v1", "c1")},
		"put repository":    {replaceRepository, []any{"lake", "", repo.CreatedAt, "main", "uid", "{}", "stamp"}},
		"drop our own":      {dropOwn, []any{"lake-uid"}},
		"get repository":    {getRepository, []any{"lake"}},
		"scan repositories": {scanRepositories, []any{"a", "a", pageRows}},
		"hold repository":   holdRepository(repo),
		"lock branch":       lockBranchRow(repo, "main"),
		"set":               {setStaged, staged},
		"create":            {createStaged, staged},
		"replace":           {replaceStaged, append(staged, key, key)},
		"page":              {stagedPage, []any{"t", []byte{}, 4096, kv.PageBytes}},
		"page up to a key":  {stagedPageUntil, []any{"t", []byte{}, 4096, kv.PageBytes, []byte("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			plan := explain(c.sql, c.arguments)
			for i, line := range plan {
				require.NotRegexp(t, `Sort Key: [^w]`, line) // w is what is to be written
				if scan.MatchString(line) {
					require.Regexp(t, whole, plan[min(i+1, len(plan)-1)], strings.Join(plan, "\n"))
				}
			}
		})
	}
}
