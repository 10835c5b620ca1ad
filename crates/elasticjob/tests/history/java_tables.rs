//! Shares tables with Java ElasticJob.

use elasticjob::history::{ExecutionFilter, RunFilter, RunState, Sink, StatusState, TraceFilter};

use crate::{
    database::{Kind, TestDatabase},
    events::{SampleAttempt, done, failed},
};

/// The tables as ElasticJob 3.0 creates them, before and after it dropped a column.
fn tables(kind: Kind, with_source: bool) -> String {
    let (number, key, unique, success) = match kind {
        Kind::MariaDb => {
            ("auto_id int NOT NULL AUTO_INCREMENT,", "auto_id", ", UNIQUE KEY `id` (`id`)", "INT")
        }
        Kind::Postgres => ("", "id", "", "BOOLEAN"),
        Kind::Sqlite => ("", "id", "", "INTEGER"),
    };
    let source = if with_source { "source VARCHAR(50) NOT NULL," } else { "" };
    format!(
        "CREATE TABLE JOB_EXECUTION_LOG ({number} id VARCHAR(40) NOT NULL, job_name VARCHAR(100) NOT NULL, \
         task_id VARCHAR(255) NOT NULL, hostname VARCHAR(255) NOT NULL, ip VARCHAR(50) NOT NULL, sharding_item INT NOT NULL, \
         execution_source VARCHAR(20) NOT NULL, failure_cause VARCHAR(4000) NULL, is_success {success} NOT NULL, \
         start_time TIMESTAMP NULL, complete_time TIMESTAMP NULL, PRIMARY KEY ({key}){unique}); \
         CREATE TABLE JOB_STATUS_TRACE_LOG ({number} id VARCHAR(40) NOT NULL, job_name VARCHAR(100) NOT NULL, \
         original_task_id VARCHAR(255) NOT NULL, task_id VARCHAR(255) NOT NULL, slave_id VARCHAR(50) NOT NULL, {source} \
         execution_type VARCHAR(20) NOT NULL, sharding_item VARCHAR(100) NOT NULL, state VARCHAR(20) NOT NULL, \
         message VARCHAR(4000) NULL, creation_time TIMESTAMP NULL, PRIMARY KEY ({key})); \
         CREATE INDEX TASK_ID_STATE_INDEX ON JOB_STATUS_TRACE_LOG (task_id{length}, state)",
        length = if kind == Kind::MariaDb { "(128)" } else { "" },
    )
}

/// A time of that day as its JDBC driver writes it.
fn timestamp(kind: Kind, time: &str) -> String {
    let at: jiff::Timestamp = format!("2026-03-29T{time}Z").parse().unwrap();
    match kind {
        Kind::Sqlite => at.as_millisecond().to_string(),
        Kind::Postgres | Kind::MariaDb => format!("'2026-03-29 {time}'"),
    }
}

/// The rows that it writes when a shard starts, succeeds and fails, and when a task changes its state.
fn rows(kind: Kind, with_source: bool) -> String {
    let (no, yes) = if kind == Kind::Postgres { ("false", "true") } else { ("0", "1") };
    let task = "legacy@-@0,1@-@READY@-@10.0.0.9@-@77";
    let [one, two, three] = ["12:00:01", "12:00:02", "12:00:03"].map(|time| timestamp(kind, time));
    let begin = |id: &str, item: u32, source: &str| {
        format!(
            "INSERT INTO JOB_EXECUTION_LOG (id, job_name, task_id, hostname, ip, sharding_item, execution_source, is_success, \
             start_time) VALUES ('{id}', 'legacy', '{task}', 'java', '10.0.0.9', {item}, '{source}', {no}, {one});"
        )
    };
    let (source, lite) = if with_source { (" source,", " 'LITE_EXECUTOR',") } else { ("", "") };
    let statements = [
        begin("7d6f0d5a-0000-4000-8000-000000000001", 0, "NORMAL_TRIGGER"),
        begin("7d6f0d5a-0000-4000-8000-000000000002", 1, "MISFIRE"),
        begin("7d6f0d5a-0000-4000-8000-000000000003", 2, "NORMAL_TRIGGER"),
        format!(
            "UPDATE JOB_EXECUTION_LOG SET is_success = {yes}, complete_time = {two} \
             WHERE id = '7d6f0d5a-0000-4000-8000-000000000001';"
        ),
        format!(
            "UPDATE JOB_EXECUTION_LOG SET is_success = {no}, complete_time = {three}, \
             failure_cause = 'java.lang.IllegalStateException: order 4711' \
             WHERE id = '7d6f0d5a-0000-4000-8000-000000000002';"
        ),
        format!(
            "INSERT INTO JOB_STATUS_TRACE_LOG (id, job_name, original_task_id, task_id, slave_id,{source} execution_type, \
             sharding_item, state, message, creation_time) VALUES ('8d6f0d5a-0000-4000-8000-000000000001', 'legacy', '', \
             '{task}', '10.0.0.9',{lite} 'READY', '[0, 1]', 'TASK_RUNNING', '', {one})"
        ),
    ];
    statements.join(" ")
}

