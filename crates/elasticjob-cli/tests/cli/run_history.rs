//! The history that `run` records.

use std::path::{Path, PathBuf};

use elasticjob::history::{HistoryUrl, RunFilter, Store};
use sqlx::{Connection, Executor, PgConnection, SqliteConnection};
use testbed::Postgres;

use crate::{
    metrics::metrics,
    process::{Process, elasticjob},
    scene::{Scene, wait_until},
};

const JOBS: &str = "    talk: {cron: '* * * * * ?', props: {script.command.line: 'echo hello'}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_a_worker_are_recorded_and_counted() {
    let scene = Scene::with(JOBS).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("deep/history.db").display());
    let mut process = scene.start_worker(&["--health-listen", "0", "--history", &url]);
    assert!(process.wait_for_log("node starting").contains(&url));
    let line: serde_json::Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();
    for _ in 0..3 {
        process.wait_for_log("shard ended");
    }
    let recorded = r#"elasticjob_history_recorded_total{sink="history"}"#;
    wait_until(|| metrics(&address)[recorded] >= 3.0);
    let counted = metrics(&address);
    process.terminate();
    assert!(process.wait().0.success());

    assert!(counted[r#"elasticjob_history_dropped_total{sink="history",worth="failure"}"#] < 1.0);
    let store = Store::open(&url.parse::<HistoryUrl>().unwrap()).await.unwrap();
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert!(runs.rows.len() >= 3, "{runs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_while_the_database_is_unreachable() {
    let scene = Scene::with(JOBS).await;
    let folder = tempfile::tempdir().unwrap();
    let spill = folder.path().join("spill");
    let away = "postgres://jane:hunter2@127.0.0.1:1/jobs";
    let mut process =
        scene.start_worker(&["--history", away, "--history-spill", spill.to_str().unwrap()]);

    process.wait_for_log("node started");
    let line = process.wait_for_log("history not stored, jobs continue");
    process.wait_for_log("shard ended");
    process.wait_for_log("shard ended");

    assert!(line.contains("127.0.0.1:1") && !process.log().contains("hunter2"), "{line}");
    let waits = std::fs::read_dir(spill_folder(&spill).join("0")).unwrap().count();
    assert!(waits > 1, "the lock, and what waits");
}

/// The spill folder of the only database.
fn spill_folder(spill: &Path) -> PathBuf {
    let folder = std::fs::read_dir(spill).unwrap().next().unwrap().unwrap();
    assert!(folder.file_name().to_str().unwrap().starts_with("history-"), "{folder:?}");
    folder.path()
}

/// Asserts that jobs keep running and that the refusal was logged once, with database, problem and hint and without the password.
fn assert_jobs_run_without_history(process: &mut Process, database: &str, problem: &str) {
    let line = process.wait_for_log("history refused");
    for _ in 0..2 {
        process.wait_for_log("shard ended");
    }
    for part in [database, problem, "; hint: "] {
        assert!(line.contains(part), "{part:?} is not in {line}");
    }
    let log = process.log();
    assert!(!log.contains("hunter2"), "{log}");
    assert_eq!(log.matches("history refused").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_although_a_foreign_table_is_in_the_way() {
    let scene = Scene::with(JOBS).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("history.db").display());
    let mut file = SqliteConnection::connect(&format!("{url}?mode=rwc")).await.unwrap();
    file.execute("CREATE TABLE JOB_EXECUTION_LOG (id INTEGER, note TEXT)").await.unwrap();

    let mut process = scene.start_worker(&["--history", &url]);

    assert_jobs_run_without_history(&mut process, &url, "JOB_EXECUTION_LOG has no column job_name");
    let waits = spill_folder(&folder.path().join("history.db.waiting")).join("0/00000001.events");
    assert!(waits.metadata().unwrap().len() > 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real PostgreSQL: make test"]
async fn jobs_run_although_the_database_user_has_no_rights() {
    let scene = Scene::with(JOBS).await;
    let postgres = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let mut database = PgConnection::connect(&postgres.url()).await.unwrap();
    database.execute("CREATE ROLE guest LOGIN PASSWORD 'hunter2'").await.unwrap();
    database.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC").await.unwrap();
    let spill = scene.folder.path().join("spill");
    let (address, spill) = (postgres.address(), spill.to_str().unwrap());

    let url = format!("postgres://guest:hunter2@{address}/postgres");
    let mut process = scene.start_worker(&["--history", &url, "--history-spill", spill]);
    assert_jobs_run_without_history(
        &mut process,
        &format!("@{address}/postgres"),
        "USAGE and CREATE",
    );
    process.terminate();
    assert!(process.wait().0.success());

    // The next process records the spilled events, once it is permitted.
    database.execute("GRANT ALL ON SCHEMA public TO guest").await.unwrap();
    let mut process = scene.start_worker(&["--history", &url, "--history-spill", spill]);
    process.wait_for_log("history of an earlier process found");
    process.wait_for_log("shard ended");
    process.terminate();
    assert!(process.wait().0.success());
    let store = Store::open(&url.parse::<HistoryUrl>().unwrap()).await.unwrap();
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert!(runs.rows.len() >= 3 && runs.rows.iter().all(|run| run.done == 1), "{runs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_run_although_the_disk_is_full() {
    // About 20 kB each second.
    let jobs = "    talk: {cron: '* * * * * ?', props: {script.command.line: 'yes hello | head -c 20000', elasticjob.script.shell: 'true'}}\n";
    let scene = Scene::with(jobs).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("history.db").display());

    let mut process =
        scene.start_worker_with_file_limit(&["--health-listen", "0", "--history", &url], 600);
    let line: serde_json::Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();

    assert_jobs_run_without_history(&mut process, &url, "disk");
    let counted = metrics(&address);
    assert!(counted[r#"elasticjob_history_spilled_total{sink="history"}"#] > 0.0, "{counted:?}");
    // The spill files are on the same disk.
    let line = process.wait_for_log("history cannot be spilled completely");
    assert!(line.contains("history.db.waiting") && line.contains("free disk space"), "{line}");
    process.wait_for_log("shard ended");
}

#[test]
fn invalid_history_url_is_reported_before_jobs_are_joined() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.yml");
    std::fs::write(&file, format!("elasticjob:\n  jobs:\n{JOBS}")).unwrap();

    let output =
        elasticjob(&["run", "-f", file.to_str().unwrap(), "--check", "--history", "oracle://x/y"]);

    assert_eq!(output.code, Some(2));
    assert!(
        output.stderr.contains("--history") && output.stderr.contains("hint:"),
        "{}",
        output.stderr
    );
}
