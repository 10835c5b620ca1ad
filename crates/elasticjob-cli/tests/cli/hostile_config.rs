//! One job's stored configuration is hostile. The other jobs of the same worker, of the command line and of `dev` go on, in bounded memory.

use std::fs;

use elasticjob::{
    Job,
    registry::{self, ExpectedVersion},
};
use tempfile::TempDir;

use crate::{
    metrics::metrics,
    process::Process,
    scene::{Scene, wait_until},
};

/// More than any of these processes needs, and far less than one of the documents would take.
const MAX_MEGABYTES: u64 = 500;

const JOBS: &str = "    bystander: {cron: '* * * * * ?', props: {script.command.line: echo bystander-output}}\n    \
    hostile: {cron: '* * * * * ?', props: {script.command.line: echo hostile-output}}\n";

/// Documents, and a part of the reason for which each is invalid.
fn hostile_documents() -> [(String, &'static str); 5] {
    let count = |count: &str| format!("jobName: hostile\nshardingTotalCount: {count}\n");
    let text = "x".repeat(500_000);
    let aliases = "*a, ".repeat(19_000);
    [
        (count("2147483647"), "at most 100000 shards"),
        (count("1000000"), "at most 100000 shards"),
        (count("10001"), "at most 10000 shards"),
        (format!("{}description: {text}\n", count("1")), "key description"),
        (format!("{}props: {{a: &a {text}, b: [{aliases}]}}\n", count("1")), "aliases"),
    ]
}

/// The most memory that a process has used so far.
fn peak_megabytes(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

/// Waits until the worker has run the bystander a few times more.
fn wait_for_runs(address: &str) {
    let runs = || {
        let name = r#"elasticjob_shards_total{job_name="bystander",outcome="done"}"#;
        metrics(address).get(name).copied().unwrap_or_default()
    };
    let before = runs();
    wait_until(|| runs() >= before + 3.0);
}

fn health_address(process: &mut Process) -> String {
    let line = process.wait_for_log("health endpoint listening");
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    line["address"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_runs_other_jobs_beside_a_hostile_configuration() {
    let scene = Scene::with(JOBS).await;
    let mut worker = scene.start_worker(&["--health-listen", "0"]);
    let address = health_address(&mut worker);
    worker.wait_for_log("hostile-output");
    let valid = scene.get("hostile/config").await.unwrap();

    for (document, reason) in hostile_documents() {
        scene.put("hostile/config", &document).await;
        wait_until(|| metrics(&address)["elasticjob_jobs_invalid"] as u64 == 1);
        wait_for_runs(&address);

        for command in
            [&["job", "list"][..], &["job", "show", "hostile"], &["job", "explain", "hostile"]]
        {
            let shown = scene.run(command);
            let text = format!("{}{}", shown.stdout, shown.stderr);
            assert!(text.contains(reason), "{command:?}: {text}");
        }
        let examined = scene.run(&["doctor", "-o", "json"]);
        assert!(examined.stdout.contains(reason), "{}", examined.stdout);
        assert_eq!(metrics(&address)["elasticjob_ready"] as u64, 1);

        scene.put("hostile/config", &valid).await;
        wait_until(|| metrics(&address)["elasticjob_jobs_invalid"] as u64 == 0);
    }
    worker.wait_for_log("new configuration is unreadable, keeping the previous one");
    assert!(peak_megabytes(&worker) < MAX_MEGABYTES, "{} MB", peak_megabytes(&worker));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_starts_beside_a_hostile_configuration() {
    let scene = Scene::with(JOBS).await;
    let (document, reason) = &hostile_documents()[0];
    scene.put("hostile", "SCRIPT").await;
    scene.put("hostile/config", document).await;

    let mut worker = scene.start_worker(&["--health-listen", "0"]);
    let address = health_address(&mut worker);
    let line = worker.wait_for_log("job not joined until its configuration is valid");
    assert!(line.contains(reason), "{line}");
    wait_for_runs(&address);
    assert_eq!(metrics(&address)["elasticjob_ready"] as u64, 1);

    scene.put("hostile/config", "jobName: hostile\nshardingTotalCount: 1\ncron: '* * * * * ?'\nprops: {script.command.line: echo mended-output}\n").await;
    wait_until(|| metrics(&address)["elasticjob_jobs_invalid"] as u64 == 0);
    assert!(peak_megabytes(&worker) < MAX_MEGABYTES, "{} MB", peak_megabytes(&worker));
}

#[tokio::test(flavor = "multi_thread")]
async fn worker_starts_beside_a_job_of_another_handler() {
    let scene = Scene::with(JOBS).await;
    scene.put("hostile", "com.acme.Hostile").await;

    let mut worker = scene.start_worker(&["--health-listen", "0"]);
    let address = health_address(&mut worker);
    let line = worker.wait_for_log("job not joined, retrying");
    assert!(line.contains("job hostile belongs to the Java class com.acme.Hostile"), "{line}");
    wait_for_runs(&address);
    assert_eq!(metrics(&address)["elasticjob_jobs_invalid"] as u64, 1);
    assert_eq!(metrics(&address)["elasticjob_ready"] as u64, 1);

    scene.put("hostile", "").await;
    worker.wait_for_log("hostile-output");
    wait_until(|| metrics(&address)["elasticjob_jobs_invalid"] as u64 == 0);
}

#[test]
fn dev_names_a_hostile_configuration_and_goes_on() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("jobs.yml");
    let job = "bystander: {cron: '* * * * * ?', props: {script.command.line: 'false'}}";
    fs::write(&file, format!("elasticjob:\n  jobs:\n    {job}\n")).unwrap();
    let file = file.to_str().unwrap();
    let mut dev = Process::start(&["dev", "--registry-listen", "0", "-f", file]);
    let url = Process::word_after(&dev.wait_for_log("registry  "), "registry  ");
    dev.wait_for_log("bystander: 0 failed on dev");

    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (document, reason) in hostile_documents() {
        runtime.block_on(async {
            let registry = registry::connect(&url.parse().unwrap()).await.unwrap();
            let path = registry.namespace().path().join("hostile/config").unwrap();
            registry::ensure_path(&*registry, &path).await.unwrap();
            let valid = Job::named("hostile").unwrap().to_yaml();
            for document in [&valid, &document] {
                let data = document.clone().into();
                registry.set(&path, data, ExpectedVersion::Any).await.unwrap();
            }
            registry.close().await;
        });
        // The first line is about the node that was created empty.
        while !dev.wait_for_log("hostile is invalid: ").contains(reason) {}
        dev.wait_for_log("bystander: 0 failed on dev");
    }
    assert!(peak_megabytes(&dev) < MAX_MEGABYTES, "{} MB", peak_megabytes(&dev));
    dev.terminate();
    assert_eq!(dev.wait().0.code(), Some(0), "{}", dev.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn job_file_above_the_limit_needs_a_higher_one() {
    let scene =
        Scene::with("    wide: {shardingTotalCount: 10001, props: {script.command.line: echo}}\n")
            .await;
    let file = scene.file();

    let refused = scene.run(&["job", "apply", "-f", &file, "--yes"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: ") && refused.stderr.contains("--max-shards"));
    let checked = scene.run(&["run", "-f", &file, "--check"]);
    assert_eq!(checked.code, Some(2), "{}", checked.stderr);
    assert!(checked.stderr.contains("jobs.yml:3: job wide"), "{}", checked.stderr);

    let raised = ["--max-shards", "20000"];
    let applied = scene.run(&[&["job", "apply", "-f", &file, "--yes"][..], &raised].concat());
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    let listed = scene.run(&[&["shard", "list", "wide", "--skip", "9999"][..], &raised].concat());
    assert_eq!(listed.stdout.lines().count(), 3, "a header and two shards: {}", listed.stdout);
    let first = scene.run(&[&["shard", "list", "wide", "--limit", "2"][..], &raised].concat());
    assert!(first.stderr.contains("2 of 10001 shards; --skip 2 lists more"), "{}", first.stderr);
    let beyond = scene.run(&["job", "list", "--max-shards", "100001"]);
    assert_eq!(beyond.code, Some(2), "{}", beyond.stderr);
}
