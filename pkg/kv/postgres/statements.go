// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"hash/fnv"

	"github.com/moraine-store/moraine/pkg/kv"
)

// duplicateTable is a code of appendix A of PostgreSQL's manual.
const duplicateTable = "42P07"

const (
	lockShared    = `select pg_advisory_xact_lock_shared($1)`
	lockExclusive = `select pg_advisory_xact_lock($1)`
)

const get = `select value from moraine.kv where partition_key = $1 and key = $2`

// getAll returns the values that there are, each with the position of its key.
const getAll = `
select position, stored.value from unnest($1::bytea[], $2::bytea[]) with ordinality as wanted(partition_key, key, position)
cross join lateral (
    select value from moraine.kv where partition_key = wanted.partition_key and key = wanted.key offset 0
) as stored`

// A page ends before the first entry in front of which there are PageBytes. The sum looks at lengths
// only, so the values behind it are neither unpacked nor sent.
const (
	pageStart = `
select key, value from (
    select key, value, sum(octet_length(key) + octet_length(value))
        over (order by key rows between unbounded preceding and 1 preceding) as before
    from (
        select key, value from moraine.kv
        where partition_key = $1 and key >= $2`
	pageEnd = `
        order by key limit $3
    ) as page
) as summed
where coalesce(before, 0) < $4
order by key`

	page      = pageStart + pageEnd
	pageUntil = pageStart + ` and key < $5` + pageEnd
)

// Keys are handed over sorted, and locked in that order.
const (
	setAll = `
insert into moraine.kv (partition_key, key, value)
select * from unnest($1::bytea[], $2::bytea[], $3::bytea[])
on conflict (partition_key, key) do update set value = excluded.value`

	deleteAll = `delete from moraine.kv where partition_key = $1 and key = any($2)`

	// dropChunk removes the first keys, from $2 on, and returns the last of them. That the last key comes from a subquery makes
	// it a bound of the index whatever the planner thinks: in a join, a plan made while the table was empty would look at every
	// key behind it.
	dropChunk = `
with last as (
    select key from (
        select key from moraine.kv where partition_key = $1 and key >= $2 order by key limit $3
    ) as chunk order by key desc limit 1
), gone as (
    delete from moraine.kv where partition_key = $1 and key >= $2 and key <= (select key from last)
)
select key from last`
)

// What follows begins with a fence, which is in $1 to $4: whether one is wanted and how, where it is,
// and what it should be. Each statement says whether it held.
const fence = `
with fence as (
    select case $1::smallint
        when 0 then true
        when 1 then stored is null
        when 2 then stored is not null
        else coalesce(stored = $4::bytea, false)
    end as held
    from (select (select value from moraine.kv where partition_key = $2 and key = $3) as stored) as it
)`

const (
	setAllFenced = fence + `, written as (
    insert into moraine.kv (partition_key, key, value)
    select * from unnest($5::bytea[], $6::bytea[], $7::bytea[])
    where (select held from fence)
    on conflict (partition_key, key) do update set value = excluded.value
)
select held from fence`

	// The conditional writes of one key are atomic by themselves: PostgreSQL looks at a row again
	// once it has the lock on it. They say whether anything was written.
	setIfAbsent = fence + `, written as (
    insert into moraine.kv (partition_key, key, value)
    select $5::bytea, $6::bytea, $7::bytea where (select held from fence)
    on conflict (partition_key, key) do nothing
    returning 1
)
select held, exists (select from written) from fence`

	setIfPresent = fence + `, written as (
    update moraine.kv set value = $7
    where (select held from fence) and partition_key = $5 and key = $6
        and ($8::bytea is null or value = $8)
    returning 1
)
select held, exists (select from written) from fence`

	deleteIfPresent = fence + `, written as (
    delete from moraine.kv
    where (select held from fence) and partition_key = $5 and key = $6
        and ($7::bytea is null or value = $7)
    returning 1
)
select held, exists (select from written) from fence`

	checkAbsent = fence + `
select held, not exists (select from moraine.kv where partition_key = $5 and key = $6) from fence`
)

// Batches with conditions take two statements. The first claims every key: it locks the rows that
// are there, which a conflict does even if nothing is then updated, and makes rows without a value
// for the others, so that nobody else can. The second sees them all, judges each batch, and then either
// performs its writes or takes the new rows away again. It returns the positions of writes whose conditions failed.
const (
	claim = fence + `
insert into moraine.kv (partition_key, key)
select $5::bytea, key from unnest($6::bytea[]) as claimed(key)
where (select held from fence)
on conflict (partition_key, key) do update set value = kv.value where false`

	settle = fence + `, writes as (
    select w.key, w.value, w.batch, w.position, stored.value is null as claimed, case w.condition
        when 0 then true
        when 1 then stored.value is null
        when 2 then stored.value is not null
        else coalesce(stored.value = w.expected, false)
    end as holds
    from unnest($6::bytea[], $7::bytea[], $8::smallint[], $9::bytea[], $10::integer[])
        with ordinality as w(key, value, condition, expected, batch, position)
    left join lateral (
        select value from moraine.kv where partition_key = $5 and key = w.key offset 0
    ) as stored on true
), judged as (
    select key, value, claimed, bool_and(holds) over (partition by batch) and (select held from fence) as good from writes
), updated as (
    update moraine.kv set value = judged.value from judged
    where good and judged.value is not null
        and partition_key = $5 and kv.key = any($6) and kv.key = judged.key
), deleted as (
    delete from moraine.kv using judged
    where case when good then judged.value is null else claimed end
        and partition_key = $5 and kv.key = any($6) and kv.key = judged.key
)
select held, array(select position::integer from writes where not holds order by position) from fence`
)

// Conditions as the statements know them.
const (
	always int16 = iota
	absent
	present
	equals
)

// conditionOf returns how a statement is told of a predicate; expected is nil unless it is equals.
func conditionOf(p *kv.Predicate) (condition int16, expected []byte) {
	switch {
	case p == nil:
		return always, nil
	case *p == kv.Absent:
		return absent, nil
	case *p == kv.Present:
		return present, nil
	default:
		return equals, p.Expected()
	}
}

func fenceArguments(f *kv.Fence) []any {
	if f == nil {
		return []any{always, []byte(nil), []byte(nil), []byte(nil)}
	}
	condition, expected := conditionOf(&f.Predicate)
	return []any{condition, f.Partition, f.Key, expected}
}

// lockOf returns the number of the advisory lock that guards a key which may serve as a fence. That
// two keys may share one does no harm, since no transaction holds more than one of them.
func lockOf(partition, key []byte) int64 {
	h := fnv.New64a()
	// A hash cannot fail. The length keeps partition and key apart.
	_, _ = h.Write([]byte{byte(len(partition)), byte(len(partition) >> 8)})
	_, _ = h.Write(partition)
	_, _ = h.Write(key)
	return int64(h.Sum64())
}
