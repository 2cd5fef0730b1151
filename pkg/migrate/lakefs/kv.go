// SPDX-License-Identifier: Apache-2.0

package lakefs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// MaxVersion is the last schema version of the kv table that this package knows; the first is 1.
const MaxVersion = 4

var (
	// ErrUnknownVersion is returned for a kv table of another schema version.
	ErrUnknownVersion = errors.New("schema version of lakeFS's kv table is not known")

	// ErrInvalidRecord is returned for a row of the kv table that is not what its key says. The error is a RecordError.
	ErrInvalidRecord = errors.New("invalid record in lakeFS's kv table")
)

// RecordError says what is wrong with which row. It matches ErrInvalidRecord, and Reason.
type RecordError struct {
	Partition, Key string // any bytes
	Reason         error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("partition %q, key %q: %v: %v", e.Partition, e.Key, ErrInvalidRecord, e.Reason)
}

// Unwrap lets the error match ErrInvalidRecord and its reason.
func (e *RecordError) Unwrap() []error { return []error{ErrInvalidRecord, e.Reason} }

// InternalPartition has the schema version.
const (
	InternalPartition = "kv-internal-metadata"
	versionKey        = "kv/schema/version"
)

// Version returns the schema version of the kv table that the search path leads to, 1 to MaxVersion. It is 0 where there is no
// table, or one without a version, which lakeFS notes when it has filled the table.
func Version(ctx context.Context, conn *pgx.Conn) (int, error) {
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass('kv') IS NOT NULL").Scan(&exists); err != nil {
		return 0, fmt.Errorf("look for table kv: %w", err)
	}
	if !exists {
		return 0, nil
	}
	value, err := (&KV{conn}).get(ctx, InternalPartition, versionKey)
	if err != nil || value == nil {
		return 0, err
	}
	version, err := strconv.Atoi(string(value))
	if err != nil || version < 1 || version > MaxVersion {
		return 0, fmt.Errorf("%w: %q, this program reads 1 to %d", ErrUnknownVersion, value, MaxVersion)
	}
	return version, nil
}

// KV reads a kv table through one connection, in whatever transaction that is: to read one instant is the caller's part. It reads
// one thing at a time: a sequence that it gives must have ended before the next call.
//
// Names compare as byte strings.
type KV struct{ conn *pgx.Conn }

// NewKV reads through a connection, which stays the caller's.
func NewKV(conn *pgx.Conn) *KV { return &KV{conn} }

// Partition is a part of the kv table.
type Partition struct {
	Name string // any bytes
	Rows int64
}

// Partitions yields all partitions, ascending. It reads the whole table.
func (kv *KV) Partitions(ctx context.Context) iter.Seq2[Partition, error] {
	return query(ctx, kv.conn, func(rows pgx.Rows) (Partition, error) {
		var name []byte
		var p Partition
		err := rows.Scan(&name, &p.Rows)
		p.Name = string(name)
		return p, err
	}, "SELECT partition_key, count(*) FROM kv GROUP BY partition_key ORDER BY partition_key")
}

// KeyCount is a kind of keys of a partition.
type KeyCount struct {
	Prefix string // up to the first slash, with it; the whole key where there is none, and of settings
	Rows   int64
}

// Keys yields what kinds of keys a partition has, ascending. It is meant for those of repositories and the others that have few
// kinds, not for what is staged.
func (kv *KV) Keys(ctx context.Context, partition string) iter.Seq2[KeyCount, error] {
	const sql = `SELECT CASE WHEN position('\x2f'::bytea IN key) = 0 OR substring(key FROM 1 FOR length($2::bytea)) = $2::bytea THEN key
			ELSE substring(key FROM 1 FOR position('\x2f'::bytea IN key)) END AS prefix, count(*)
		FROM kv WHERE partition_key = $1 GROUP BY prefix ORDER BY prefix`
	return query(ctx, kv.conn, func(rows pgx.Rows) (KeyCount, error) {
		var prefix []byte
		var c KeyCount
		err := rows.Scan(&prefix, &c.Rows)
		c.Prefix = string(prefix)
		return c, err
	}, sql, []byte(partition), []byte(settingsPrefix))
}

// Reads reports whether the other methods give out what has keys of a kind, as Keys has it, in the partition of repositories, in
// that of one repository, or in lakeFS's own.
func Reads(partition, prefix string) bool {
	switch partition {
	case RepositoriesPartition:
		return prefix == repositoriesPrefix
	case InternalPartition:
		return prefix == "kv/" // where the version is
	default:
		return slices.Contains([]string{branchesPrefix, tagsPrefix, commitsPrefix, metadataKey, protectionKey}, prefix)
	}
}

// get returns the value of a key, nil where there is none.
func (kv *KV) get(ctx context.Context, partition, key string) ([]byte, error) {
	var value []byte
	err := kv.conn.QueryRow(ctx, "SELECT value FROM kv WHERE partition_key = $1 AND key = $2", []byte(partition), []byte(key)).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read table kv, partition %q, key %q: %w", partition, key, err)
	}
	return value, nil
}

// scan yields the rows of a partition whose keys begin with a prefix, ascending, as decode reads them. Decode gets the key behind the prefix.
func scan[T any](ctx context.Context, kv *KV, partition, prefix string, decode func(key string, value []byte) (T, error)) iter.Seq2[T, error] {
	end := []byte(prefix)
	end[len(end)-1]++ // prefixes end in a slash
	const sql = "SELECT key, value FROM kv WHERE partition_key = $1 AND key >= $2 AND key < $3 ORDER BY key"
	return query(ctx, kv.conn, func(rows pgx.Rows) (v T, err error) {
		var key, value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return v, err
		}
		if v, err = decode(strings.TrimPrefix(string(key), prefix), value); err != nil {
			err = invalid(partition, string(key), err)
		}
		return v, err
	}, sql, []byte(partition), []byte(prefix), end)
}

// query yields the rows of a query as they come. An error, also one in the middle of the rows, is the last thing that it yields,
// but for a RecordError: other rows come behind it.
func query[T any](ctx context.Context, conn *pgx.Conn, scan func(pgx.Rows) (T, error), sql string, arguments ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		rows, err := conn.Query(ctx, sql, arguments...)
		if err != nil {
			yield(none, fmt.Errorf("read table kv: %w", err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			v, err := scan(rows)
			if err != nil {
				v, err = none, fmt.Errorf("read table kv: %w", err)
			}
			if !yield(v, err) || err != nil && !errors.Is(err, ErrInvalidRecord) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(none, fmt.Errorf("read table kv: %w", err))
		}
	}
}

// invalid says what is wrong with which row.
func invalid(partition, key string, reason error) error {
	return &RecordError{partition, key, reason}
}
