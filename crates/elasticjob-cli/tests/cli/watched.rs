//! `elasticjob run` while its files change.

use std::fs;

use elasticjob::registry::Zxid;
use serde_json::Value;

use crate::{
    metrics::metrics,
    process::Process,
    scene::{Scene, settled},
};

/// Says its name every second.
fn job(name: &str) -> String {
    format!(
        "    {name}: {{cron: '* * * * * ?', props: {{script.command.line: echo {name}-said}}}}\n"
    )
}

/// The instances of a job, each with when it entered: one that leaves and comes back has the same id.
async fn instances(scene: &Scene, job: &str) -> Vec<(String, Zxid)> {
    let registry = scene.line().await;
    let path = registry.namespace().path().join(format!("{job}/instances")).unwrap();
    let mut found = Vec::new();
    for id in registry.children(&path).await.unwrap().unwrap_or_default() {
        let stat = registry.exists(&path.join(&id).unwrap()).await.unwrap();
        found.extend(stat.map(|stat| (id, stat.created)));
    }
    found
}

/// The next line of its log that has this in it and is about this job.
fn of_job(process: &mut Process, job: &str, part: &str) -> Value {
    loop {
        let line: Value = serde_json::from_str(&process.logged(part)).unwrap();
        if line["job"] == job {
            return line;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_new_in_the_file_is_joined_and_one_that_vanishes_is_left() {
    let scene = Scene::with(&job("hello")).await;
    let mut process = scene.run(&["--health-listen", "0"]);
    let told: Value = serde_json::from_str(&process.logged("health is told")).unwrap();
    let address = told["address"].as_str().unwrap();
    process.logged("hello-said");

    scene.describe(&format!("{}{}", job("hello"), job("howdy")));
    assert_eq!(of_job(&mut process, "howdy", "the job is joined")["from"], "the files");
    process.logged("howdy-said");
    let both = metrics(address);
    assert!(both.contains_key(r#"elasticjob_shards_running{job_name="howdy"}"#), "{both:?}");

    scene.describe(&job("howdy"));
    of_job(&mut process, "hello", "the job has been left");
    let (left, there) = (instances(&scene, "hello").await, instances(&scene, "howdy").await);
    assert_eq!((left.len(), there.len()), (0, 1));
    assert!(scene.get("hello/config").await.is_some(), "it stays for others");
    settled(|| !metrics(address).keys().any(|series| series.contains("\"hello\"")));
    process.terminate();
    let (status, _) = process.ended();
    assert_eq!(status.code(), Some(0), "{}", process.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn with_prune_the_last_one_that_leaves_a_job_removes_it() {
    let both = format!("{}{}", job("hello"), job("howdy"));
    let scene = Scene::with(&both).await;
    let other = scene.write("other.yml", &format!("elasticjob:\n  jobs:\n{both}"));
    let mut first = scene.run(&["--prune"]);
    first.logged("the node runs");
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
    second.logged("the node runs");

    scene.describe(&job("howdy"));
    let stays = of_job(&mut first, "hello", "others run it");
    assert!(stays["problem"].as_str().unwrap().contains("has instances"), "{stays}");
    assert!(scene.get("hello/config").await.is_some());

    fs::write(&other, format!("elasticjob:\n  jobs:\n{}", job("howdy"))).unwrap();
    of_job(&mut second, "hello", "the job is removed from the registry");
    assert_eq!(scene.get("hello").await, None);
    assert!(scene.get("howdy/config").await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_counts_unless_the_file_overwrites_it_and_then_it_counts_at_once() {
    let quiet = "    hello: {cron: '0 0 2 1 1 ?', props: {script.command.line: echo first}}\n";
    let scene = Scene::with(quiet).await;
    let mut process = scene.run(&[]);
    process.logged("the node runs");
    let before = instances(&scene, "hello").await;
    assert_eq!(before.len(), 1, "{before:?}");

    scene.describe(&quiet.replace("0 0 2 1 1 ?", "0 0 3 1 1 ?"));
    let drift = process.logged("the stored configuration counts");
    assert!(drift.contains("cron"), "{drift}");
    process.logged("the job is described otherwise");
    assert!(scene.get("hello/config").await.unwrap().contains("cron: 0 0 2 1 1 ?"));

    let loud = quiet.replace("0 0 2 1 1 ?", "* * * * * ?").replace("first", "second-said");
    scene.describe(&loud.replace("{cron", "{overwrite: true, cron"));
    process.logged("second-said");
    assert!(scene.get("hello/config").await.unwrap().contains("second-said"));
    assert_eq!(instances(&scene, "hello").await, before);
    assert!(!process.log().contains("the job is left"), "it was never left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_wrong_or_gone_is_said_once_and_what_ran_goes_on() {
    let scene = Scene::with(&job("hello")).await;
    let mut process = scene.run(&[]);
    process.logged("hello-said");

    scene.describe("    hello: {crom: x}\n");
    let wrong = process.logged("the files cannot be used");
    assert!(wrong.contains("jobs.yml:3") && wrong.contains("did you mean cron?"), "{wrong}");
    process.logged("hello-said");
    scene.describe(&job("hello"));
    process.logged("the files are good again");

    fs::remove_file(scene.file()).unwrap();
    let gone = process.logged("the files cannot be used");
    assert!(gone.contains("cannot read"), "{gone}");
    process.logged("hello-said");
    process.logged("hello-said");
    scene.describe(&format!("{}{}", job("hello"), job("howdy")));
    process.logged("the files are good again");
    process.logged("howdy-said");
    let log = process.log();
    assert_eq!(log.matches("the files cannot be used").count(), 2, "{log}");
    assert!(!log.contains("the job is left"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_job_that_is_somebody_elses_is_said_once_and_the_others_go_on() {
    let scene = Scene::with(&job("hello")).await;
    scene.put("settle", "com.acme.Settle").await;
    let mut process = scene.run(&[]);
    process.logged("hello-said");

    scene.describe(&format!("{}{}{}", job("hello"), job("settle"), job("howdy")));
    let refused = process.logged("what is wanted of the job does not work");
    assert!(refused.contains("belongs to the Java class com.acme.Settle"), "{refused}");
    process.logged("howdy-said");
    process.logged("hello-said");

    // When the class is gone it is joined, without anybody's doing.
    let registry = scene.line().await;
    let root = registry.namespace().path().join("settle").unwrap();
    registry.delete(&root, elasticjob::registry::Expected::Any).await.unwrap();
    process.logged("settle-said");
    let log = process.log();
    assert_eq!(log.matches("what is wanted of the job does not work").count(), 1, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_of_a_job_that_is_being_left_may_finish_when_the_process_is_told_to_stop() {
    let slow = "    slow: {cron: '* * * * * ?', props: {script.command.line: sh FOLDER/slow.sh}}\n";
    let scene = Scene::with(&format!("{slow}{}", job("hello"))).await;
    let place = scene.folder.path().display().to_string();
    let script = "echo begun\nwhile [ ! -e FOLDER/go ]; do sleep 0.05; done\ntouch FOLDER/done\n";
    scene.write("slow.sh", &script.replace("FOLDER", &place));
    let mut process = scene.run(&[]);
    process.logged("begun");

    scene.describe(&job("hello"));
    of_job(&mut process, "slow", "the job is left");
    process.terminate();
    process.logged("the node stops");
    scene.write("go", "");

    let (status, _) = process.ended();
    assert_eq!(status.code(), Some(0), "{}", process.log());
    assert!(scene.folder.path().join("done").exists());
}
