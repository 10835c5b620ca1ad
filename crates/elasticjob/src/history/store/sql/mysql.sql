-- The tables of history in MySQL and MariaDB, and every statement that writes to them.
--
-- Sections `-- :table`, `-- :column`, `-- :index`, `-- :wide` and `-- :version` run where their object is missing, in this order. The first two
-- tables are Java ElasticJob's, as it creates them, except for the width of auto_id; the added columns are nullable, so that it can keep writing.
-- Every other statement, except `-- :list schema`, takes rows: all as one JSON parameter, or by name where it has `VALUES (…)` for one row.

-- :table JOB_EXECUTION_LOG
CREATE TABLE IF NOT EXISTS JOB_EXECUTION_LOG (
    auto_id BIGINT NOT NULL AUTO_INCREMENT,
    id VARCHAR(40) NOT NULL,
    job_name VARCHAR(100) NOT NULL,
    task_id VARCHAR(255) NOT NULL,
    hostname VARCHAR(255) NOT NULL,
    ip VARCHAR(50) NOT NULL,
    sharding_item INT NOT NULL,
    execution_source VARCHAR(20) NOT NULL,
    failure_cause VARCHAR(4000) NULL,
    is_success INT NOT NULL,
    start_time TIMESTAMP NULL,
    complete_time TIMESTAMP NULL,
    PRIMARY KEY (auto_id),
    UNIQUE KEY `id` (`id`)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4

-- :table JOB_STATUS_TRACE_LOG
CREATE TABLE IF NOT EXISTS JOB_STATUS_TRACE_LOG (
    auto_id BIGINT NOT NULL AUTO_INCREMENT,
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
    PRIMARY KEY (auto_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4

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
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin

-- :table ELASTICJOB_OUTPUT
CREATE TABLE IF NOT EXISTS ELASTICJOB_OUTPUT (
    attempt_id VARCHAR(40) NOT NULL,
    part INT NOT NULL,
    run_id VARCHAR(150) NOT NULL,
    sharding_item INT NOT NULL,
    at_ms BIGINT NOT NULL,
    content MEDIUMTEXT NOT NULL,
    PRIMARY KEY (attempt_id, part)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin

-- :table ELASTICJOB_OUTPUT_CUT
CREATE TABLE IF NOT EXISTS ELASTICJOB_OUTPUT_CUT (
    attempt_id VARCHAR(40) NOT NULL,
    run_id VARCHAR(150) NOT NULL,
    sharding_item INT NOT NULL,
    from_part INT NOT NULL,
    to_part INT NOT NULL,
    bytes BIGINT NOT NULL,
    PRIMARY KEY (attempt_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin

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
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin

-- :table ELASTICJOB_SCHEMA
CREATE TABLE IF NOT EXISTS ELASTICJOB_SCHEMA (
    version INT NOT NULL,
    PRIMARY KEY (version)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin

-- :column JOB_EXECUTION_LOG run_id
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN run_id VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- :column JOB_EXECUTION_LOG due_ms
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN due_ms BIGINT NULL

-- :column JOB_EXECUTION_LOG attempt
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN attempt INT NULL

-- :column JOB_EXECUTION_LOG reason
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN reason VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- :column JOB_EXECUTION_LOG token
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN token BIGINT NULL

-- :column JOB_EXECUTION_LOG source
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN source VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- :column JOB_EXECUTION_LOG triggered_by
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN triggered_by VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- :column JOB_EXECUTION_LOG outcome
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN outcome VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

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
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN instance VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- :column JOB_EXECUTION_LOG trace_id
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN trace_id VARCHAR(32) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- :column JOB_EXECUTION_LOG failure_group
ALTER TABLE JOB_EXECUTION_LOG ADD COLUMN failure_group VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- Older versions of Java ElasticJob write this column, newer ones do not.
-- :column JOB_STATUS_TRACE_LOG source
ALTER TABLE JOB_STATUS_TRACE_LOG ADD COLUMN source VARCHAR(50) DEFAULT 'LITE_EXECUTOR' NOT NULL

-- :column JOB_STATUS_TRACE_LOG run_id
ALTER TABLE JOB_STATUS_TRACE_LOG ADD COLUMN run_id VARCHAR(150) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL

-- Null in rows of programs that did not count the shards that a run should have.
-- :column ELASTICJOB_RUN expected
ALTER TABLE ELASTICJOB_RUN ADD COLUMN expected INT NULL

-- Shards that Java ElasticJob owned, whose attempts belong to no run.
-- :column ELASTICJOB_RUN untracked
ALTER TABLE ELASTICJOB_RUN ADD COLUMN untracked INT NULL

-- :index JOB_STATUS_TRACE_LOG TASK_ID_STATE_INDEX
CREATE INDEX TASK_ID_STATE_INDEX ON JOB_STATUS_TRACE_LOG (task_id(128), state)

-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_JOB
CREATE INDEX ELASTICJOB_TRACE_JOB ON JOB_STATUS_TRACE_LOG (job_name, creation_time, id)

-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_TIME
CREATE INDEX ELASTICJOB_TRACE_TIME ON JOB_STATUS_TRACE_LOG (creation_time, id)

-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_RUN
CREATE INDEX ELASTICJOB_TRACE_RUN ON JOB_STATUS_TRACE_LOG (run_id)

-- Finds own old traces, because most rows may be Java ElasticJob's.
-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_OWN
CREATE INDEX ELASTICJOB_TRACE_OWN ON JOB_STATUS_TRACE_LOG (creation_time, run_id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_RUN
CREATE INDEX ELASTICJOB_LOG_RUN ON JOB_EXECUTION_LOG (run_id, sharding_item)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_JOB
CREATE INDEX ELASTICJOB_LOG_JOB ON JOB_EXECUTION_LOG (job_name, start_time, id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_TIME
CREATE INDEX ELASTICJOB_LOG_TIME ON JOB_EXECUTION_LOG (start_time, id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_INSTANCE
CREATE INDEX ELASTICJOB_LOG_INSTANCE ON JOB_EXECUTION_LOG (instance, start_time, run_id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FAILURE
CREATE INDEX ELASTICJOB_LOG_FAILURE ON JOB_EXECUTION_LOG (job_name, failure_group, started_ms)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FAILURE_TIME
CREATE INDEX ELASTICJOB_LOG_FAILURE_TIME ON JOB_EXECUTION_LOG (started_ms, job_name, failure_group)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FOREIGN
CREATE INDEX ELASTICJOB_LOG_FOREIGN ON JOB_EXECUTION_LOG (run_id, start_time, id)

-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FOREIGN_JOB
CREATE INDEX ELASTICJOB_LOG_FOREIGN_JOB ON JOB_EXECUTION_LOG (run_id, job_name, start_time, id)

-- Finds Java ElasticJob's failures, which are few of its many rows.
-- :index JOB_EXECUTION_LOG ELASTICJOB_LOG_FOREIGN_FAILED
CREATE INDEX ELASTICJOB_LOG_FOREIGN_FAILED ON JOB_EXECUTION_LOG (run_id, is_success, start_time, id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_TIME
CREATE INDEX ELASTICJOB_RUN_TIME ON ELASTICJOB_RUN (started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_JOB
CREATE INDEX ELASTICJOB_RUN_JOB ON ELASTICJOB_RUN (job_name, started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_STATE
CREATE INDEX ELASTICJOB_RUN_STATE ON ELASTICJOB_RUN (state, started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_JOB_STATE
CREATE INDEX ELASTICJOB_RUN_JOB_STATE ON ELASTICJOB_RUN (job_name, state, started_ms, run_id)

-- :index ELASTICJOB_RUN ELASTICJOB_RUN_SOURCE
CREATE INDEX ELASTICJOB_RUN_SOURCE ON ELASTICJOB_RUN (source, started_ms, run_id)

-- :index ELASTICJOB_OUTPUT ELASTICJOB_OUTPUT_RUN
CREATE INDEX ELASTICJOB_OUTPUT_RUN ON ELASTICJOB_OUTPUT (run_id, sharding_item, attempt_id, part)

-- :index ELASTICJOB_OUTPUT ELASTICJOB_OUTPUT_TIME
CREATE INDEX ELASTICJOB_OUTPUT_TIME ON ELASTICJOB_OUTPUT (at_ms, run_id)

-- :index ELASTICJOB_OUTPUT_CUT ELASTICJOB_OUTPUT_CUT_RUN
CREATE INDEX ELASTICJOB_OUTPUT_CUT_RUN ON ELASTICJOB_OUTPUT_CUT (run_id, sharding_item)

-- :index ELASTICJOB_MISSED ELASTICJOB_MISSED_TIME
CREATE INDEX ELASTICJOB_MISSED_TIME ON ELASTICJOB_MISSED (noticed_ms, id)

-- :index ELASTICJOB_MISSED ELASTICJOB_MISSED_JOB
CREATE INDEX ELASTICJOB_MISSED_JOB ON ELASTICJOB_MISSED (job_name, noticed_ms, id)

-- Makes a trace that is written twice one row. Java ElasticJob's ids are random, so none of its rows conflict.
-- :index JOB_STATUS_TRACE_LOG ELASTICJOB_TRACE_ID
CREATE UNIQUE INDEX ELASTICJOB_TRACE_ID ON JOB_STATUS_TRACE_LOG (id)

-- Every written event takes a number, even if its row exists already, so the INT that Java ElasticJob creates would be exhausted after a while. Java
-- ElasticJob never reads the column.
-- :wide JOB_EXECUTION_LOG auto_id
ALTER TABLE JOB_EXECUTION_LOG MODIFY auto_id BIGINT NOT NULL AUTO_INCREMENT

-- :wide JOB_STATUS_TRACE_LOG auto_id
ALTER TABLE JOB_STATUS_TRACE_LOG MODIFY auto_id BIGINT NOT NULL AUTO_INCREMENT

-- Last, when all of the above exists.
-- :version 2
INSERT INTO ELASTICJOB_SCHEMA (version)
SELECT 2 FROM (SELECT 1 AS one) AS o WHERE NOT EXISTS (SELECT 1 FROM ELASTICJOB_SCHEMA s WHERE s.version >= 2)

-- Existing objects: kind, table, name.
-- :list schema
SELECT 'column', IF(@@lower_case_table_names = 0, table_name, UPPER(table_name)), LOWER(column_name)
FROM information_schema.columns WHERE table_schema = DATABASE()
UNION ALL
SELECT 'wide', IF(@@lower_case_table_names = 0, table_name, UPPER(table_name)), LOWER(column_name)
FROM information_schema.columns WHERE table_schema = DATABASE() AND data_type = 'bigint'
UNION ALL
SELECT DISTINCT 'index', IF(@@lower_case_table_names = 0, table_name, UPPER(table_name)), UPPER(index_name)
FROM information_schema.statistics WHERE table_schema = DATABASE()

-- Locks the row of a run before anything else of it is written: another process that writes this run waits, and then sees this transaction's rows.
-- :lock runs
INSERT INTO ELASTICJOB_RUN (
    run_id, job_name, due_ms, source, triggered_by, total, expected, untracked, state, started_ms, shards, done, failed,
    attempts, changes
)
SELECT
    r.run_id, r.job_name, r.due_ms, r.source, r.triggered_by, r.total, r.expected, r.untracked, 'running', r.started_ms,
    0, 0, 0, 0, 1
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    run_id VARCHAR(150) PATH '$.run_id', job_name VARCHAR(100) PATH '$.job_name',
    due_ms BIGINT PATH '$.due_ms', source VARCHAR(20) PATH '$.source',
    triggered_by VARCHAR(100) PATH '$.triggered_by', total INT PATH '$.total',
    expected INT PATH '$.expected', untracked INT PATH '$.untracked', started_ms BIGINT PATH '$.started_ms'
)) AS r
ORDER BY r.run_id
ON DUPLICATE KEY UPDATE
    changes = ELASTICJOB_RUN.changes + 1,
    expected = GREATEST(
        COALESCE(ELASTICJOB_RUN.expected, VALUES(expected)), COALESCE(VALUES(expected), ELASTICJOB_RUN.expected)
    ),
    untracked = GREATEST(
        COALESCE(ELASTICJOB_RUN.untracked, VALUES(untracked)), COALESCE(VALUES(untracked), ELASTICJOB_RUN.untracked)
    )

-- A table with AUTO_INCREMENT gets its rows from `VALUES (…)`, repeated for each row. An INSERT from JSON_TABLE would lock the whole table, and two
-- such transactions would deadlock.
--
-- An end counts whether it arrives before or after the start; a start never removes it.
-- :insert attempts
INSERT INTO JOB_EXECUTION_LOG (
    id, job_name, task_id, hostname, ip, sharding_item, execution_source, failure_cause, is_success,
    start_time, complete_time, run_id, due_ms, attempt, reason, token, source, triggered_by, outcome,
    started_ms, ended_ms, duration_ms, lateness_ms, total, instance, trace_id, failure_group
)
VALUES (
    :id, :job_name, :task_id, :hostname, :ip, :sharding_item, :execution_source, :failure_cause,
    :is_success, FROM_UNIXTIME(:started_ms DIV 1000), FROM_UNIXTIME(:ended_ms DIV 1000), :run_id,
    :due_ms, :attempt, :reason, :token, :source, :triggered_by, :outcome, :started_ms, :ended_ms,
    :duration_ms, :lateness_ms, :total, :instance, :trace_id, :failure_group
)
ON DUPLICATE KEY UPDATE
    failure_cause = IF(VALUES(outcome) IS NULL, JOB_EXECUTION_LOG.failure_cause, VALUES(failure_cause)),
    is_success = IF(VALUES(outcome) IS NULL, JOB_EXECUTION_LOG.is_success, VALUES(is_success)),
    complete_time = IF(VALUES(outcome) IS NULL, JOB_EXECUTION_LOG.complete_time, VALUES(complete_time)),
    ended_ms = IF(VALUES(outcome) IS NULL, JOB_EXECUTION_LOG.ended_ms, VALUES(ended_ms)),
    duration_ms = IF(VALUES(outcome) IS NULL, JOB_EXECUTION_LOG.duration_ms, VALUES(duration_ms)),
    failure_group = IF(VALUES(outcome) IS NULL, JOB_EXECUTION_LOG.failure_group, VALUES(failure_group)),
    outcome = IF(VALUES(outcome) IS NULL, JOB_EXECUTION_LOG.outcome, VALUES(outcome))

-- Locks the row of a run before its attempts, as `lock runs` does.
-- :lock existing runs
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (run_id VARCHAR(150) PATH '$')) AS g
STRAIGHT_JOIN ELASTICJOB_RUN r ON r.run_id = g.run_id COLLATE utf8mb4_bin
SET r.changes = r.changes + 1

-- Marks open attempts of earlier claims of these shards as lost; an end that arrives later replaces that.
-- :mark attempts lost
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
    run_id VARCHAR(150) PATH '$.run_id', sharding_item INT PATH '$.sharding_item', token BIGINT PATH '$.token',
    failure_cause VARCHAR(4000) PATH '$.failure_cause', failure_group VARCHAR(200) PATH '$.failure_group'
)) AS g
STRAIGHT_JOIN JOB_EXECUTION_LOG e FORCE INDEX (ELASTICJOB_LOG_RUN)
    ON e.run_id = g.run_id COLLATE utf8mb4_bin AND e.sharding_item = g.sharding_item
SET e.outcome = 'lost', e.failure_cause = g.failure_cause, e.failure_group = g.failure_group
WHERE e.token < g.token AND e.outcome IS NULL

-- Derives the state of a run from its shards, and that of a shard from its last attempt: the one with the largest token, then the largest number. A
-- plain SELECT into a variable, because an UPDATE that reads would lock the rows it reads.
-- :update runs
SELECT JSON_ARRAYAGG(JSON_OBJECT(
    'run_id', s.run_id,
    'state', CASE
        WHEN s.running > 0 THEN 'running' WHEN s.failed > 0 THEN 'failed' WHEN s.cancelled > 0 THEN 'cancelled' ELSE 'done'
    END,
    'started_ms', s.started_ms,
    'ended_ms', CASE WHEN s.running = 0 THEN s.ended_ms END,
    'duration_ms', CASE WHEN s.running = 0 THEN s.ended_ms - s.started_ms END,
    'shards', s.shards,
    'done', s.done,
    'failed', s.failed,
    'attempts', s.attempts,
    'failure', s.failure,
    'trace_id', s.trace_id
))
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
        SELECT STRAIGHT_JOIN
            e.run_id, e.outcome, e.started_ms, e.ended_ms, e.trace_id, SUBSTR(e.failure_cause, 1, 1000) AS failure,
            ROW_NUMBER() OVER (
                PARTITION BY e.run_id, e.sharding_item ORDER BY e.token DESC, e.attempt DESC
            ) AS place
        FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id VARCHAR(150) PATH '$')) AS touched
        JOIN JOB_EXECUTION_LOG e FORCE INDEX (ELASTICJOB_LOG_RUN) ON e.run_id = touched.run_id COLLATE utf8mb4_bin
    ) a
    GROUP BY run_id
) s
INTO @settled

-- The rows exist and are locked by this transaction, so only the part after ON DUPLICATE KEY takes effect.
-- :apply run updates
INSERT INTO ELASTICJOB_RUN (
    run_id, job_name, due_ms, source, total, changes, state, started_ms, ended_ms, duration_ms, shards, done, failed,
    attempts, failure, trace_id
)
SELECT
    r.run_id, '', 0, '', 0, 0, r.state, r.started_ms, r.ended_ms, r.duration_ms, r.shards, r.done, r.failed, r.attempts,
    r.failure, r.trace_id
FROM JSON_TABLE(@settled, '$[*]' COLUMNS (
    run_id VARCHAR(150) PATH '$.run_id', state VARCHAR(20) PATH '$.state', started_ms BIGINT PATH '$.started_ms',
    ended_ms BIGINT PATH '$.ended_ms', duration_ms BIGINT PATH '$.duration_ms', shards INT PATH '$.shards',
    done INT PATH '$.done', failed INT PATH '$.failed', attempts INT PATH '$.attempts',
    failure VARCHAR(1000) PATH '$.failure', trace_id VARCHAR(32) PATH '$.trace_id'
)) AS r
ORDER BY r.run_id
ON DUPLICATE KEY UPDATE
    lateness_ms = IF(
        ELASTICJOB_RUN.source = 'schedule', GREATEST(0, VALUES(started_ms) - ELASTICJOB_RUN.due_ms), NULL
    ),
    state = VALUES(state),
    started_ms = VALUES(started_ms),
    ended_ms = VALUES(ended_ms),
    duration_ms = VALUES(duration_ms),
    shards = VALUES(shards),
    done = VALUES(done),
    failed = VALUES(failed),
    attempts = VALUES(attempts),
    failure = VALUES(failure),
    trace_id = VALUES(trace_id)

-- :insert traces
INSERT INTO JOB_STATUS_TRACE_LOG (
    id, job_name, original_task_id, task_id, slave_id, source, execution_type, sharding_item, state, message,
    creation_time, run_id
)
VALUES (
    :id, :job_name, '', :task_id, :slave_id, 'LITE_EXECUTOR', 'READY', :sharding_item, :state,
    :message, FROM_UNIXTIME(:at_ms DIV 1000), :run_id
)
ON DUPLICATE KEY UPDATE id = JOB_STATUS_TRACE_LOG.id

-- :insert missed
INSERT INTO ELASTICJOB_MISSED (id, job_name, first_ms, last_ms, fires, why, noticed_ms)
SELECT
    r.id, r.job_name, r.first_ms, r.last_ms, r.fires, r.why, r.noticed_ms
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    id VARCHAR(40) PATH '$.id', job_name VARCHAR(100) PATH '$.job_name', first_ms BIGINT PATH '$.first_ms',
    last_ms BIGINT PATH '$.last_ms', fires BIGINT PATH '$.fires', why VARCHAR(20) PATH '$.why',
    noticed_ms BIGINT PATH '$.noticed_ms'
)) AS r
ON DUPLICATE KEY UPDATE
    fires = IF(VALUES(last_ms) > ELASTICJOB_MISSED.last_ms, VALUES(fires), ELASTICJOB_MISSED.fires),
    last_ms = GREATEST(ELASTICJOB_MISSED.last_ms, VALUES(last_ms))

-- :insert output
INSERT INTO ELASTICJOB_OUTPUT (attempt_id, part, run_id, sharding_item, at_ms, content)
SELECT
    r.attempt_id, r.part, r.run_id, r.sharding_item, r.at_ms, r.content
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    attempt_id VARCHAR(40) PATH '$.attempt_id', part INT PATH '$.part', run_id VARCHAR(150) PATH '$.run_id',
    sharding_item INT PATH '$.sharding_item', at_ms BIGINT PATH '$.at_ms', content MEDIUMTEXT PATH '$.content'
)) AS r
ON DUPLICATE KEY UPDATE part = ELASTICJOB_OUTPUT.part

-- :insert cuts
INSERT INTO ELASTICJOB_OUTPUT_CUT (attempt_id, run_id, sharding_item, from_part, to_part, bytes)
SELECT
    r.attempt_id, r.run_id, r.sharding_item, r.from_part, r.to_part, r.bytes
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    attempt_id VARCHAR(40) PATH '$.attempt_id', run_id VARCHAR(150) PATH '$.run_id',
    sharding_item INT PATH '$.sharding_item', from_part INT PATH '$.from_part', to_part INT PATH '$.to_part',
    bytes BIGINT PATH '$.bytes'
)) AS r
ON DUPLICATE KEY UPDATE
    from_part = LEAST(ELASTICJOB_OUTPUT_CUT.from_part, VALUES(from_part)),
    to_part = GREATEST(ELASTICJOB_OUTPUT_CUT.to_part, VALUES(to_part)),
    bytes = GREATEST(ELASTICJOB_OUTPUT_CUT.bytes, VALUES(bytes))

