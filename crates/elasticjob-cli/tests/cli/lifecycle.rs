//! `enable`, `disable`, `shutdown` and `remove` for jobs, shards and servers.

use elasticjob::registry::ExpectedVersion;
use serde_json::json;

use crate::scene::{ADDRESS, Scene, settle};

#[tokio::test(flavor = "multi_thread")]
async fn job_can_be_disabled_and_enabled() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let off = scene.run(&["job", "disable", "settle"]);
    let status = scene.data(&["job", "list"])[0]["status"].clone();
    let again = scene.data(&["job", "disable", "settle"]);
    let on = scene.run(&["job", "enable", "settle"]);

    assert_eq!((off.code, &*off.stdout), (Some(0), ""));
    assert_eq!(
        off.stderr,
        "job settle is disabled; servers changed: 10.0.0.7; configuration updated, so that new servers follow it\n"
    );
    assert_eq!(status, "DISABLED");
    assert_eq!(again, json!({ "servers": [], "config": { "outcome": "unchanged" } }));
    assert!(on.stderr.starts_with("job settle is enabled; "), "{}", on.stderr);
    assert!(scene.get("settle/config").await.unwrap().contains("disabled: false"));
    assert_eq!(scene.get("settle/servers/10.0.0.7").await.unwrap(), "ENABLED");
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_can_be_disabled_and_enabled() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let off = scene.run(&["shard", "disable", "settle", "1"]);
    let again = scene.data(&["shard", "disable", "settle", "1"]);
    let status = scene.data(&["shard", "list", "settle"])[1]["status"].clone();
    let on = scene.run(&["shard", "enable", "settle", "1"]);

    assert_eq!((off.code, &*off.stderr), (Some(0), "shard 1 of job settle is disabled\n"));
    assert_eq!(
        again,
        json!({ "jobName": "settle", "item": 1, "disabled": true, "isChanged": false })
    );
    assert_eq!(status, "DISABLED");
    assert_eq!((on.code, &*on.stderr), (Some(0), "shard 1 of job settle is enabled\n"));
    let waited = scene.run(&["job", "trigger", "settle", "--wait"]);
    assert_eq!(waited.code, Some(0), "{}", waited.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_with_an_unreadable_ledger_page_runs_again_after_a_reset() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;
    let waited = scene.run(&["job", "trigger", "settle", "--wait"]);
    assert_eq!(waited.code, Some(0), "{}", waited.stderr);
    let registry = scene.connect().await;
    let page = "/shop~ledger/settle/1".parse().unwrap();
    registry.set(&page, "{".into(), ExpectedVersion::Any).await.unwrap();

    let stuck =
        scene.run(&["job", "trigger", "settle", "--shards", "1", "--wait", "--timeout", "1s"]);
    let explained = scene.run(&["job", "explain", "settle", "--shard", "1"]).stdout;
    let reset = scene.run(&["shard", "reset", "settle", "1"]);
    let again = scene.data(&["shard", "reset", "settle", "1"]);
    let absent = scene.run(&["shard", "reset", "settle", "7"]);
    let ran = scene.run(&["job", "trigger", "settle", "--shards", "1", "--wait"]);

    assert_ne!(stuck.code, Some(0), "{}", stuck.stdout);
    assert!(explained.contains("hint: elasticjob shard reset settle 1"), "{explained}");
    assert_eq!(
        (reset.code, &*reset.stderr),
        (Some(0), "shard 1 of job settle is reset: it runs at its next fire\n")
    );
    assert_eq!(again, json!({ "jobName": "settle", "item": 1, "isChanged": false }));
    assert_ne!(absent.code, Some(0), "{}", absent.stderr);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_can_be_disabled_shut_down_and_removed() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let off = scene.run(&["server", "disable", ADDRESS]);
    let again = scene.run(&["server", "disable", ADDRESS, "--job", "settle"]);
    let on = scene.data(&["server", "enable", ADDRESS]);
    let busy = scene.run(&["server", "remove", ADDRESS]);
    let output = scene.run(&["server", "shutdown", ADDRESS]);
    let gone = scene.run(&["server", "remove", ADDRESS]);

    assert_eq!(off.stderr, "server 10.0.0.7 is disabled in settle\n");
    assert_eq!(again.stderr, "server 10.0.0.7 was already disabled: nothing changed\n");
    assert_eq!(on, json!({ "serverIp": ADDRESS, "jobNames": ["settle"] }));
    assert_eq!((busy.code, &*busy.stdout), (Some(7), ""));
    assert!(busy.stderr.ends_with("\nhint: shut it down first\n"), "{}", busy.stderr);
    assert!(
        output.stderr.starts_with("shutdown requested on server 10.0.0.7: job settle: 10.0.0.7@-@")
    );
    assert_eq!((gone.code, &*gone.stderr), (Some(0), "server 10.0.0.7 is removed in settle\n"));
    assert_eq!(scene.data(&["server", "list"]), json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn job_is_removed_without_instances_or_by_force() {
    let scene = Scene::with("").await;
    let _node = scene.node(settle()).await;

    let busy = scene.run(&["job", "remove", "settle"]);
    let output = scene.data(&["job", "shutdown", "settle"]);
    let again = scene.run(&["job", "shutdown", "settle"]);
    let removed = scene.run(&["job", "remove", "settle"]);

    assert_eq!((busy.code, &*busy.stdout), (Some(7), ""));
    assert!(busy.stderr.ends_with("\nhint: shut it down first, or force it\n"), "{}", busy.stderr);
    assert_eq!(output["instances"].as_array().unwrap().len(), 1);
    assert!(again.stderr.contains("nothing to shut down"), "{}", again.stderr);
    assert_eq!(removed.code, Some(0));
    assert!(removed.stderr.starts_with("removed job settle: "), "{}", removed.stderr);
    assert_eq!(scene.data(&["job", "list"]), json!([]));

    let _node = scene.node(settle()).await;
    let forced = scene.data(&["job", "remove", "settle", "--force"]);
    assert_eq!(forced["instances"].as_array().unwrap().len(), 1, "{forced:#}");
    assert_eq!(scene.run(&["job", "show", "settle"]).code, Some(5));
}
