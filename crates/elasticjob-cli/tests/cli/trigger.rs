//! `job trigger`, `job cancel`, `trigger`

use serde_json::json;

use crate::scene::{ADDRESS, Scene, settle};

#[tokio::test(flavor = "multi_thread")]
async fn trigger_with_wait_returns_when_the_run_has_ended() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let triggered = scene.data(&["job", "trigger", "settle", "--wait", "--timeout", "30s"]);

    let shards = triggered["shards"].as_array().unwrap();
    assert_eq!(shards.len(), 3, "{triggered:#}");
    assert_eq!(triggered["state"], "ended");
    for shard in shards {
        assert_eq!(
            (&shard["state"], &shard["attempt"]),
            (&json!("done"), &json!(1)),
            "{triggered:#}"
        );
    }
    let table = scene.run(&["job", "trigger", "settle", "--wait", "--shards", "2,0"]);
    assert_eq!(table.code, Some(0), "{}", table.stderr);
    let first: Vec<&str> = table.stdout.lines().map(|line| &line[..12]).collect();
    assert_eq!(first, ["SHARD  STATE", "0      done ", "2      done "]);
    assert!(table.stderr.starts_with(&format!("triggered {ADDRESS}")), "{}", table.stderr);
    for shard in ["shard 0: done\n", "shard 2: done\n"] {
        assert_eq!(table.stderr.matches(shard).count(), 1, "{}", table.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn run_that_succeeded_exits_with_zero_while_other_runs_follow() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().cron("* * * * * ?").unwrap()).await;

    for _ in 0..5 {
        let waited = scene.run(&["job", "trigger", "settle", "--wait", "--timeout", "30s"]);

        assert_eq!(waited.code, Some(0), "{}", waited.stderr);
        assert_eq!(waited.stdout.matches(" done ").count(), 3, "{}", waited.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawn_trigger_does_not_run_and_the_running_one_goes_on() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle().parameter("hang")).await;
    let trigger = ["job", "trigger", "settle", "--param", "password=hunter2", "--shards", "0,2"];
    let running = scene.data(&["job", "trigger", "settle"])["runId"].clone();
    scene.wait_until(&["trigger", "list", "settle"], |triggers| {
        triggers[0]["counts"]["running"] == 3
    });
    let pending = scene.data(&trigger)["runId"].as_str().unwrap().to_owned();

    let listed = scene.data(&["trigger", "list", "settle"]);
    let table = scene.run(&["trigger", "list", "settle"]);
    let withdrawn = scene.data(&["trigger", "withdraw", "settle", &pending]);
    let shown = scene.data(&["trigger", "show", "settle", &pending]);
    let again = scene.run(&["trigger", "withdraw", "settle", &pending]);
    let first = scene.data(&["trigger", "show", "settle", running.as_str().unwrap()]);

    assert_eq!(listed[0]["runId"], *pending, "the newest comes first: {listed:#}");
    assert_eq!(
        (&listed[0]["state"], &listed[1]["state"], &listed[1]["runId"]),
        (&json!("pending"), &json!("running"), &running)
    );
    assert_eq!(listed[0]["parameter"], "password=***");
    assert!(table.stdout.contains(" 2 pending ") && table.stdout.contains(" 3 running "));
    assert_eq!(withdrawn["withdrawn"], json!([0, 2]));
    assert_eq!((&shown["state"], &shown["shards"][1]["item"]), (&json!("ended"), &json!(2)));
    assert_eq!(
        (&shown["shards"][0]["state"], &shown["shards"][0]["reason"]),
        (&json!("skipped"), &json!("cancelled"))
    );
    assert_eq!(again.code, Some(6), "{}", again.stderr);
    assert_eq!(first["counts"]["running"], 3, "{first:#}");
    scene.run(&["job", "cancel", "settle"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn trigger_that_does_not_exist_or_is_unreadable_is_named() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let run = "46861c8b-90ef-4172-9305-d3e7862768d2";

    let unknown = scene.run(&["trigger", "show", "settle", run]);
    let scheduled = scene.run(&["trigger", "show", "settle", "settle/1780000000000"]);
    let hostile = scene.run(&["trigger", "show", "settle", "../../config"]);
    let no_job = scene.run(&["trigger", "list", "setle"]);
    let registry = scene.connect().await;
    let path = format!("/shop~ledger/settle/triggers/{run}").parse().unwrap();
    let node = elasticjob::registry::Create::persistent(&path, "{\"v\":9}");
    registry.create(node).await.unwrap();
    let listed = scene.run(&["trigger", "list", "settle"]);
    let withdrawn = scene.run(&["trigger", "withdraw", "settle", run]);

    assert_eq!((unknown.code, scheduled.code, hostile.code), (Some(5), Some(2), Some(2)));
    assert!(unknown.stderr.contains(run), "{}", unknown.stderr);
    assert_eq!(no_job.code, Some(5));
    assert!(no_job.stderr.contains("did you mean settle?"), "{}", no_job.stderr);
    assert!(listed.stdout.contains("unreadable"), "{}", listed.stdout);
    assert!(listed.stderr.contains("format version 9"), "{}", listed.stderr);
    assert_eq!(withdrawn.code, Some(7), "{}", withdrawn.stderr);
    let stored = registry.get(&path).await.unwrap().unwrap();
    assert_eq!(&stored.data[..], b"{\"v\":9}");
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_shard_has_its_own_exit_code() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let output = scene.run(&["job", "trigger", "settle", "--wait", "--param", "fail=1"]);

    assert_eq!(output.code, Some(20), "{}", output.stderr);
    assert!(output.stdout.contains("\n0      done ") && output.stdout.contains("\n1      failed "));
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
    assert!(waited.stderr.contains("note: shards of Java instances are not waited for"));
}
