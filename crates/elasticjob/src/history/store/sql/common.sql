-- The tables of history in PostgreSQL and SQLite, and the statements that are the same in both.
--
-- Sections `-- :table`, `-- :column`, `-- :index` and `-- :version` run where their object is missing, in this order. The first two tables are
-- Java ElasticJob's, as it creates them; the added columns are nullable, so that it can keep writing. Every other statement takes one
-- parameter: ids as a JSON array. `dialect.rs` replaces the words in braces.

-- :table JOB_EXECUTION_LOG
CREATE TABLE IF NOT EXISTS JOB_EXECUTION_LOG (
    id VARCHAR(40) NOT NULL,
    job_name VARCHAR(100) NOT NULL,
    task_id VARCHAR(255) NOT NULL,
    hostname VARCHAR(255) NOT NULL,
    ip VARCHAR(50) NOT NULL,
    sharding_item {integer} NOT NULL,
    execution_source VARCHAR(20) NOT NULL,
    failure_cause VARCHAR(4000) NULL,
    is_success {boolean} NOT NULL,
    start_time TIMESTAMP NULL,
    complete_time TIMESTAMP NULL,
    PRIMARY KEY (id)
)

-- :table JOB_STATUS_TRACE_LOG
CREATE TABLE IF NOT EXISTS JOB_STATUS_TRACE_LOG (
    id VARCHAR(40) NOT NULL,
    job_name VARCHAR(100) NOT NULL,
    original_task_id VARCHAR(255) NOT NULL,
    task_id VARCHAR(255) NOT NULL,
    slave_id VARCHAR(50) NOT NULL,
    execution_type VARCHAR(20) NOT NULL,
    sharding_item VARCHAR(100) NOT NULL,
    state VARCHAR(20) NOT NULL,
    message VARCHAR(4000) NULL,
    creation_time TIMESTAMP NULL,
    PRIMARY KEY (id)
)

-- :table ELASTICJOB_RUN
CREATE TABLE IF NOT EXISTS ELASTICJOB_RUN (
    run_id VARCHAR(150) NOT NULL,
    job_name VARCHAR(100) NOT NULL,
    due_ms BIGINT NOT NULL,
    source VARCHAR(20) NOT NULL,
    triggered_by VARCHAR(100) NULL,
    total INT NOT NULL,
    state VARCHAR(20) NOT NULL,
    started_ms BIGINT NOT NULL,
    ended_ms BIGINT NULL,
    duration_ms BIGINT NULL,
    lateness_ms BIGINT NULL,
    shards INT NOT NULL,
    done INT NOT NULL,
    failed INT NOT NULL,
    attempts INT NOT NULL,
    failure VARCHAR(1000) NULL,
    trace_id VARCHAR(32) NULL,
    changes BIGINT NOT NULL,
    PRIMARY KEY (run_id)
)

-- :table ELASTICJOB_OUTPUT
CREATE TABLE IF NOT EXISTS ELASTICJOB_OUTPUT (
    attempt_id VARCHAR(40) NOT NULL,
    part INT NOT NULL,
    run_id VARCHAR(150) NOT NULL,
    sharding_item INT NOT NULL,
    at_ms BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (attempt_id, part)
)

-- :table ELASTICJOB_OUTPUT_CUT
CREATE TABLE IF NOT EXISTS ELASTICJOB_OUTPUT_CUT (
    attempt_id VARCHAR(40) NOT NULL,
    run_id VARCHAR(150) NOT NULL,
    sharding_item INT NOT NULL,
    from_part INT NOT NULL,
    to_part INT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (attempt_id)
)

-- :table ELASTICJOB_MISSED
CREATE TABLE IF NOT EXISTS ELASTICJOB_MISSED (
    id VARCHAR(40) NOT NULL,
    job_name VARCHAR(100) NOT NULL,
    first_ms BIGINT NOT NULL,
    last_ms BIGINT NOT NULL,
    fires BIGINT NOT NULL,
    why VARCHAR(20) NOT NULL,
    noticed_ms BIGINT NOT NULL,
    PRIMARY KEY (id)
)

-- :table ELASTICJOB_SCHEMA
CREATE TABLE IF NOT EXISTS ELASTICJOB_SCHEMA (
    version INT NOT NULL,
    PRIMARY KEY (version)
)

-- :column JOB_EXECUTION_LOG run_id
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN run_id VARCHAR(150) NULL

-- :column JOB_EXECUTION_LOG due_ms
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN due_ms BIGINT NULL

-- :column JOB_EXECUTION_LOG attempt
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN attempt INT NULL

-- :column JOB_EXECUTION_LOG reason
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN reason VARCHAR(20) NULL

-- :column JOB_EXECUTION_LOG token
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN token BIGINT NULL

-- :column JOB_EXECUTION_LOG source
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN source VARCHAR(20) NULL

-- :column JOB_EXECUTION_LOG triggered_by
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN triggered_by VARCHAR(100) NULL

-- :column JOB_EXECUTION_LOG outcome
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN outcome VARCHAR(20) NULL

