-- Statements that only PostgreSQL understands; the tables and all other statements are in `common.sql`.
--
-- Every statement, except `-- :list schema`, takes one parameter: the rows as JSON.

-- Existing objects: kind, table, name.
-- :list schema
SELECT 'column', UPPER(table_name::TEXT), LOWER(column_name::TEXT)
FROM information_schema.columns WHERE table_schema = current_schema()
UNION ALL
SELECT 'index', UPPER(tablename::TEXT), UPPER(indexname::TEXT) FROM pg_indexes WHERE schemaname = current_schema()

-- Locks the row of a run before anything else of it is written: another process that writes this run waits, and then sees this transaction's rows.
-- :lock runs
INSERT INTO ELASTICJOB_RUN (
    run_id, job_name, due_ms, source, triggered_by, total, expected, untracked, state, started_ms, shards, done, failed,
    attempts, changes
)
SELECT
    r.run_id, r.job_name, r.due_ms, r.source, r.triggered_by, r.total, r.expected, r.untracked, 'running', r.started_ms,
    0, 0, 0, 0, 1
FROM json_to_recordset($1::json) AS r (
    run_id VARCHAR(150), job_name VARCHAR(100), due_ms BIGINT, source VARCHAR(20), triggered_by VARCHAR(100),
    total INT, expected INT, untracked INT, started_ms BIGINT
)
ORDER BY r.run_id
ON CONFLICT (run_id) DO UPDATE SET
    changes = ELASTICJOB_RUN.changes + 1,
    expected = GREATEST(ELASTICJOB_RUN.expected, excluded.expected),
    untracked = GREATEST(ELASTICJOB_RUN.untracked, excluded.untracked)

-- An end counts whether it arrives before or after the start; a start never removes it.
-- :insert attempts
INSERT INTO JOB_EXECUTION_LOG (
    id, job_name, task_id, hostname, ip, sharding_item, execution_source, failure_cause, is_success,
    start_time, complete_time, run_id, due_ms, attempt, reason, token, source, triggered_by, outcome,
    started_ms, ended_ms, duration_ms, lateness_ms, total, instance, trace_id, failure_group
)
SELECT
    r.id, r.job_name, r.task_id, r.hostname, r.ip, r.sharding_item, r.execution_source, r.failure_cause,
    r.is_success = 1, TIMESTAMP '1970-01-01' + r.started_ms * INTERVAL '1 millisecond',
    TIMESTAMP '1970-01-01' + r.ended_ms * INTERVAL '1 millisecond', r.run_id, r.due_ms, r.attempt, r.reason,
    r.token, r.source, r.triggered_by, r.outcome, r.started_ms, r.ended_ms, r.duration_ms, r.lateness_ms,
    r.total, r.instance, r.trace_id, r.failure_group
FROM json_to_recordset($1::json) AS r (
    id VARCHAR(40), job_name VARCHAR(100), task_id VARCHAR(255), hostname VARCHAR(255), ip VARCHAR(50),
    sharding_item INT, execution_source VARCHAR(20), failure_cause VARCHAR(4000), is_success INT,
    run_id VARCHAR(150), due_ms BIGINT, attempt INT, reason VARCHAR(20), token BIGINT, source VARCHAR(20),
    triggered_by VARCHAR(100), outcome VARCHAR(20), started_ms BIGINT, ended_ms BIGINT, duration_ms BIGINT,
    lateness_ms BIGINT, total INT, instance VARCHAR(100), trace_id VARCHAR(32), failure_group VARCHAR(200)
)
ORDER BY r.id
ON CONFLICT (id) DO UPDATE SET
    failure_cause = excluded.failure_cause,
    is_success = excluded.is_success,
    complete_time = excluded.complete_time,
    ended_ms = excluded.ended_ms,
    duration_ms = excluded.duration_ms,
    failure_group = excluded.failure_group,
    outcome = excluded.outcome
WHERE excluded.outcome IS NOT NULL

