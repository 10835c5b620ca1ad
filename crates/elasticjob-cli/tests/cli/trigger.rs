//! `job trigger`, `job cancel`

use serde_json::json;

use crate::scene::{ADDRESS, Scene, settle};

#[tokio::test(flavor = "multi_thread")]
async fn trigger_with_wait_returns_when_the_run_has_ended() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let triggered = scene.data(&["job", "trigger", "settle", "--wait", "--timeout", "30s"]);

    let shards = triggered["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 3, "{triggered:#}");
    for shard in shards {
        assert_eq!(
            (&shard["state"], &shard["runId"]),
            (&json!("DONE"), &triggered["runId"]),
            "{triggered:#}"
        );
    }
    let table = scene.run(&["job", "trigger", "settle", "--wait", "--shards", "2,0"]);
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    let first: Vec<&str> = table.stdout.lines().map(|line| &line[..12]).collect();
    assert_eq!(first, ["SHARD  STATE", "0      DONE ", "2      DONE "]);
    assert!(table.stderr.starts_with(&format!("triggered {ADDRESS}")), "{}", table.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_shard_has_its_own_exit_code() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let output = scene.run(&["job", "trigger", "settle", "--wait", "--param", "fail=1"]);

    assert_eq!(output.code, Some(20), "{}", output.stderr);
    assert!(output.stdout.contains("\n0      DONE ") && output.stdout.contains("\n1      FAILED "));
    assert!(
        output.stderr.ends_with(
            "\nerror: shard 1 of job settle failed\nhint: see the logs of its handler\n"
        ),
        "{}",
        output.stderr
    );
    let shards = scene.data(&["shard", "list", "settle"]);
    assert_eq!(shards[1]["lastRun"]["state"], "FAILED");
}

#[tokio::test(flavor = "multi_thread")]
async fn wait_times_out_and_a_hanging_run_can_be_cancelled() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().parameter("hang")).await;

    let waited = scene.run(&["job", "trigger", "settle", "--wait", "--timeout", "300ms"]);
    scene.wait_until(&["shard", "list", "settle"], |shards| shards[2]["status"] == "RUNNING");
    let one = scene.data(&["job", "cancel", "settle", "--shards", "2"]);
    let all = scene.run(&["job", "cancel", "settle"]);
    let shards = scene.wait_until(&["shard", "list", "settle"], |shards| {
        shards.as_array().unwrap().iter().all(|shard| shard["status"] == "PENDING")
    });
    let idle = scene.data(&["job", "cancel", "settle"]);

    assert_eq!(waited.code, Some(20), "{}", waited.stderr);
    assert!(waited.stderr.contains("shard 2 of job settle has not ended within 300ms"));
    assert!(waited.stderr.contains("hint: elasticjob job explain settle --shard 2"));
    let asked = one["requested"].as_object().unwrap();
    assert_eq!(asked.values().collect::<Vec<_>>(), [&json!([2])], "{one:#}");
    assert!(all.stdout.contains("\n0      cancel requested  10.0.0.7@-@"), "{}", all.stdout);
    assert_eq!(shards[0]["lastRun"]["state"], "FAILED");
    assert_eq!(idle["idle"], json!([0, 1, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_without_wait_prints_the_triggered_instances() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let triggered = scene.data(&["job", "trigger", "settle", "--at", "2026-11-15T06:36:07Z"]);

    assert!(triggered["instances"][0].as_str().unwrap().starts_with(ADDRESS), "{triggered:#}");
    assert_eq!(triggered["alreadyPending"], json!([]));
    let run = &triggered["runId"];
    scene.wait_until(&["shard", "list", "settle"], |shards| shards[0]["lastRun"]["runId"] == *run);
    let beyond = scene.run(&["job", "trigger", "settle", "--shards", "3"]);
    assert_eq!(beyond.code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_without_instances_or_waitable_shards_is_refused() {
    let scene = Scene::with("").await;
    scene.put("settle/config", &settle().to_yaml()).await;

    let without_instance = scene.run(&["job", "trigger", "settle"]);
    scene.put("settle/instances/10.0.0.9@-@4711", "").await;
    let java = scene.run(&["job", "trigger", "settle", "--shards", "0"]);
    for shard in ["0", "1", "2"] {
        scene.put(&format!("settle/sharding/{shard}/instance"), "10.0.0.9@-@4711").await;
    }
    let waited = scene.run(&["job", "trigger", "settle", "--wait"]);

    assert_eq!(without_instance.code, Some(7));
    assert!(
        without_instance.stderr.ends_with("hint: start one, then trigger it\n"),
        "{}",
        without_instance.stderr
    );
    assert_eq!(java.code, Some(7), "{}", java.stderr);
    assert_eq!(waited.code, Some(7), "{}", waited.stderr);
    assert!(waited.stderr.contains("is a Java instance, which has no ledger"));
}