-- :column JOB_EXECUTION_LOG started_ms
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN started_ms BIGINT NULL

-- :column JOB_EXECUTION_LOG ended_ms
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN ended_ms BIGINT NULL

-- :column JOB_EXECUTION_LOG duration_ms
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN duration_ms BIGINT NULL

-- :column JOB_EXECUTION_LOG lateness_ms
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN lateness_ms BIGINT NULL

-- :column JOB_EXECUTION_LOG total
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN total INT NULL

-- :column JOB_EXECUTION_LOG instance
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN instance VARCHAR(100) NULL

-- :column JOB_EXECUTION_LOG trace_id
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN trace_id VARCHAR(32) NULL

-- :column JOB_EXECUTION_LOG failure_group
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN failure_group VARCHAR(200) NULL

-- Older versions of Java ElasticJob write this column, newer ones do not.
-- :column JOB_STATUS_TRACE_LOG source
ALTER TABLE JOB_STATUS_TRACE_LOG ADD COLUMN source VARCHAR(50) DEFAULT 'LITE_EXECUTOR' NOT NULL

-- :column JOB_STATUS_TRACE_LOG run_id
ALTER TABLE JOB_STATUS_TRACE_LOG ADD COLUMN run_id VARCHAR(150) NULL

-- Null in rows of programs that did not count the shards that a run should have.
-- :column ELASTICJOB_RUN expected
ALTER TABLE ELASTICJOB_RUN ADD COLUMN expected INT NULL

-- Shards that Java ElasticJob owned, whose attempts belong to no run.
-- :column ELASTICJOB_RUN untracked
ALTER TABLE ELASTICJOB_RUN ADD COLUMN untracked INT NULL

-- :index JOB_STATUS_TRACE_LOG TASK_ID_STATE_INDEX
CREATE INDEX IF NOT EXISTS TASK_ID_STATE_INDEX ON JOB_STATUS_TRACE_LOG (task_id, state)

-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_JOB
CREATE INDEX IF NOT EXISTS ELASTICJOB_TRACE_JOB ON JOB_STATUS_TRACE_LOG (job_name, creation_time, id)

-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_TIME
CREATE INDEX IF NOT EXISTS ELASTICJOB_TRACE_TIME ON JOB_STATUS_TRACE_LOG (creation_time, id)

-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_RUN
CREATE INDEX IF NOT EXISTS ELASTICJOB_TRACE_RUN ON JOB_STATUS_TRACE_LOG (run_id)

