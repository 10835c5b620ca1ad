//! Jobs that are defined in the registry and in no file.

use std::{fmt::Write, fs, os::unix::fs::PermissionsExt, time::Duration};

use elasticjob::{
    registry::{Create, Op, ensure_path},
    runtime::{Clock, SystemClock},
};
use serde_json::Value;
use testbed::ZooKeeper;

use crate::{
    metrics::metrics,
    process::{PATIENCE, Process},
    scene::{Scene, wait_until},
};

/// Writes a script that prints its name.
fn script(scene: &Scene, name: &str) -> String {
    let path = scene.folder.path().join("bin");
    fs::create_dir_all(&path).unwrap();
    let file = path.join(format!("{name}.sh"));
    fs::write(&file, format!("#!/bin/sh\necho {name}-output\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Stores jobs that fire every second.
fn apply(scene: &Scene, jobs: &[(&str, String)]) {
    let mut text = "elasticjob:\n  jobs:\n".to_owned();
    for (name, props) in jobs {
        writeln!(text, "    {name}: {{cron: '* * * * * ?', props: {{{props}}}}}").unwrap();
    }
    let file = scene.write("apply.yml", &text);
    let output = scene.run(&["job", "apply", "-f", &file, "--yes"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
}

fn command(line: &str) -> String {
    format!("script.command.line: '{line}'")
}

/// A worker without a file that may run the programs in the folder.
fn worker(scene: &Scene, more: &[&str]) -> Process {
    let folder = scene.folder.path().join("bin");
    fs::create_dir_all(&folder).unwrap();
    let what = ["run", "--registry", &scene.url, "--log-format", "json"];
    let rights = ["--scripts-from", folder.to_str().unwrap()];
    Process::start(&[&what[..], &rights[..], more].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_worker_does_not_poll_the_registry() {
    let scene = Scene::with("").await;
    let path = script(&scene, "hello");
    let props = command(&path);
    let file = scene.write(
        "apply.yml",
        &format!(
            "elasticjob:\n  jobs:\n    hello: {{cron: '0 0 0 1 1 ? 2099', props: {{{props}}}}}\n"
        ),
    );
    let mut process = worker(&scene, &["--health-listen", "0"]);
    let line: Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();
    process.wait_for_log("node started");
    assert_eq!(scene.run(&["job", "apply", "-f", &file, "--yes"]).code, Some(0));
    process.wait_for_log("job joined");
    wait_until(|| metrics(&address)["elasticjob_ready"] > 0.0);
    let reads =
        || metrics(&address)[r#"elasticjob_registry_request_seconds_count{request="read"}"#];

    // Elections and assignments end by themselves; then nothing is left to ask for.
    let (mut before, mut since) = (reads(), SystemClock.monotonic());
    let deadline = since + PATIENCE;
    while SystemClock.monotonic().saturating_since(since) < Duration::from_secs(4) {
        let now = reads();
        if now > before {
            (before, since) = (now, SystemClock.monotonic());
        }
        assert!(SystemClock.monotonic() < deadline, "the registry is asked again and again");
    }
    assert_eq!(metrics(&address)["elasticjob_registry_sessions"] as u64, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_joins_applied_jobs_and_leaves_removed_ones() {
    let scene = Scene::with("").await;
    scene.put("java", "com.acme.Java").await;
    scene.put("java/config", "jobName: java\nshardingTotalCount: 1\n").await;
    scene.put("rust/config", "jobName: rust\nshardingTotalCount: 1\n").await;
    let mut process = worker(&scene, &["--health-listen", "0"]);
    let line: Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();
    process.wait_for_log("node started");

    let path = script(&scene, "hello");
    apply(&scene, &[("outside", command("echo outside-output")), ("hello", command(&path))]);
    process.wait_for_log("hello-output");
    wait_until(|| metrics(&address)["elasticjob_jobs_refused"] as u64 == 1);
    let log = process.log();
    assert_eq!(log.matches("registry job refused").count(), 1, "{log}");
    assert!(log.contains("--scripts-from DIR allows programs"), "{log}");
    assert!(!log.contains(r#""line":"outside-output""#), "{log}");
    assert_eq!(scene.get("outside/instances").await, None, "it is not joined");
    assert_eq!(scene.get("rust/instances").await, None, "nor is what a Rust program runs");
    assert_eq!(scene.get("java/instances").await, None);

    process.terminate();
    process.wait();
    let mut process = worker(&scene, &[]);
    process.wait_for_log("hello-output");

    let removed = scene.run(&["job", "remove", "hello", "--force"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    process.wait_for_log("job left");
    assert_eq!(scene.get("hello").await, None, "no worker brought it back");
    apply(&scene, &[("hello", command(&path))]);
    process.wait_for_log("hello-output");
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_job_runs_once_it_is_permitted() {
    let scene = Scene::with("").await;
    let path = script(&scene, "hello");
    apply(&scene, &[("hello", command("echo outside"))]);
    let mut process = worker(&scene, &[]);
    process.wait_for_log("registry job refused");

    apply(&scene, &[("hello", command(&path))]);

    process.wait_for_log("hello-output");
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_whose_only_file_job_is_refused_runs_registry_jobs() {
    let scene = Scene::with(
        "    own: {cron: '* * * * * ?', props: {script.command.line: echo own-output}}\n",
    )
    .await;
    scene.put("own", "com.acme.Own").await;
    let path = script(&scene, "hello");
    apply(&scene, &[("hello", command(&path))]);
    let folder = scene.folder.path().join("bin");

    let mut process = scene.start_worker(&["--scripts-from", folder.to_str().unwrap()]);

    let refused = process.wait_for_log("job not joined, retrying");
    assert!(refused.contains("job own belongs to the Java class com.acme.Own"), "{refused}");
    process.wait_for_log("hello-output");
    scene.put("own", "").await;
    process.wait_for_log("own-output");
}

/// Creates nodes in the namespace that look like jobs of scripts that may not run.
async fn create_bogus_jobs(scene: &Scene, count: usize) {
    let registry = scene.connect().await;
    let namespace = registry.namespace().path().clone();
    ensure_path(&*registry, &namespace).await.unwrap();
    let names: Vec<String> = (0..count).map(|number| format!("bogus-{number:06}")).collect();
    for batch in names.chunks(500) {
        let ops = batch.iter().flat_map(|name| {
            let root = namespace.join(name).unwrap();
            let config = root.join("config").unwrap();
            let document = format!(
                "jobName: {name}\nshardingTotalCount: 1\ncron: '* * * * * ?'\nprops: {{script.command.line: /bogus}}\n"
            );
            [
                Op::Create(Create::persistent(&root, "SCRIPT")),
                Op::Create(Create::persistent(&config, document)),
            ]
        });
        registry.multi(ops.collect()).await.unwrap();
    }
    registry.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_bogus_jobs_neither_fill_the_log_nor_hide_a_new_job() {
    const COUNT: usize = 6_000;
    let scene = Scene::with("").await;
    let path = script(&scene, "hello");
    apply(&scene, &[("hello", command(&path))]);
    create_bogus_jobs(&scene, COUNT).await;

    let mut process = worker(&scene, &["--health-listen", "0"]);
    let line: Value =
        serde_json::from_str(&process.wait_for_log("health endpoint listening")).unwrap();
    let address = line["address"].as_str().unwrap().to_owned();
    process.wait_for_log("too many registry jobs refused");
    process.wait_for_log("hello-output");
    // Before and behind the others, while they are still being read.
    apply(&scene, &[("another", command(&script(&scene, "another")))]);
    apply(&scene, &[("zebra", command(&script(&scene, "zebra")))]);
    process.wait_for_log("another-output");
    process.wait_for_log("zebra-output");

    wait_until(|| metrics(&address)["elasticjob_jobs_refused"] as usize == COUNT);
    process.wait_for_log("hello-output");
    assert_eq!(process.log().matches("registry job refused\"").count(), 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_go_only_to_allowed_hosts() {
    let scene = Scene::with("").await;
    let uri = |host: &str| format!("http.uri: 'http://{host}:1/', http.method: GET");
    apply(&scene, &[("near", uri("127.0.0.1")), ("far", uri("169.254.169.254"))]);

    let mut process = Process::start(&[
        "run",
        "--registry",
        &scene.url,
        "--log-format",
        "json",
        "--http-allow",
        "127.0.0.1",
    ]);

    let refused = process.wait_for_log("registry job refused");
    assert!(refused.contains("\"far\"") && refused.contains("--http-allow"), "{refused}");
    let joined = process.wait_for_log("job joined");
    assert!(joined.contains("\"near\"") && joined.contains("HTTP"), "{joined}");
}

#[tokio::test(flavor = "multi_thread")]
async fn file_job_takes_precedence_and_shut_down_job_is_not_rejoined() {
    let scene = Scene::with(
        "    own: {cron: '* * * * * ?', props: {script.command.line: echo own-output}}\n",
    )
    .await;
    let path = script(&scene, "hello");
    apply(&scene, &[("hello", command(&path)), ("own", command("echo own-output"))]);
    let folder = scene.folder.path().join("bin");
    let mut process = scene.start_worker(&["--scripts-from", folder.to_str().unwrap()]);
    process.wait_for_log("own-output");
    process.wait_for_log("hello-output");
    assert!(!process.log().contains("registry job refused"), "{}", process.log());

    assert_eq!(scene.run(&["job", "shutdown", "hello"]).code, Some(0));
    scene.wait_until(&["job", "show", "hello"], |job| job["instanceCount"] == 0);
    // The registry is polled while the other job keeps running.
    for _ in 0..4 {
        process.wait_for_log("own-output");
    }
    assert_eq!(scene.data(&["job", "show", "hello"])["instanceCount"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn pruned_job_is_not_rejoined_by_permitted_workers() {
    let scene = Scene::with("").await;
    let path = script(&scene, "hello");
    let job = |name: &str| {
        format!("    {name}: {{cron: '* * * * * ?', props: {{script.command.line: {path}}}}}\n")
    };
    scene.write_jobs(&format!("{}{}", job("hello"), job("howdy")));
    let folder = scene.folder.path().join("bin");
    let rights = ["--prune", "--scripts-from", folder.to_str().unwrap()];
    let mut workers = [scene.start_worker(&rights), scene.start_worker(&rights)];
    for worker in &mut workers {
        worker.wait_for_log("node started");
    }

    scene.write_jobs(&job("howdy"));
    for worker in &mut workers {
        worker.wait_for_log("job left");
    }

    wait_until(|| scene.run(&["job", "show", "hello"]).code == Some(5));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a real ZooKeeper: make test"]
async fn applied_job_runs_and_is_observed_on_real_zookeeper() {
    let server = ZooKeeper::start();
    let scene = Scene::at(server.address());
    let path = script(&scene, "hello");
    let mut process = worker(&scene, &["--dump-listen", "0"]);
    process.wait_for_log("node started");
    let mut observer =
        Process::start(&["run", "--observe", "--registry", &scene.url, "--log-format", "json"]);
    observer.wait_for_log("observing without joining");

    apply(&scene, &[("hello", command(&path))]);

    process.wait_for_log("hello-output");
    observer.wait_for_log("shards assigned");
    observer.wait_for_log("job due");
    observer.wait_for_log("shard started");
    observer.wait_for_log("shard ended");
    let removed = scene.run(&["job", "remove", "hello", "--force"]);
    assert_eq!(removed.code, Some(0), "{}", removed.stderr);
    process.wait_for_log("job left");
    observer.wait_for_log("job removed");
    assert_eq!(scene.get("hello").await, None, "no worker brought it back");
}
