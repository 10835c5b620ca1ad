//! `run` remembers what happened.

use elasticjob::history::{HistoryUrl, RunFilter, Store};

use crate::{metrics::metrics, process::elasticjob, scene::Scene};

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
    let counted = metrics(&address);
    process.terminate();
    assert!(process.ended().0.success());

    assert!(counted[r#"elasticjob_history_dropped_total{sink="history",worth="failure"}"#] < 1.0);
    assert!(counted.contains_key(r#"elasticjob_history_recorded_total{sink="history"}"#));
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
    let waits = std::fs::read_dir(spill.join("history/0")).unwrap().count();
    assert!(waits > 1, "the lock, and what waits");
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