-- Locks the row of a run before its attempts, as `lock runs` does.
-- :lock existing runs
UPDATE ELASTICJOB_RUN SET changes = ELASTICJOB_RUN.changes + 1
FROM (
    SELECT run_id FROM ELASTICJOB_RUN
    WHERE run_id IN (SELECT json_array_elements_text($1::json)) ORDER BY run_id FOR UPDATE
) AS locked
WHERE ELASTICJOB_RUN.run_id = locked.run_id

-- Marks open attempts of earlier claims of these shards as lost; an end that arrives later replaces that.
-- :mark attempts lost
UPDATE JOB_EXECUTION_LOG SET outcome = 'lost', failure_cause = g.failure_cause, failure_group = g.failure_group
FROM json_to_recordset($1::json) AS g (
    run_id VARCHAR(150), sharding_item INT, token BIGINT, failure_cause VARCHAR(4000), failure_group VARCHAR(200)
)
WHERE JOB_EXECUTION_LOG.run_id = g.run_id
    AND JOB_EXECUTION_LOG.sharding_item = g.sharding_item
    AND JOB_EXECUTION_LOG.token < g.token
    AND JOB_EXECUTION_LOG.outcome IS NULL

-- :insert traces
INSERT INTO JOB_STATUS_TRACE_LOG (
    id, job_name, original_task_id, task_id, slave_id, source, execution_type, sharding_item, state, message,
    creation_time, run_id
)
SELECT
    r.id, r.job_name, '', r.task_id, r.slave_id, 'LITE_EXECUTOR', 'READY', r.sharding_item, r.state,
    r.message, TIMESTAMP '1970-01-01' + r.at_ms * INTERVAL '1 millisecond', r.run_id
FROM json_to_recordset($1::json) AS r (
    id VARCHAR(40), job_name VARCHAR(100), task_id VARCHAR(255), slave_id VARCHAR(50),
    sharding_item VARCHAR(100), state VARCHAR(20), message VARCHAR(4000), at_ms BIGINT, run_id VARCHAR(150)
)
ON CONFLICT (id) DO NOTHING

-- :insert missed
INSERT INTO ELASTICJOB_MISSED (id, job_name, first_ms, last_ms, fires, why, noticed_ms)
SELECT
    r.id, r.job_name, r.first_ms, r.last_ms, r.fires, r.why, r.noticed_ms
FROM json_to_recordset($1::json) AS r (
    id VARCHAR(40), job_name VARCHAR(100), first_ms BIGINT, last_ms BIGINT, fires BIGINT, why VARCHAR(20),
    noticed_ms BIGINT
)
ON CONFLICT (id) DO UPDATE SET last_ms = excluded.last_ms, fires = excluded.fires
WHERE excluded.last_ms > ELASTICJOB_MISSED.last_ms

-- :insert output
INSERT INTO ELASTICJOB_OUTPUT (attempt_id, part, run_id, sharding_item, at_ms, content)
SELECT
    r.attempt_id, r.part, r.run_id, r.sharding_item, r.at_ms, r.content
FROM json_to_recordset($1::json) AS r (
    attempt_id VARCHAR(40), part INT, run_id VARCHAR(150), sharding_item INT, at_ms BIGINT, content TEXT
)
ON CONFLICT (attempt_id, part) DO NOTHING

-- :insert cuts
INSERT INTO ELASTICJOB_OUTPUT_CUT (attempt_id, run_id, sharding_item, from_part, to_part, bytes)
SELECT
    r.attempt_id, r.run_id, r.sharding_item, r.from_part, r.to_part, r.bytes
FROM json_to_recordset($1::json) AS r (
    attempt_id VARCHAR(40), run_id VARCHAR(150), sharding_item INT, from_part INT, to_part INT, bytes BIGINT
)
ON CONFLICT (attempt_id) DO UPDATE SET
    from_part = LEAST(ELASTICJOB_OUTPUT_CUT.from_part, excluded.from_part),
    to_part = GREATEST(ELASTICJOB_OUTPUT_CUT.to_part, excluded.to_part),
    bytes = GREATEST(ELASTICJOB_OUTPUT_CUT.bytes, excluded.bytes)
