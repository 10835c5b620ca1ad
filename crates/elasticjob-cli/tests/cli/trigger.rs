//! `job trigger`, `job cancel`

use serde_json::json;

use crate::scene::{ADDRESS, Scene, settle};

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_was_asked_for_is_waited_for_to_its_end() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let asked = scene.data(&["job", "trigger", "settle", "--wait", "--timeout", "30s"]);

    let shards = asked["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 3, "{asked:#}");
    for shard in shards {
        assert_eq!(
            (&shard["state"], &shard["runId"]),
            (&json!("DONE"), &asked["runId"]),
            "{asked:#}"
        );
    }
    let table = scene.ask(&["job", "trigger", "settle", "--wait", "--shards", "2,0"]);
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    let first: Vec<&str> = table.stdout.lines().map(|line| &line[..12]).collect();
    assert_eq!(first, ["SHARD  STATE", "0      DONE ", "2      DONE "]);
    assert!(table.stderr.starts_with(&format!("asked {ADDRESS}")), "{}", table.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shard_that_fails_is_told_by_the_exit_code() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let ended = scene.ask(&["job", "trigger", "settle", "--wait", "--param", "fail=1"]);

    assert_eq!(ended.code, Some(20), "{}", ended.stderr);
    assert!(ended.stdout.contains("\n0      DONE ") && ended.stdout.contains("\n1      FAILED "));
    assert!(
        ended.stderr.ends_with(
            "\nerror: shard 1 of job settle failed\nhint: look at what the handler says\n"
        ),
        "{}",
        ended.stderr
    );
    let shards = scene.data(&["shard", "list", "settle"]);
    assert_eq!(shards[1]["lastRun"]["state"], "FAILED");
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_ever_and_what_hangs_can_be_stopped() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().parameter("hang")).await;

    let waited = scene.ask(&["job", "trigger", "settle", "--wait", "--timeout", "300ms"]);
    scene.until(&["shard", "list", "settle"], |shards| shards[2]["status"] == "RUNNING");
    let one = scene.data(&["job", "cancel", "settle", "--shards", "2"]);
    let all = scene.ask(&["job", "cancel", "settle"]);
    let shards = scene.until(&["shard", "list", "settle"], |shards| {
        shards.as_array().unwrap().iter().all(|shard| shard["status"] == "PENDING")
    });
    let idle = scene.data(&["job", "cancel", "settle"]);

    assert_eq!(waited.code, Some(20), "{}", waited.stderr);
    assert!(waited.stderr.contains("shard 2 of job settle has not ended within 300ms"));
    assert!(waited.stderr.contains("hint: elasticjob job explain settle --shard 2"));
    let asked = one["asked"].as_object().unwrap();
    assert_eq!(asked.values().collect::<Vec<_>>(), [&json!([2])], "{one:#}");
    assert!(all.stdout.contains("\n0      told to stop  10.0.0.7@-@"), "{}", all.stdout);
    assert_eq!(shards[0]["lastRun"]["state"], "FAILED");
    assert_eq!(idle["idle"], json!([0, 1, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_waiting_it_says_who_was_asked() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let asked = scene.data(&["job", "trigger", "settle", "--at", "2026-11-15T06:36:07Z"]);

    assert!(asked["instances"][0].as_str().unwrap().starts_with(ADDRESS), "{asked:#}");
    assert_eq!(asked["waiting"], json!([]));
    let run = &asked["runId"];
    scene.until(&["shard", "list", "settle"], |shards| shards[0]["lastRun"]["runId"] == *run);
    let beyond = scene.ask(&["job", "trigger", "settle", "--shards", "3"]);
    assert_eq!(beyond.code, Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_can_run_or_wait_for_is_refused() {
    let scene = Scene::with("").await;
    scene.put("settle/config", &settle().to_yaml()).await;

    let nobody = scene.ask(&["job", "trigger", "settle"]);
    scene.put("settle/instances/10.0.0.9@-@4711", "").await;
    let java = scene.ask(&["job", "trigger", "settle", "--shards", "0"]);
    for shard in ["0", "1", "2"] {
        scene.put(&format!("settle/sharding/{shard}/instance"), "10.0.0.9@-@4711").await;
    }
    let waited = scene.ask(&["job", "trigger", "settle", "--wait"]);

    assert_eq!(nobody.code, Some(7));
    assert!(nobody.stderr.ends_with("hint: start one, then trigger it\n"), "{}", nobody.stderr);
    assert_eq!(java.code, Some(7), "{}", java.stderr);
    assert_eq!(waited.code, Some(7), "{}", waited.stderr);
    assert!(waited.stderr.contains("is a Java instance, which keeps no ledger"));
}