-- Deletes cut parts, also if they arrive again later.
-- :delete cut output
DELETE o FROM JSON_TABLE(?, '$[*]' COLUMNS (attempt_id VARCHAR(40) PATH '$')) AS touched
STRAIGHT_JOIN ELASTICJOB_OUTPUT_CUT c ON c.attempt_id = touched.attempt_id COLLATE utf8mb4_bin
STRAIGHT_JOIN ELASTICJOB_OUTPUT o ON o.attempt_id = c.attempt_id AND o.part >= c.from_part AND o.part < c.to_part

-- :delete output
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id VARCHAR(150) PATH '$')) AS gone
STRAIGHT_JOIN ELASTICJOB_OUTPUT t ON t.run_id = gone.run_id COLLATE utf8mb4_bin

-- :delete cuts
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id VARCHAR(150) PATH '$')) AS gone
STRAIGHT_JOIN ELASTICJOB_OUTPUT_CUT t ON t.run_id = gone.run_id COLLATE utf8mb4_bin

-- :delete traces
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id VARCHAR(150) PATH '$')) AS gone
STRAIGHT_JOIN JOB_STATUS_TRACE_LOG t ON t.run_id = gone.run_id COLLATE utf8mb4_bin

-- :delete attempts
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id VARCHAR(150) PATH '$')) AS gone
STRAIGHT_JOIN JOB_EXECUTION_LOG t ON t.run_id = gone.run_id COLLATE utf8mb4_bin

-- :delete runs
DELETE t FROM JSON_TABLE(?, '$[*]' COLUMNS (run_id VARCHAR(150) PATH '$')) AS gone
STRAIGHT_JOIN ELASTICJOB_RUN t ON t.run_id = gone.run_id COLLATE utf8mb4_bin