-- Finds own old traces, because most rows may be Java ElasticJob's.
-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_OWN
CREATE INDEX IF NOT EXISTS ELASTICJOB_TRACE_OWN ON JOB_STATUS_TRACE_LOG (creation_time, run_id) WHERE run_id IS NOT NULL

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_RUN
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_RUN ON JOB_EXECUTION_LOG (run_id, sharding_item) WHERE run_id IS NOT NULL

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_JOB
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_JOB ON JOB_EXECUTION_LOG (job_name, start_time, id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_TIME
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_TIME ON JOB_EXECUTION_LOG (start_time, id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_INSTANCE
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_INSTANCE ON JOB_EXECUTION_LOG (instance, start_time, run_id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FAILURE
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_FAILURE ON JOB_EXECUTION_LOG (job_name, failure_group, started_ms) WHERE failure_group IS NOT NULL

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FAILURE_TIME
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_FAILURE_TIME ON JOB_EXECUTION_LOG (started_ms, job_name, failure_group) WHERE failure_group IS NOT NULL

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FOREIGN
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_FOREIGN ON JOB_EXECUTION_LOG (start_time, id) WHERE run_id IS NULL

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FOREIGN_JOB
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_FOREIGN_JOB ON JOB_EXECUTION_LOG (job_name, start_time, id) WHERE run_id IS NULL

-- Finds Java ElasticJob's failures, which are few of its many rows.
-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FOREIGN_FAILED
CREATE INDEX IF NOT EXISTS ELASTICJOB_LOG_FOREIGN_FAILED ON JOB_EXECUTION_LOG (start_time, id) WHERE run_id IS NULL AND {failed}

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_TIME
CREATE INDEX IF NOT EXISTS ELASTICJOB_RUN_TIME ON ELASTICJOB_RUN (started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_JOB
CREATE INDEX IF NOT EXISTS ELASTICJOB_RUN_JOB ON ELASTICJOB_RUN (job_name, started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_STATE
CREATE INDEX IF NOT EXISTS ELASTICJOB_RUN_STATE ON ELASTICJOB_RUN (state, started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_JOB_STATE
CREATE INDEX IF NOT EXISTS ELASTICJOB_RUN_JOB_STATE ON ELASTICJOB_RUN (job_name, state, started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_SOURCE
CREATE INDEX IF NOT EXISTS ELASTICJOB_RUN_SOURCE ON ELASTICJOB_RUN (source, started_ms, run_id)

-- :index ELASTICJOB_OUTPUT ELASTICJOB_OUTPUT_RUN
CREATE INDEX IF NOT EXISTS ELASTICJOB_OUTPUT_RUN ON ELASTICJOB_OUTPUT (run_id, sharding_item, attempt_id, part)

-- :index ELASTICJOB_OUTPUT ELASTICJOB_OUTPUT_TIME
CREATE INDEX IF NOT EXISTS ELASTICJOB_OUTPUT_TIME ON ELASTICJOB_OUTPUT (at_ms, run_id)

-- :index ELASTICJOB_OUTPUT_CUT ELASTICJOB_OUTPUT_CUT_RUN
CREATE INDEX IF NOT EXISTS ELASTICJOB_OUTPUT_CUT_RUN ON ELASTICJOB_OUTPUT_CUT (run_id, sharding_item)

-- :index ELASTICJOB_MISSED ELASTICJOB_MISSED_TIME
CREATE INDEX IF NOT EXISTS ELASTICJOB_MISSED_TIME ON ELASTICJOB_MISSED (noticed_ms, id)

-- :index ELASTICJOB_MISSED ELASTICJOB_MISSED_JOB
CREATE INDEX IF NOT EXISTS ELASTICJOB_MISSED_JOB ON ELASTICJOB_MISSED (job_name, noticed_ms, id)

-- Last, when all of the above exists.
-- :version 2
INSERT INTO ELASTICJOB_SCHEMA (version)
SELECT 2 FROM (SELECT 1 AS one) AS o WHERE NOT EXISTS (SELECT 1 FROM ELASTICJOB_SCHEMA s WHERE s.version >= 2)

-- Derives the state of a run from its shards, and that of a shard from its last attempt: the one with the largest token, then the largest number.
-- :update runs
UPDATE ELASTICJOB_RUN SET
    state = CASE
        WHEN s.running > 0 THEN 'running' WHEN s.failed > 0 THEN 'failed' WHEN s.cancelled > 0 THEN 'cancelled' ELSE 'done'
    END,
    started_ms = s.started_ms,
    ended_ms = CASE WHEN s.running = 0 THEN s.ended_ms END,
    duration_ms = CASE WHEN s.running = 0 THEN s.ended_ms - s.started_ms END,
    lateness_ms = CASE WHEN ELASTICJOB_RUN.source = 'schedule' THEN {greatest}(0, s.started_ms - ELASTICJOB_RUN.due_ms) END,
    shards = s.shards,
    done = s.done,
    failed = s.failed,
    attempts = s.attempts,
    failure = s.failure,
    trace_id = s.trace_id
FROM (
        SELECT
            run_id,
            COUNT(*) AS attempts,
            SUM(CASE WHEN place = 1 THEN 1 ELSE 0 END) AS shards,
            SUM(CASE WHEN place = 1 AND outcome = 'done' THEN 1 ELSE 0 END) AS done,
            SUM(CASE WHEN place = 1 AND outcome IS NULL THEN 1 ELSE 0 END) AS running,
            SUM(CASE WHEN place = 1 AND outcome = 'cancelled' THEN 1 ELSE 0 END) AS cancelled,
            SUM(CASE WHEN place = 1 AND outcome NOT IN ('done', 'cancelled') THEN 1 ELSE 0 END) AS failed,
            MIN(started_ms) AS started_ms,
            MAX(ended_ms) AS ended_ms,
            MIN(CASE WHEN place = 1 THEN failure END) AS failure,
            MIN(trace_id) AS trace_id
        FROM (
            SELECT
                e.run_id, e.outcome, e.started_ms, e.ended_ms, e.trace_id, SUBSTR(e.failure_cause, 1, 1000) AS failure,
                ROW_NUMBER() OVER (
                    PARTITION BY e.run_id, e.sharding_item ORDER BY e.token DESC, e.attempt DESC
                ) AS place
            FROM JOB_EXECUTION_LOG e
            WHERE e.run_id IN ({ids})
        ) a
        GROUP BY run_id
) s
WHERE s.run_id = ELASTICJOB_RUN.run_id

-- Deletes cut parts, also if they arrive again later.
-- :delete cut output
DELETE FROM ELASTICJOB_OUTPUT
WHERE attempt_id IN ({ids}) AND EXISTS (
    SELECT 1 FROM ELASTICJOB_OUTPUT_CUT c
    WHERE c.attempt_id = ELASTICJOB_OUTPUT.attempt_id
        AND ELASTICJOB_OUTPUT.part >= c.from_part AND ELASTICJOB_OUTPUT.part < c.to_part
)

-- :delete output
DELETE FROM ELASTICJOB_OUTPUT WHERE run_id IN ({ids})

-- :delete cuts
DELETE FROM ELASTICJOB_OUTPUT_CUT WHERE run_id IN ({ids})

-- :delete traces
DELETE FROM JOB_STATUS_TRACE_LOG WHERE run_id IN ({ids})

-- :delete attempts
DELETE FROM JOB_EXECUTION_LOG WHERE run_id IN ({ids})

-- :delete runs
DELETE FROM ELASTICJOB_RUN WHERE run_id IN ({ids})
