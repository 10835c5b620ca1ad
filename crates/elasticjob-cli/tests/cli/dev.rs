//! `elasticjob dev`: the registry, the demo workers and the commentary.

use std::{collections::BTreeSet, fs, net::TcpListener};

use elasticjob::{
    admin::{Admin, JobStatus},
    registry,
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

use crate::process::{Process, elasticjob};

fn pid(line: &str) -> Pid {
    Pid::from_raw(Process::word_after(line, "(pid ").parse().unwrap()).unwrap()
}

fn name(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words[1].to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_shows_failover_of_a_killed_worker_and_stops_all_workers() {
    let mut dev = Process::start(&["dev", "--demo", "--registry-listen", "0"]);
    let url =
        Process::word_after(&dev.wait_for_log("registry  zookeeper://127.0.0.1:"), "registry  ");
    dev.wait_for_log("endpoint  http://127.0.0.1:");
    let workers: Vec<(String, Pid)> =
        (0..3).map(|_| dev.wait_for_log(" joined")).map(|line| (name(&line), pid(&line))).collect();
    let names: BTreeSet<&str> = workers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["worker-1", "worker-2", "worker-3"]));

    // Wait until all three workers own shards of the job and one of them has started.
    let shared = |line: &str| names.iter().all(|name| line.contains(name));
    while !shared(&dev.wait_for_log("settle: 0 → ")) {}
    let begun = dev.wait_for_log(" starts with ");
    let (victim, victims_pid) =
        workers.iter().find(|(name, _)| begun.contains(name)).expect("one of ours");
    kill_process(*victims_pid, Signal::KILL).unwrap();

    dev.wait_for_log(&format!(
        "{victim} (pid {}) was killed by signal 9",
        victims_pid.as_raw_nonzero()
    ));
    let again = dev.wait_for_log("demo-worker");
    assert!(again.contains(&format!("--name {victim}")) && again.contains(&url), "{again}");
    dev.wait_for_log(&format!("{victim} is gone"));
    let taken = dev.wait_for_log("is taken over by");
    assert!(taken.contains("settle: ") && taken.contains(&format!("from {victim}")), "{taken}");
    let registry = registry::connect(&url.parse().unwrap()).await.unwrap();
    let jobs = Admin::new(registry).jobs().await.unwrap();
    let all: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(all, ["flaky", "greet", "load", "overrun", "ping", "settle"]);
    assert!(jobs.iter().all(|job| job.instances == 2 && job.status != JobStatus::Crashed));

    // A worker restarted with the printed command line joins again.
    let mut stranger = Process::start(&["demo-worker", "--name", victim, "--registry", &url]);
    dev.wait_for_log(&format!("{victim} (pid {}) joined", stranger.id()));
    stranger.terminate();
    assert_eq!(stranger.wait().0.code(), Some(0), "{}", stranger.log());

    dev.terminate();
    let (status, stdout) = dev.wait();
    assert_eq!((status.code(), &*stdout), (Some(0), ""), "{}", dev.log());
    for (name, pid) in &workers {
        assert!(test_kill_process(*pid).is_err(), "{name} still lives");
    }
}

#[test]
fn demo_workers_end_when_dev_is_killed() {
    let mut dev = Process::start(&["dev", "--demo", "--registry-listen", "0"]);
    for _ in 0..3 {
        dev.wait_for_log(" joined");
    }

    assert!(dev.kill_and_wait_for_silence(), "a demo worker survived: {}", dev.log());
}

#[test]
fn dev_runs_jobs_of_a_file_and_keeps_its_data() {
    let folder = TempDir::new().unwrap();
    let (file, data) = (folder.path().join("jobs.yml"), folder.path().join("data"));
    let job = "hello: {cron: '* * * * * ?', props: {script.command.line: 'false'}}";
    fs::write(&file, format!("elasticjob:\n  jobs:\n    {job}\n")).unwrap();
    let (file, data) = (file.to_str().unwrap(), data.to_str().unwrap());

    let mut dev = Process::start(&["dev", "--data", data, "--registry-listen", "0", "-f", file]);
    assert!(dev.wait_for_log("registry  ").contains(data));
    dev.wait_for_log("hello: 0 → dev");
    dev.wait_for_log("hello: 0 failed on dev");
    dev.terminate();
    let (status, _) = dev.wait();

    assert_eq!(status.code(), Some(0), "{}", dev.log());
    let mut again = Process::start(&["dev", "--data", data, "--registry-listen", "0"]);
    let url = Process::word_after(&again.wait_for_log("registry  "), "registry  ");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let jobs = runtime.block_on(async {
        let registry = registry::connect(&url.parse().unwrap()).await.unwrap();
        Admin::new(registry).jobs().await.unwrap()
    });
    assert_eq!((jobs.len(), jobs[0].name.as_str()), (1, "hello"));
    again.terminate();
    assert_eq!(again.wait().0.code(), Some(0), "{}", again.log());
}

#[test]
fn registry_port_in_use_is_reported_with_the_flag_to_change() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();

    let output = elasticjob(&["dev", "--demo", "--registry-listen", &address]);

    assert_eq!((output.code, &*output.stdout), (Some(2), ""));
    let [error, hint] = output.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", output.stderr)
    };
    assert!(error.starts_with(&format!("error: cannot listen on {address}: ")), "{error}");
    assert!(hint.contains("--registry-listen"), "{hint}");
}
