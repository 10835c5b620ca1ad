//! `elasticjob run` while its files change.

use std::fs;

use elasticjob::registry::Zxid;
use serde_json::Value;

use crate::{
    metrics::metrics,
    process::Process,
    scene::{Scene, wait_until},
};

/// A job that prints its name every second.
fn job(name: &str) -> String {
    format!(
        "    {name}: {{cron: '* * * * * ?', props: {{script.command.line: echo {name}-output}}}}\n"
    )
}

/// The instances of a job, each with when it entered: one that leaves and comes back has the same id.
async fn instances(scene: &Scene, job: &str) -> Vec<(String, Zxid)> {
    let registry = scene.connect().await;
    let path = registry.namespace().path().join(format!("{job}/instances")).unwrap();
    let mut found = Vec::new();
    for id in registry.children(&path).await.unwrap().unwrap_or_default() {
        let stat = registry.exists(&path.join(&id).unwrap()).await.unwrap();
        found.extend(stat.map(|stat| (id, stat.created)));
    }
    found
}

/// Waits for the next log line of this job that contains `part`.
fn logged_of_job(process: &mut Process, job: &str, part: &str) -> Value {
    loop {
        let line: Value = serde_json::from_str(&process.wait_for_log(part)).unwrap();
        if line["job"] == job {
            return line;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_joins_new_file_jobs_and_leaves_removed_ones() {
    let scene = Scene::with(&job("hello")).await;
    let mut process = scene.start_worker(&["--health-listen", "0"]);
    let line: Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = line["address"].as_str().unwrap();
    process.wait_for_log("hello-output");

    scene.write_jobs(&format!("{}{}", job("hello"), job("howdy")));
    assert_eq!(logged_of_job(&mut process, "howdy", "job joined")["from"], "the files");
    process.wait_for_log("howdy-output");
    let both = metrics(address);
    assert!(both.contains_key(r#"elasticjob_shards_running{job_name="howdy"}"#), "{both:?}");

    scene.write_jobs(&job("howdy"));
    logged_of_job(&mut process, "hello", "job left");
    let (left, there) = (instances(&scene, "hello").await, instances(&scene, "howdy").await);
    assert_eq!((left.len(), there.len()), (0, 1));
    assert!(scene.get("hello/config").await.is_some(), "it stays for others");
    wait_until(|| !metrics(address).keys().any(|series| series.contains("\"hello\"")));
    process.terminate();
    let (status, _) = process.wait();
    assert_eq!(status.code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn prune_removes_a_job_when_the_last_instance_leaves() {
    let both = format!("{}{}", job("hello"), job("howdy"));
    let scene = Scene::with(&both).await;
    let other = scene.write("other.yml", &format!("elasticjob:\n  jobs:\n{both}"));
    let mut first = scene.start_worker(&["--prune"]);
    first.wait_for_log("node started");
    let mut second = Process::start(&[
        "run",
        "-f",
        &other,
        "--registry",
        &scene.url,
        "--log-format",
        "json",
        "--prune",
    ]);
    second.wait_for_log("node started");

    scene.write_jobs(&job("howdy"));
    let stays = logged_of_job(&mut first, "hello", "other instances run it");
    assert!(stays["problem"].as_str().unwrap().contains("has instances"), "{stays}");
    assert!(scene.get("hello/config").await.is_some());

    fs::write(&other, format!("elasticjob:\n  jobs:\n{}", job("howdy"))).unwrap();
    logged_of_job(&mut second, "hello", "job removed from registry");
    assert_eq!(scene.get("hello").await, None);
    assert!(scene.get("howdy/config").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_file_applies_only_with_overwrite() {
    let quiet = "    hello: {cron: '0 0 2 1 1 ?', props: {script.command.line: echo first}}\n";
    let scene = Scene::with(quiet).await;
    let mut process = scene.start_worker(&[]);
    process.wait_for_log("node started");
    let before = instances(&scene, "hello").await;
    assert_eq!(before.len(), 1, "{before:?}");

    scene.write_jobs(&quiet.replace("0 0 2 1 1 ?", "0 0 3 1 1 ?"));
    let drift = process.wait_for_log("stored configuration overrides the local one");
    assert!(drift.contains("cron"), "{drift}");
    process.wait_for_log("job updated");
    assert!(scene.get("hello/config").await.unwrap().contains("cron: 0 0 2 1 1 ?"));

    let loud = quiet.replace("0 0 2 1 1 ?", "* * * * * ?").replace("first", "second-output");
    scene.write_jobs(&loud.replace("{cron", "{overwrite: true, cron"));
    process.wait_for_log("second-output");
    assert!(scene.get("hello/config").await.unwrap().contains("second-output"));
    assert_eq!(instances(&scene, "hello").await, before);
    assert!(!process.log().contains("leaving job"), "it was never left");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_file_is_logged_once_and_jobs_keep_running() {
    let scene = Scene::with(&job("hello")).await;
    let mut process = scene.start_worker(&[]);
    process.wait_for_log("hello-output");

    scene.write_jobs("    hello: {crom: x}\n");
    let wrong = process.wait_for_log("job files invalid");
    assert!(wrong.contains("jobs.yml:3") && wrong.contains("did you mean cron?"), "{wrong}");
    process.wait_for_log("hello-output");
    scene.write_jobs(&job("hello"));
    process.wait_for_log("job files valid again");

    fs::remove_file(scene.file()).unwrap();
    let gone = process.wait_for_log("job files invalid");
    assert!(gone.contains("cannot read"), "{gone}");
    process.wait_for_log("hello-output");
    process.wait_for_log("hello-output");
    scene.write_jobs(&format!("{}{}", job("hello"), job("howdy")));
    process.wait_for_log("job files valid again");
    process.wait_for_log("howdy-output");
    let log = process.log();
    assert_eq!(log.matches("job files invalid").count(), 2, "{log}");
    assert!(!log.contains("leaving job"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicting_new_job_is_logged_once_and_others_keep_running() {
    let scene = Scene::with(&job("hello")).await;
    scene.put("settle", "com.acme.Settle").await;
    let mut process = scene.start_worker(&[]);
    process.wait_for_log("hello-output");

    scene.write_jobs(&format!("{}{}{}", job("hello"), job("settle"), job("howdy")));
    let refused = process.wait_for_log("job not applied");
    assert!(refused.contains("belongs to the Java class com.acme.Settle"), "{refused}");
    process.wait_for_log("howdy-output");
    process.wait_for_log("hello-output");

    // Once the class is gone the job is joined without further action.
    let registry = scene.connect().await;
    let root = registry.namespace().path().join("settle").unwrap();
    registry.delete(&root, elasticjob::registry::ExpectedVersion::Any).await.unwrap();
    process.wait_for_log("settle-output");
    let log = process.log();
    assert_eq!(log.matches("job not applied").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shard_of_a_job_being_left_may_finish_after_sigterm() {
    let slow = "    slow: {cron: '* * * * * ?', props: {script.command.line: sh FOLDER/slow.sh}}\n";
    let scene = Scene::with(&format!("{slow}{}", job("hello"))).await;
    let folder = scene.folder.path().display().to_string();
    let script = "echo begun\nwhile [ ! -e FOLDER/go ]; do sleep 0.05; done\ntouch FOLDER/done\n";
    scene.write("slow.sh", &script.replace("FOLDER", &folder));
    let mut process = scene.start_worker(&[]);
    process.wait_for_log("begun");

    scene.write_jobs(&job("hello"));
    logged_of_job(&mut process, "slow", "leaving job");
    process.terminate();
    process.wait_for_log("node stopping");
    scene.write("go", "");

    let (status, _) = process.wait();
    assert_eq!(status.code(), Some(0), "{}", process.log());
    assert!(scene.folder.path().join("done").exists());
}
