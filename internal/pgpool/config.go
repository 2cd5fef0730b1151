// SPDX-License-Identifier: Apache-2.0

package pgpool

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/moraine-store/moraine/pkg/kv"
)

// Defaults for what the URL does not say.
const (
	MaxConns       = 16
	connectTimeout = 10 * time.Second
)

// parse does not wrap what the client library says, which may quote a malformed URL with its password.
func parse(url string, readOnly bool, session map[string]string) (*pgxpool.Config, error) {
	scheme, rest, _ := strings.Cut(url, ":")
	malformed := fmt.Errorf("%w: malformed, or an unknown value of a parameter: write %s://USER:PASSWORD@HOST:PORT/DATABASE?PARAMETER=VALUE", kv.ErrInvalidURL, scheme)
	if !strings.HasPrefix(rest, "//") {
		return nil, malformed
	}
	config, err := pgxpool.ParseConfig("postgres:" + rest)
	if err != nil {
		return nil, malformed
	}
	if !strings.Contains(rest, "pool_max_conns=") {
		config.MaxConns = MaxConns
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
	maps.Copy(conn.RuntimeParams, session)
	return config, nil
}

// setParameters gives every session what statements count on, whatever is set for the database or the user.
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
	// A plan is made once per connection, when tables may be empty, and must still be right when they are large: by an index; in
	// its order, locks cannot cross.
	p["plan_cache_mode"] = "force_generic_plan"
	for _, method := range []string{"enable_seqscan", "enable_bitmapscan", "jit"} {
		p[method] = "off"
	}
	if readOnly {
		p["default_transaction_read_only"] = "on"
	}
}
