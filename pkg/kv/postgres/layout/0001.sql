-- A row without a value exists only within a transaction that has claimed a key which is not there.
create table moraine.kv (
    partition_key bytea not null,
    key           bytea not null,
    value         bytea,
    primary key (partition_key, key)
) partition by hash (partition_key);

-- With more parts, a cached plan would need more locks than PostgreSQL takes on its fast path.
create table moraine.kv_0 partition of moraine.kv for values with (modulus 8, remainder 0);
create table moraine.kv_1 partition of moraine.kv for values with (modulus 8, remainder 1);
create table moraine.kv_2 partition of moraine.kv for values with (modulus 8, remainder 2);
create table moraine.kv_3 partition of moraine.kv for values with (modulus 8, remainder 3);
create table moraine.kv_4 partition of moraine.kv for values with (modulus 8, remainder 4);
create table moraine.kv_5 partition of moraine.kv for values with (modulus 8, remainder 5);
create table moraine.kv_6 partition of moraine.kv for values with (modulus 8, remainder 6);
create table moraine.kv_7 partition of moraine.kv for values with (modulus 8, remainder 7);
