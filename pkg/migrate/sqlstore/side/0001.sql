-- What the old tables cannot hold. A row that has no counterpart here was written by the old program: record is then what a reader makes up for it.
CREATE TABLE moraine_repositories (
    id     text PRIMARY KEY,
    uid    text NOT NULL,
    record text NOT NULL
);
CREATE TABLE moraine_branches (
    repository_id text NOT NULL,
    id            text NOT NULL,
    record        text NOT NULL,
    PRIMARY KEY (repository_id, id)
);
CREATE TABLE moraine_commits (
    repository_id text NOT NULL,
    id            text NOT NULL,
    record        text NOT NULL,
    PRIMARY KEY (repository_id, id)
);

-- Scans go by bytes, whatever the collation of the database is.
CREATE INDEX moraine_repositories_by_bytes ON graveler_repositories (id COLLATE "C");
CREATE INDEX moraine_branches_by_bytes ON graveler_branches (repository_id, id COLLATE "C");
CREATE INDEX moraine_commits_by_bytes ON graveler_commits (repository_id, id COLLATE "C");
CREATE INDEX moraine_tags_by_bytes ON graveler_tags (repository_id, id COLLATE "C");

-- Of these the old tables know nothing. A partition is that of a repository: its name and its UID.
CREATE TABLE moraine_moves (
    partition  text COLLATE "C" NOT NULL,
    branch_uid text COLLATE "C" NOT NULL,
    at         bigint NOT NULL,
    record     text NOT NULL,
    PRIMARY KEY (partition, branch_uid, at)
);
CREATE TABLE moraine_log_names (
    partition  text COLLATE "C" NOT NULL,
    branch     text COLLATE "C" NOT NULL,
    branch_uid text COLLATE "C" NOT NULL,
    PRIMARY KEY (partition, branch, branch_uid)
);
CREATE TABLE moraine_log_bounds (
    partition  text COLLATE "C" NOT NULL,
    branch_uid text COLLATE "C" NOT NULL,
    start      bigint NOT NULL,
    intent     bigint NOT NULL,
    PRIMARY KEY (partition, branch_uid)
);
CREATE TABLE moraine_pins (
    partition text COLLATE "C" NOT NULL,
    owner     text COLLATE "C" NOT NULL,
    record    text NOT NULL,
    PRIMARY KEY (partition, owner)
);
CREATE TABLE moraine_expirations (
    partition text COLLATE "C" NOT NULL,
    commit_id text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    pending   boolean NOT NULL,
    PRIMARY KEY (partition, commit_id)
);
CREATE TABLE moraine_settings (
    partition text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    stamp     text NOT NULL,
    document  bytea NOT NULL,
    PRIMARY KEY (partition, name)
);
CREATE TABLE moraine_cleanups (
    partition text COLLATE "C" PRIMARY KEY,
    record    text NOT NULL
);
CREATE TABLE moraine_clock (
    one       boolean PRIMARY KEY CHECK (one),
    watermark bigint NOT NULL
);

-- Called first in every transaction that writes: fails where the tables were cut over, and keeps that from being done until the transaction ends. The lock comes first, so that what is looked for then is
-- what was there when it was had. The lock is that of package cutover.
CREATE OR REPLACE FUNCTION moraine_guard() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended('moraine cutover', 0));
    IF to_regclass('moraine_cutover') IS NOT NULL THEN
        RAISE EXCEPTION 'the tables were cut over' USING ERRCODE = 'MC001';
    END IF;
END $$;
