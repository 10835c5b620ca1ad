//! Migration from elastic-job 2.1.5: its registry tree is different, so a job moves as a whole into another namespace, as docs/migration.md
//! describes.

use std::{fs, path::Path, process::Command};

use elasticjob::{job::Failover, registry::Path as NodePath};
use serde_json::json;

use crate::{
    event_log::Execution,
    membership::{MOVE_CRON, between_fires, find_missed_or_doubled},
    scenario::{Scenario, TestRegistry, job, ms},
};

/// The command `elasticjob`.
struct Cli {
    registry: String,
}

impl Cli {
    /// Runs the command and returns its output. Panics if it fails.
    fn run(&self, arguments: &[&str]) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_interop")).with_file_name("elasticjob");
        let output = Command::new(&program)
            .args(arguments)
            .args(["--registry", &self.registry])
            .output()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; hint: make test-java builds it", program.display())
            });
        let [out, err] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(output.status.success(), "{arguments:?}: {out}{err}");
        out + &err
    }
}

pub(crate) async fn job_of_2_1_5_moves_and_back_without_missed_or_doubled_fires(
    registry: TestRegistry,
) {
    let scenario = Scenario::new(&registry, "moved").await;
    let settle = job("settle", MOVE_CRON, 2);
    let cli = Cli { registry: scenario.url() };
    let mut old = scenario.java_2_1_5("left").await;
    assert_eq!(old.version, "2.1.5");
    old.command(json!({
        "do": "start",
        "job": "settle",
        "cron": MOVE_CRON,
        "shards": 2,
        "items": "0=a,1=b",
        "lastsMs": 300,
    }))
    .await;
    let on = |peer: &'static str| move |execution: &Execution| execution.peer == peer;
    let ran = |executions: &[Execution], peer: &'static str| {
        executions.iter().filter(|execution| on(peer)(execution)).count()
    };
    let find = |executions: &[Execution]| (ran(executions, "old") >= 2).then_some(());
    scenario.events.until("2.1.5 runs it", "settle", find).await;

    // The configuration of 2.1.5, unchanged.
    let config: NodePath = "/left/settle/config".parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settle.json");
    fs::write(&file, scenario.text(&config).await.unwrap()).unwrap();
    let file = file.display().to_string();
    let output = cli.run(&["job", "import", "-f", &file, "--yes"]);
    assert!(
        output.contains("monitorPort"),
        "settings without an equivalent are reported: {output}"
    );
    cli.run(&["job", "disable", "settle"]);
    let mut rust = scenario.rust(1).await;
    rust.join(&settle, ms(300)).await;
    let stored = scenario.admin().job(&settle.name).await.unwrap().configuration.job.unwrap();
    assert_eq!(
        (stored.shards.get(), stored.failover, &*stored.description),
        (2, Failover::TakeOver, "nightly")
    );

    // Between two fires: disable the job in 2.1.5, wait until nothing runs there, enable it here.
    let is_running_there = async || {
        for item in 0..2 {
            let running = format!("/left/settle/sharding/{item}/running");
            if scenario.exists(&running.parse().unwrap()).await {
                return true;
            }
        }
        false
    };
    between_fires(&scenario, &settle).await;
    old.command(json!({"do": "disable", "job": "settle"})).await;
    scenario.until("nothing runs there", async || !is_running_there().await).await;
    assert_eq!(
        ran(&scenario.events.executions("settle"), "rust-1"),
        0,
        "the job was disabled here until now"
    );
    cli.run(&["job", "enable", "settle"]);
    let find = |executions: &[Execution]| (ran(executions, "rust-1") >= 4).then_some(());
    scenario.events.until("Rust runs it", "settle", find).await;

    // And back.
    between_fires(&scenario, &settle).await;
    cli.run(&["job", "disable", "settle"]);
    scenario.wait_until_quiescent(&settle).await;
    let before = ran(&scenario.events.executions("settle"), "old");
    old.command(json!({"do": "enable", "job": "settle"})).await;
    let find = |executions: &[Execution]| (ran(executions, "old") >= before + 4).then_some(());
    scenario.events.until("2.1.5 runs it again", "settle", find).await;

    let wrong = find_missed_or_doubled(&scenario.events.executions("settle"), 2);
    assert!(wrong.is_empty(), "{wrong:?}");
}
