//! `run` remembers what happened.

use std::path::{Path, PathBuf};

use elasticjob::history::{HistoryUrl, RunFilter, Store};
use sqlx::{Connection, Executor, PgConnection, SqliteConnection};
use testbed::Postgres;

use crate::{
    metrics::metrics,
    process::{Process, elasticjob},
    scene::{Scene, settled},
};

const JOBS: &str = "    talk: {cron: '* * * * * ?', props: {script.command.line: 'echo hello'}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn what_a_worker_runs_is_kept_and_counted() {
    let scene = Scene::with(JOBS).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("deep/history.db").display());
    let mut process = scene.run(&["--health-listen", "0", "--history", &url]);
    assert!(process.logged("the node starts").contains(&url));
    let line: serde_json::Value = serde_json::from_str(&process.logged("health is told")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();
    for _ in 0..3 {
        process.logged("shard ended");
    }
    let recorded = r#"elasticjob_history_recorded_total{sink="history"}"#;
    settled(|| metrics(&address)[recorded] >= 3.0);
    let counted = metrics(&address);
    process.terminate();
    assert!(process.ended().0.success());

    assert!(counted[r#"elasticjob_history_dropped_total{sink="history",worth="failure"}"#] < 1.0);
    let store = Store::open(&url.parse::<HistoryUrl>().unwrap()).await.unwrap();
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert!(runs.rows.len() >= 3, "{runs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_not_there_stops_no_job() {
    let scene = Scene::with(JOBS).await;
    let folder = tempfile::tempdir().unwrap();
    let spill = folder.path().join("spill");
    let away = "postgres://jane:hunter2@127.0.0.1:1/jobs";
    let mut process = scene.run(&["--history", away, "--history-spill", spill.to_str().unwrap()]);

    process.logged("the node runs");
    let told = process.logged("history cannot be kept now");
    process.logged("shard ended");
    process.logged("shard ended");

    assert!(told.contains("127.0.0.1:1") && !process.log().contains("hunter2"), "{told}");
    let waits = std::fs::read_dir(folder_of(&spill).join("0")).unwrap().count();
    assert!(waits > 1, "the lock, and what waits");
}

/// Where events wait for the one database there is.
fn folder_of(spill: &Path) -> PathBuf {
    let folder = std::fs::read_dir(spill).unwrap().next().unwrap().unwrap();
    assert!(folder.file_name().to_str().unwrap().starts_with("history-"), "{folder:?}");
    folder.path()
}

/// Jobs go on; that history is refused was said in one line, which names the database, says what is wrong and a way out, and hides the password.
fn goes_on_without(process: &mut Process, database: &str, problem: &str) {
    let told = process.logged("history is refused");
    for _ in 0..2 {
        process.logged("shard ended");
    }
    for part in [database, problem, "; hint: "] {
        assert!(told.contains(part), "{part:?} is not in {told}");
    }
    let log = process.log();
    assert!(!log.contains("hunter2"), "{log}");
    assert_eq!(log.matches("history is refused").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_somebody_elses_stops_no_job() {
    let scene = Scene::with(JOBS).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("history.db").display());
    let mut file = SqliteConnection::connect(&format!("{url}?mode=rwc")).await.unwrap();
    file.execute("CREATE TABLE JOB_EXECUTION_LOG (id INTEGER, note TEXT)").await.unwrap();

    let mut process = scene.run(&["--history", &url]);

    goes_on_without(&mut process, &url, "JOB_EXECUTION_LOG without the column job_name");
    let waits = folder_of(&folder.path().join("history.db.waiting")).join("0/00000001.events");
    assert!(waits.metadata().unwrap().len() > 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real PostgreSQL: make test"]
async fn a_user_who_may_do_nothing_stops_no_job() {
    let scene = Scene::with(JOBS).await;
    let postgres = tokio::task::spawn_blocking(Postgres::start).await.unwrap();
    let mut database = PgConnection::connect(&postgres.url()).await.unwrap();
    database.execute("CREATE ROLE guest LOGIN PASSWORD 'hunter2'").await.unwrap();
    database.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC").await.unwrap();
    let spill = scene.folder.path().join("spill");
    let (address, spill) = (postgres.address(), spill.to_str().unwrap());

    let url = format!("postgres://guest:hunter2@{address}/postgres");
    let mut process = scene.run(&["--history", &url, "--history-spill", spill]);
    goes_on_without(&mut process, &format!("@{address}/postgres"), "USAGE and CREATE");
    process.terminate();
    assert!(process.ended().0.success());

    // What happened meanwhile is kept by the next one, once it may be.
    database.execute("GRANT ALL ON SCHEMA public TO guest").await.unwrap();
    let mut process = scene.run(&["--history", &url, "--history-spill", spill]);
    process.logged("history of an earlier process waits to be kept");
    process.logged("shard ended");
    process.terminate();
    assert!(process.ended().0.success());
    let store = Store::open(&url.parse::<HistoryUrl>().unwrap()).await.unwrap();
    let runs = store.runs(&RunFilter::default()).await.unwrap();
    assert!(runs.rows.len() >= 3 && runs.rows.iter().all(|run| run.done == 1), "{runs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_stops_no_job() {
    // About 20 kB each second.
    let jobs = "    talk: {cron: '* * * * * ?', props: {script.command.line: 'yes hello | head -c 20000', elasticjob.script.shell: 'true'}}\n";
    let scene = Scene::with(jobs).await;
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("history.db").display());

    let mut process = scene.run_with_little_room(&["--health-listen", "0", "--history", &url], 600);
    let line: serde_json::Value = serde_json::from_str(&process.logged("health is told")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();

    goes_on_without(&mut process, &url, "disk");
    let counted = metrics(&address);
    assert!(counted[r#"elasticjob_history_spilled_total{sink="history"}"#] > 0.0, "{counted:?}");
    // The files that it waits in are on the same disk.
    let told = process.logged("not all of history can wait in its file");
    assert!(told.contains("history.db.waiting") && told.contains("hint: "), "{told}");
    process.logged("shard ended");
}

#[test]
fn a_wrong_url_is_told_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.yml");
    std::fs::write(&file, format!("elasticjob:\n  jobs:\n{JOBS}")).unwrap();

    let ended =
        elasticjob(&["run", "-f", file.to_str().unwrap(), "--check", "--history", "oracle://x/y"]);

    assert_eq!(ended.code, Some(2));
    assert!(
        ended.stderr.contains("--history") && ended.stderr.contains("hint:"),
        "{}",
        ended.stderr
    );
}
