-- The tables of deployments that keep graveler metadata in PostgreSQL, as their newest schema version has them.

CREATE TABLE IF NOT EXISTS graveler_repositories (
    id                text PRIMARY KEY,
    storage_namespace text NOT NULL,
    creation_date     timestamptz NOT NULL,
    default_branch    text NOT NULL
);

CREATE TABLE IF NOT EXISTS graveler_branches (
    repository_id text NOT NULL,
    id            text NOT NULL,
    staging_token text,
    commit_id     text,
    PRIMARY KEY (repository_id, id)
);
CREATE INDEX IF NOT EXISTS graveler_branches_commit_id_idx ON graveler_branches (commit_id);

CREATE TABLE IF NOT EXISTS graveler_commits (
    repository_id text NOT NULL,
    id            text NOT NULL,
    committer     text NOT NULL,
    message       text NOT NULL,
    creation_date timestamptz NOT NULL,
    meta_range_id text NOT NULL,
    metadata      jsonb,
    parents       text[],
    version       integer NOT NULL DEFAULT 0,
    generation    integer,
    PRIMARY KEY (repository_id, id)
);

CREATE TABLE IF NOT EXISTS graveler_tags (
    repository_id text NOT NULL,
    id            text NOT NULL,
    commit_id     text NOT NULL,
    PRIMARY KEY (repository_id, id)
);

-- A NULL identity is a tombstone.
CREATE TABLE IF NOT EXISTS graveler_staging_kv (
    staging_token varchar NOT NULL,
    key           bytea NOT NULL,
    identity      bytea,
    data          bytea,
    UNIQUE (staging_token, key)
) PARTITION BY HASH (staging_token);

DO $$
BEGIN
    FOR i IN 0..9 LOOP
        EXECUTE format('CREATE TABLE IF NOT EXISTS graveler_staging_kv_p%s PARTITION OF graveler_staging_kv FOR VALUES WITH (MODULUS 10, REMAINDER %s)', i, i);
    END LOOP;
END $$;

CREATE TABLE IF NOT EXISTS schema_migrations (
    version bigint PRIMARY KEY,
    dirty   boolean NOT NULL
);
