// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Defaults for what the URL does not say.
const (
	maxConns       = 16
	connectTimeout = 10 * time.Second
)

// errURL does not wrap what the client library says, which may quote a malformed URL with its password.
var errURL = fmt.Errorf("%w: malformed, or an unknown value of a parameter: write postgres://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE", kv.ErrInvalidURL)

func parseURL(url string, readOnly bool) (*pgxpool.Config, error) {
	_, rest, _ := strings.Cut(url, ":")
	if !strings.HasPrefix(rest, "//") {
		return nil, errURL
	}
	config, err := pgxpool.ParseConfig("postgres:" + rest)
	if err != nil {
		return nil, errURL
	}
	if !strings.Contains(rest, "pool_max_conns=") {
		config.MaxConns = maxConns
	}
	conn := config.ConnConfig
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = connectTimeout
	}
	// The protocols count on prepared statements in a pipeline.
	conn.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	if !readOnly {
		// Also after a failover, and with several hosts: reads from a standby would be stale.
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	setParameters(conn.RuntimeParams, readOnly)
	return config, nil
}

// setParameters gives every session what the statements count on, whatever is set for the database
// or the user.
func setParameters(p map[string]string, readOnly bool) {
	for name, value := range map[string]string{
		"application_name":   "moraine",
		"synchronous_commit": "on",
	} {
		if _, chosen := p[name]; !chosen {
			p[name] = value
		}
	}
	// Each statement must see what was committed while the one before it waited for a lock.
	p["default_transaction_isolation"] = "read committed"
	p["statement_timeout"] = "0"
	p["lock_timeout"] = "0"
	// The primary key is always the way. A plan is made once per connection, when the table may be
	// empty, and must still be right when it is large; in index order, locks cannot cross.
	p["plan_cache_mode"] = "force_generic_plan"
	p["enable_seqscan"] = "off"
	p["enable_bitmapscan"] = "off"
	p["jit"] = "off"
	if readOnly {
		p["default_transaction_read_only"] = "on"
	}
}
