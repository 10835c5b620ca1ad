//! Opening a database, and the errors that can cause.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    time::Duration,
};

use elasticjob::history::{HistoryUrl, RunFilter, RunState, Sink, SinkError, Store, StoreError};
use testbed::free_port;
use tokio::task::JoinSet;

use crate::{
    database::{Kind, TestDatabase},
    events::done,
};
use elasticjob::problem::{Hint, Problem};

pub(crate) async fn several_processes_can_open_at_once(database: &TestDatabase) {
    open_at_once(database).await;
    assert_eq!(database.scalar("SELECT COUNT(*) FROM ELASTICJOB_SCHEMA").await, 1);
}

/// A race that few rounds lose: SQLite refuses to switch a file to WAL while another connection switches it.
#[tokio::test(flavor = "multi_thread")]
async fn several_processes_can_create_sqlite_file_at_once() {
    for _ in 0..40 {
        open_at_once(&TestDatabase::sqlite()).await;
    }
}

#[tokio::test]
async fn sqlite_files_are_readable_only_by_their_user() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.db");
    let mode = |suffix: &str| {
        let path = folder.path().join(format!("own.db{suffix}"));
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };

    let store = Store::open(&HistoryUrl::sqlite(&file)).await.unwrap();
    store.store(&done("settle", 0, 5)).await.unwrap();
    assert_eq!([mode(""), mode("-wal"), mode("-shm")], [0o600; 3]);

    for suffix in ["", "-wal", "-shm"] {
        let path = folder.path().join(format!("own.db{suffix}"));
        fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
    }
    let again = Store::open(&HistoryUrl::sqlite(&file)).await.unwrap();

    assert_eq!([mode(""), mode("-wal"), mode("-shm")], [0o600; 3], "tightened");
    assert_eq!(again.runs(&RunFilter::default()).await.unwrap().rows.len(), 1);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "no other file is left");
}

async fn open_at_once(database: &TestDatabase) {
    let mut opening = JoinSet::new();
    for _ in 0..8 {
        let url = database.url();
        opening.spawn(async move { Store::open(&url).await.map(|_| ()) });
    }

    for result in opening.join_all().await {
        result.unwrap();
    }
}

pub(crate) async fn reopening_changes_nothing(database: &TestDatabase) {
    database.open().await.store(&done("settle", 0, 5)).await.unwrap();

    let again = database.open().await;

    assert_eq!(again.runs(&RunFilter::default()).await.unwrap().rows.len(), 1);
}

pub(crate) async fn foreign_table_is_refused_and_unchanged(database: &TestDatabase) {
    if database.kind == Kind::Sqlite {
        drop(database.open().await);
        database.execute("DROP TABLE JOB_EXECUTION_LOG").await;
    }
    database.execute("CREATE TABLE JOB_EXECUTION_LOG (id VARCHAR(10), note VARCHAR(10))").await;

    let error = Store::open(&database.url()).await.unwrap_err();

    let StoreError::Refused { problem, .. } = &error else { panic!("{error}") };
    assert_eq!(
        problem,
        "its table JOB_EXECUTION_LOG has no column job_name, so it is not ElasticJob's"
    );
    assert!(error.hint().unwrap().starts_with("rename that table"), "{error}");
}

pub(crate) async fn newer_tables_are_refused(database: &TestDatabase) {
    database.open().await;
    // The later version replaced this table.
    database.execute("DROP TABLE ELASTICJOB_MISSED").await;
    database.execute("INSERT INTO ELASTICJOB_SCHEMA (version) VALUES (999)").await;

    let error = Store::open(&database.url()).await.unwrap_err();

    assert!(error.to_string().contains("version 999"), "{error}");
    assert!(!database.has("ELASTICJOB_MISSED").await, "nothing was created");
}

pub(crate) async fn older_tables_are_upgraded(database: &TestDatabase) {
    create_older_tables(database).await;

    database.open().await;

    assert!(database.has("ELASTICJOB_MISSED_JOB").await);
    assert!(database.scalar("SELECT COUNT(*) FROM ELASTICJOB_SCHEMA WHERE version > 1").await > 0);
}

/// Whether they had every shard is not known.
pub(crate) async fn runs_of_older_tables_keep_their_state(database: &TestDatabase) {
    drop(database.open().await);
    for column in ["expected", "untracked"] {
        database.execute(&format!("ALTER TABLE ELASTICJOB_RUN DROP COLUMN {column}")).await;
    }
    database.execute(OLDER_RUN).await;

    let store = database.open().await;
    store.store(&done("settle", 0, 5)).await.unwrap();

    let runs = store.runs(&RunFilter::default()).await.unwrap().rows;
    let read = runs.iter().map(|run| (run.job_name.as_str(), run.state, run.expected_shards));
    let read: Vec<_> = read.collect();
    assert_eq!(read, [("settle", RunState::Done, None), ("older", RunState::Done, None)]);
}

const OLDER_RUN: &str = "\
    INSERT INTO ELASTICJOB_RUN \
    (run_id, job_name, due_ms, source, total, state, started_ms, ended_ms, shards, done, failed, attempts, changes) \
    VALUES ('older/1000', 'older', 1000, 'schedule', 3, 'done', 1000, 1001, 1, 1, 0, 1, 2)";