pub(crate) async fn java_rows_are_listed(database: &TestDatabase) {
    if database.kind == Kind::Sqlite {
        drop(database.open().await);
        database.execute("DROP TABLE JOB_EXECUTION_LOG; DROP TABLE JOB_STATUS_TRACE_LOG").await;
    }
    database.execute(&tables(database.kind, false)).await;
    database.execute(&rows(database.kind, false)).await;

    let store = database.open().await;
    store.store(&done("settle", 0, 5)).await.unwrap();

    let runs = store.runs(&RunFilter::default()).await.unwrap().rows;
    let actual: Vec<_> = runs.iter().map(|run| (&*run.job_name, run.state)).collect();
    assert_eq!(
        actual,
        [
            ("legacy", RunState::Running),
            ("legacy", RunState::Failed),
            ("legacy", RunState::Done),
            ("settle", RunState::Done)
        ]
    );
    let failed = store.run("7d6f0d5a-0000-4000-8000-000000000002").await.unwrap().unwrap();
    assert_eq!(failed.run.failure.as_deref(), Some("java.lang.IllegalStateException: order 4711"));
    assert_eq!((failed.run.duration_ms, failed.run.source), (Some(2000), None));
    let state = RunFilter { state: Some(RunState::Failed), ..RunFilter::default() };
    assert_eq!(store.runs(&state).await.unwrap().rows.len(), 1);
    let executions = store.executions(&ExecutionFilter::default()).await.unwrap().rows;
    assert_eq!(executions.len(), 5);
    assert_eq!(executions[0].start_time.unwrap().to_string(), "2026-03-29T12:00:01Z");
    let traces = store.traces(&TraceFilter::default()).await.unwrap().rows;
    assert_eq!((&*traces[0].state, &*traces[0].sharding_items), ("TASK_RUNNING", "[0, 1]"));
    let groups = store.failures(None, elasticjob::history::Span::default(), 10).await.unwrap();
    assert_eq!(groups[0].message, "java.lang.IllegalStateException: order <n>");
}

pub(crate) async fn java_queries_find_our_rows(database: &TestDatabase) {
    let store = database.open().await;
    let attempt = SampleAttempt::of("settle", 0);
    store.store(&done("settle", 0, 5)).await.unwrap();
    store.store(&failed("settle", 60_000, "no")).await.unwrap();
    store
        .store(&[attempt.status(StatusState::Staging, "Job 'settle' execute begin.")])
        .await
        .unwrap();
    let is_success = if database.kind == Kind::Postgres { "is_success" } else { "is_success = 1" };
    let (from, to) = (timestamp(database.kind, "12:00:00"), timestamp(database.kind, "12:00:30"));

    for (sql, expected) in [
        ("SELECT COUNT(*) FROM JOB_EXECUTION_LOG".to_owned(), 3),
        (format!("SELECT COUNT(*) FROM JOB_EXECUTION_LOG WHERE {is_success}"), 2),
        (
            format!(
                "SELECT COUNT(*) FROM JOB_EXECUTION_LOG WHERE start_time >= {from} AND start_time < {to} \
                 AND complete_time IS NOT NULL AND execution_source = 'NORMAL_TRIGGER' AND ip = '10.0.0.7' AND failure_cause IS NULL"
            ),
            2,
        ),
        (
            format!(
                "SELECT COUNT(*) FROM JOB_STATUS_TRACE_LOG WHERE task_id = '{}' AND state = 'TASK_STAGING' \
                 AND original_task_id = '' AND slave_id = '10.0.0.7' AND execution_type = 'READY' AND sharding_item = '[0]' \
                 AND source = 'LITE_EXECUTOR' AND creation_time = {from}",
                attempt.task()
            ),
            1,
        ),
    ] {
        assert_eq!(database.scalar(&sql).await, expected, "{sql}");
    }
}

pub(crate) async fn java_can_write_into_our_tables(database: &TestDatabase) {
    let store = database.open().await;

    database.execute(&rows(database.kind, true)).await;
    database.execute("DELETE FROM JOB_EXECUTION_LOG").await;
    database.execute("DELETE FROM JOB_STATUS_TRACE_LOG").await;
    database.execute(&rows(database.kind, false)).await;

    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().rows.len(), 3);
}

pub(crate) async fn exhausted_auto_increment_is_widened(database: &TestDatabase) {
    database.execute(&tables(database.kind, false)).await;
    for table in ["JOB_EXECUTION_LOG", "JOB_STATUS_TRACE_LOG"] {
        database.execute(&format!("ALTER TABLE {table} AUTO_INCREMENT = 2147483647")).await;
    }
    database.execute(rows(database.kind, false).split(';').next().unwrap()).await;
    let store = database.open().await;

    let mut events = done("settle", 0, 5);
    events.push(SampleAttempt::of("settle", 0).status(StatusState::Running, ""));
    store.store(&events).await.unwrap();
    store.store(&done("settle", 1000, 5)).await.unwrap();

    assert_eq!(store.runs(&RunFilter::default()).await.unwrap().rows.len(), 3);
}
