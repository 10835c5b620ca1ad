//! `elasticjob run --observe`

use std::collections::{BTreeMap, BTreeSet};

use elasticjob::registry::{Path, Registry, SessionId, Stat};

use crate::{
    process::Process,
    scene::{Scene, settle},
};

/// All nodes of the registry with their stat.
async fn tree(registry: &dyn Registry) -> BTreeMap<Path, Stat> {
    let mut found = BTreeMap::new();
    let mut waiting: Vec<Path> = vec!["/".parse().unwrap()];
    while let Some(path) = waiting.pop() {
        let Some(children) = registry.children(&path).await.unwrap() else { continue };
        if let Some(stat) = registry.exists(&path).await.unwrap() {
            found.insert(path.clone(), stat);
        }
        waiting.extend(children.iter().map(|child| path.join(child).unwrap()));
    }
    found.retain(|path, _| path.relative_to(&"/zookeeper".parse().unwrap()).is_none());
    found
}

fn owners(tree: &BTreeMap<Path, Stat>) -> BTreeSet<SessionId> {
    tree.values().filter_map(|stat| stat.owner).collect()
}

fn observe(scene: &Scene, more: &[&str]) -> Process {
    let arguments = ["run", "--observe", "--registry", &scene.url, "--log-format", "json"];
    Process::start(&[&arguments[..], more].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn observer_logs_assignment_and_runs_and_writes_nothing() {
    let scene = Scene::with("").await;
    let node = scene.node(settle()).await;
    let registry = scene.connect().await;
    let before = tree(&*registry).await;

    let mut process = observe(&scene, &[]);
    let assigned = process.wait_for_log("shards assigned");
    assert!(assigned.contains("0=10.0.0.7@-@") && assigned.contains("\"settle\""), "{assigned}");
    let log = process.log();
    assert!(log.contains("job found") && log.contains("leader elected"), "{log}");
    assert!(log.contains("instance joined") && log.contains("\"Rust\""), "{log}");
    assert_eq!(tree(&*registry).await, before);

    assert_eq!(scene.run(&["job", "trigger", "settle", "--wait"]).code, Some(0));
    let runs = process.wait_for_log("shard started");
    assert!(runs.contains("\"instance\":\"10.0.0.7@-@"), "{runs}");
    process.wait_for_log("shard ended");
    scene.run(&["shard", "disable", "settle", "1"]);
    process.wait_for_log("shard disabled");
    scene
        .put("settle/config", "jobName: settle\nshardingTotalCount: 5\ncron: '* * * * * ?'\n")
        .await;
    let changed = process.wait_for_log("shardingTotalCount from");
    assert!(changed.contains("configuration changed"), "{changed}");
    process.wait_for_log("job due");
    assert_eq!(owners(&tree(&*registry).await), owners(&before), "it has no node of its own");

    node.stop().await;
    process.wait_for_log("instance left");
    process.terminate();
    let (status, stdout) = process.wait();
    assert_eq!((status.code(), &*stdout), (Some(0), ""), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn observer_with_files_logs_only_their_jobs_and_differences() {
    let scene = Scene::with(
        "    settle: {elasticJobClass: com.acme.Settle, shardingTotalCount: 4}\n    \
         absent: {elasticJobClass: com.acme.Absent}\n",
    )
    .await;
    scene.put("other", "com.acme.Other").await;
    scene.put("other/config", "jobName: other\nshardingTotalCount: 1\n").await;
    scene.put("settle", "com.acme.Settle").await;
    scene.put("settle/config", "jobName: settle\nshardingTotalCount: 2\n").await;

    let mut process = observe(&scene, &["-f", &scene.file()]);

    let otherwise = process.wait_for_log("shardingTotalCount");
    assert!(otherwise.contains("overrides the files"), "{otherwise}");
    process.wait_for_log("in the files but not in the registry");
    process.wait_for_log("job found");
    process.terminate();
    process.wait();
    assert!(!process.log().contains("\"other\""), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn observer_does_not_create_the_namespace() {
    let scene = Scene::with("").await;
    let registry =
        elasticjob::registry::connect_read_only(&scene.url.parse().unwrap()).await.unwrap();
    let before = tree(&*registry).await;

    let mut process = observe(&scene, &[]);
    process.wait_for_log("observing without joining");

    assert_eq!(tree(&*registry).await, before);
}