pub(crate) async fn reader_can_query_without_newest_index(database: &TestDatabase) {
    create_older_tables(database).await;
    database.allow_reading().await;

    let reader = Store::open(&database.restricted_url.parse().unwrap()).await.unwrap();

    assert_eq!(reader.runs(&RunFilter::default()).await.unwrap().rows.len(), 1);
    assert!(!database.has("ELASTICJOB_MISSED_JOB").await);
}

/// Stores a run in tables of an earlier version.
async fn create_older_tables(database: &TestDatabase) {
    database.open().await.store(&done("settle", 0, 5)).await.unwrap();
    database.drop_index("ELASTICJOB_MISSED", "ELASTICJOB_MISSED_JOB").await;
    database.execute("UPDATE ELASTICJOB_SCHEMA SET version = 1").await;
}

/// Changing large tables takes longer than a caller waits.
pub(crate) async fn table_change_continues_after_caller_is_dropped(database: &TestDatabase) {
    const INDEXES: [&str; 3] =
        ["ELASTICJOB_LOG_JOB", "ELASTICJOB_LOG_TIME", "ELASTICJOB_LOG_INSTANCE"];
    drop(database.open().await);
    for index in INDEXES {
        database.drop_index("JOB_EXECUTION_LOG", index).await;
    }
    let exist = async || {
        for index in INDEXES {
            if !database.has(index).await {
                return false;
            }
        }
        true
    };
    let opening = async |timeout: Duration| {
        tokio::time::timeout(timeout, Store::open(&database.url())).await.is_ok()
    };

    if let Some(lock) = database.lock_table("JOB_EXECUTION_LOG").await {
        let mut opener = JoinSet::new();
        let url = database.url();
        opener.spawn(async move { Store::open(&url).await.map(|_| ()) });
        eventually("the change starts", async || database.waiting_for_lock().await > 0).await;
        opener.shutdown().await;
        drop(lock);
    } else {
        // SQLite has no lock to wait for; so there are too many rows for the change to finish in time.
        database.execute(MANY_ROWS).await;
        eventually("a change starts and continues", async || {
            opening(Duration::from_millis(100)).await
        })
        .await;
    }

    eventually("the change is completed", exist).await;
}

const MANY_ROWS: &str = "\
    WITH RECURSIVE n (seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM n WHERE seq < 300000) \
    INSERT INTO JOB_EXECUTION_LOG (id, job_name, task_id, hostname, ip, sharding_item, execution_source, is_success) \
    SELECT seq, 'legacy', 't', 'h', 'i', 0, 'NORMAL_TRIGGER', 1 FROM n";

/// Waits until the condition holds, up to a minute.
async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let eventually = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), eventually).await.expect(what);
}

pub(crate) async fn missing_create_right_is_reported(database: &TestDatabase) {
    let url: HistoryUrl = database.restricted_url.parse().unwrap();
    if database.kind == Kind::Sqlite {
        // A missing file cannot be read either.
        drop(database.open().await);
        database.execute("DROP TABLE ELASTICJOB_MISSED").await;
    }

    let error = Store::open(&url).await.unwrap_err();

    assert!(matches!(error, StoreError::NotAuthorised { .. }), "{error:?}");
    assert!(error.hint().is_some(), "{error}");
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

pub(crate) async fn reader_can_query_but_not_write(database: &TestDatabase) {
    database.open().await.store(&done("settle", 0, 5)).await.unwrap();
    database.allow_reading().await;

    let reader = Store::open(&database.restricted_url.parse().unwrap()).await.unwrap();
    let refused = reader.store(&done("settle", 1000, 5)).await.unwrap_err();

    assert_eq!(reader.runs(&RunFilter::default()).await.unwrap().rows.len(), 1);
    assert!(matches!(refused, SinkError::Refused(_)), "{refused:?}");
}

pub(crate) async fn unreachable_database_error_has_hint_and_no_password(database: &TestDatabase) {
    let port = free_port();
    let (unreachable, missing) = match database.kind {
        Kind::Sqlite => {
            ("sqlite:/dev/null/history.db".to_owned(), "sqlite:/proc/version".to_owned())
        }
        Kind::Postgres => (
            format!("postgres://jane:hunter2@127.0.0.1:{port}/history"),
            database.url.replace("/history_", "/nothing_"),
        ),
        Kind::MariaDb => (
            format!("mysql://jane:hunter2@127.0.0.1:{port}/history"),
            database.url.replace("/history_", "/nothing_"),
        ),
    };
    let open = async |url: &str| Store::open(&url.parse().unwrap()).await.unwrap_err();

    let (unreachable, missing) = (open(&unreachable).await, open(&missing).await);

    if database.kind != Kind::Sqlite {
        assert!(matches!(unreachable, StoreError::Unreachable { .. }), "{unreachable:?}");
    }
    assert!(!matches!(missing, StoreError::Unreachable { .. }), "{missing:?}");
    for error in [unreachable, missing].map(|error| Problem::of(&error).to_string()) {
        assert!(error.starts_with("history in ") && error.contains("; hint: "), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}
