//! What elastic-job 2.1.5 left behind: its tree is another one, so a job of it moves whole, into another namespace, as docs/migration.md says.

use std::{fs, path::Path, process::Command};

use elasticjob::{job::Failover, registry::Path as Place};
use serde_json::json;

use crate::{
    membership::{MOVE_CRON, between_fires, missed_or_doubled},
    record::Run,
    scene::{Ground, Scene, job, ms},
};

/// The binary, as people call it.
struct Elasticjob {
    registry: String,
}

impl Elasticjob {
    /// Calls it; what it prints. It has to end well.
    fn does(&self, arguments: &[&str]) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_interop")).with_file_name("elasticjob");
        let done = Command::new(&program)
            .args(arguments)
            .args(["--registry", &self.registry])
            .output()
            .unwrap_or_else(|error| {
                panic!("{}: {error}; hint: make test-java builds it", program.display())
            });
        let [out, err] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(done.status.success(), "{arguments:?}: {out}{err}");
        out + &err
    }
}

pub(crate) async fn a_job_of_2_1_5_moves_and_back_and_no_fire_is_missed_or_runs_twice(
    ground: Ground,
) {
    let scene = Scene::new(&ground, "moved").await;
    let settle = job("settle", MOVE_CRON, 2);
    let cli = Elasticjob { registry: scene.url() };
    let mut old = scene.old("left").await;
    assert_eq!(old.version, "2.1.5");
    old.does(json!({
        "do": "start",
        "job": "settle",
        "cron": MOVE_CRON,
        "shards": 2,
        "items": "0=a,1=b",
        "lastsMs": 300,
    }))
    .await;
    let on = |peer: &'static str| move |run: &Run| run.peer == peer;
    let ran = |runs: &[Run], peer: &'static str| runs.iter().filter(|run| on(peer)(run)).count();
    let look = |runs: &[Run]| (ran(runs, "old") >= 2).then_some(());
    scene.record.until("2.1.5 runs it", "settle", look).await;

    // Its own document, as it is.
    let config: Place = "/left/settle/config".parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("settle.json");
    fs::write(&file, scene.text(&config).await.unwrap()).unwrap();
    let file = file.display().to_string();
    let said = cli.does(&["job", "import", "-f", &file, "--yes"]);
    assert!(said.contains("monitorPort"), "what has no place is said: {said}");
    cli.does(&["job", "disable", "settle"]);
    let mut rust = scene.rust(1).await;
    rust.joins(&settle, ms(300)).await;
    let stored = scene.admin().job(&settle.name).await.unwrap().configuration.job.unwrap();
    assert_eq!(
        (stored.shards.get(), stored.failover, &*stored.description),
        (2, Failover::TakeOver, "nightly")
    );

    // Between two fires: off there, nothing runs any more, on here.
    let runs_there = async || {
        for item in 0..2 {
            let running = format!("/left/settle/sharding/{item}/running");
            if scene.is_there(&running.parse().unwrap()).await {
                return true;
            }
        }
        false
    };
    between_fires(&scene, &settle).await;
    old.does(json!({"do": "disable", "job": "settle"})).await;
    scene.until("nothing runs there", async || !runs_there().await).await;
    assert_eq!(ran(&scene.record.runs("settle"), "rust-1"), 0, "it is disabled here until now");
    cli.does(&["job", "enable", "settle"]);
    let look = |runs: &[Run]| (ran(runs, "rust-1") >= 4).then_some(());
    scene.record.until("Rust runs it", "settle", look).await;

    // And back.
    between_fires(&scene, &settle).await;
    cli.does(&["job", "disable", "settle"]);
    scene.is_at_peace(&settle).await;
    let before = ran(&scene.record.runs("settle"), "old");
    old.does(json!({"do": "enable", "job": "settle"})).await;
    let look = |runs: &[Run]| (ran(runs, "old") >= before + 4).then_some(());
    scene.record.until("2.1.5 runs it again", "settle", look).await;

    let wrong = missed_or_doubled(&scene.record.runs("settle"), 2);
    assert!(wrong.is_empty(), "{wrong:?}");
}
