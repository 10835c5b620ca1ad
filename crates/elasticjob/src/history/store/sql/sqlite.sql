-- Statements that only SQLite understands; the tables and all other statements are in `common.sql`.
--
-- Every statement, except `-- :list schema`, takes one parameter: the rows as JSON.

-- Existing objects: kind, table, name.
-- :list schema
SELECT 'column', UPPER(m.name), LOWER(c.name) FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table'
UNION ALL
SELECT 'index', UPPER(tbl_name), UPPER(name) FROM sqlite_master WHERE type = 'index'

-- Locks the row of a run before anything else of it is written: another process that writes this run waits, and then sees this transaction's rows.
-- :lock runs
INSERT INTO ELASTICJOB_RUN (
    run_id, job_name, due_ms, source, triggered_by, total, expected, untracked, state, started_ms, shards, done, failed,
    attempts, changes
)
SELECT
    value ->> 'run_id', value ->> 'job_name', value ->> 'due_ms', value ->> 'source',
    value ->> 'triggered_by', value ->> 'total', value ->> 'expected', value ->> 'untracked', 'running',
    value ->> 'started_ms', 0, 0, 0, 0, 1
FROM json_each(?)
WHERE TRUE
ON CONFLICT (run_id) DO UPDATE SET
    changes = changes + 1,
    expected = MAX(COALESCE(expected, excluded.expected), COALESCE(excluded.expected, expected)),
    untracked = MAX(COALESCE(untracked, excluded.untracked), COALESCE(excluded.untracked, untracked))

-- An end counts whether it arrives before or after the start; a start never removes it.
-- :insert attempts
INSERT INTO JOB_EXECUTION_LOG (
    id, job_name, task_id, hostname, ip, sharding_item, execution_source, failure_cause, is_success,
    start_time, complete_time, run_id, due_ms, attempt, reason, token, source, triggered_by, outcome,
    started_ms, ended_ms, duration_ms, lateness_ms, total, instance, trace_id, failure_group
)
SELECT
    value ->> 'id', value ->> 'job_name', value ->> 'task_id', value ->> 'hostname', value ->> 'ip',
    value ->> 'sharding_item', value ->> 'execution_source', value ->> 'failure_cause',
    value ->> 'is_success', value ->> 'started_ms', value ->> 'ended_ms', value ->> 'run_id',
    value ->> 'due_ms', value ->> 'attempt', value ->> 'reason', value ->> 'token', value ->> 'source',
    value ->> 'triggered_by', value ->> 'outcome', value ->> 'started_ms', value ->> 'ended_ms',
    value ->> 'duration_ms', value ->> 'lateness_ms', value ->> 'total', value ->> 'instance',
    value ->> 'trace_id', value ->> 'failure_group'
FROM json_each(?)
WHERE TRUE
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
UPDATE ELASTICJOB_RUN SET changes = changes + 1 WHERE run_id IN (SELECT value FROM json_each(?))

-- Marks open attempts of earlier claims of these shards as lost; an end that arrives later replaces that.
-- :mark attempts lost
UPDATE JOB_EXECUTION_LOG SET
    outcome = 'lost', failure_cause = g.value ->> 'failure_cause', failure_group = g.value ->> 'failure_group'
FROM json_each(?) AS g
WHERE JOB_EXECUTION_LOG.run_id = g.value ->> 'run_id'
    AND JOB_EXECUTION_LOG.sharding_item = g.value ->> 'sharding_item'
    AND JOB_EXECUTION_LOG.token < g.value ->> 'token'
    AND JOB_EXECUTION_LOG.outcome IS NULL

-- :insert traces
INSERT INTO JOB_STATUS_TRACE_LOG (
    id, job_name, original_task_id, task_id, slave_id, source, execution_type, sharding_item, state, message,
    creation_time, run_id
)
SELECT
    value ->> 'id', value ->> 'job_name', '', value ->> 'task_id', value ->> 'slave_id', 'LITE_EXECUTOR',
    'READY', value ->> 'sharding_item', value ->> 'state', value ->> 'message', value ->> 'at_ms',
    value ->> 'run_id'
FROM json_each(?)
WHERE TRUE
ON CONFLICT (id) DO NOTHING

-- :insert missed
INSERT INTO ELASTICJOB_MISSED (id, job_name, first_ms, last_ms, fires, why, noticed_ms)
SELECT
    value ->> 'id', value ->> 'job_name', value ->> 'first_ms', value ->> 'last_ms', value ->> 'fires',
    value ->> 'why', value ->> 'noticed_ms'
FROM json_each(?)
WHERE TRUE
ON CONFLICT (id) DO UPDATE SET last_ms = excluded.last_ms, fires = excluded.fires
WHERE excluded.last_ms > ELASTICJOB_MISSED.last_ms

-- :insert output
INSERT INTO ELASTICJOB_OUTPUT (attempt_id, part, run_id, sharding_item, at_ms, content)
SELECT
    value ->> 'attempt_id', value ->> 'part', value ->> 'run_id', value ->> 'sharding_item',
    value ->> 'at_ms', value ->> 'content'
FROM json_each(?)
WHERE TRUE
ON CONFLICT (attempt_id, part) DO NOTHING

-- :insert cuts
INSERT INTO ELASTICJOB_OUTPUT_CUT (attempt_id, run_id, sharding_item, from_part, to_part, bytes)
SELECT
    value ->> 'attempt_id', value ->> 'run_id', value ->> 'sharding_item', value ->> 'from_part',
    value ->> 'to_part', value ->> 'bytes'
FROM json_each(?)
WHERE TRUE
ON CONFLICT (attempt_id) DO UPDATE SET
    from_part = MIN(from_part, excluded.from_part),
    to_part = MAX(to_part, excluded.to_part),
    bytes = MAX(bytes, excluded.bytes)
