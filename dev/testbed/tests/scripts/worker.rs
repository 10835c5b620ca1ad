//! Scripts of worker processes that are killed or frozen.

use std::{fs, process::Stdio, time::Duration};

use elasticjob::{execution::Outcome, registry};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tinykeeper::server::{Config, Server};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader, Lines},
    net::unix::pipe,
    process::{Child, ChildStdout, Command},
};

use crate::{
    fixture::PATIENCE,
    script::{FAMILY, Process, survivors},
};

/// The session timeout.
const SESSION: &str = "2s";

/// A worker process that runs a script, and the processes of that script, the supervisor first.
struct WorkerProcess {
    child: Child,
    outcomes: Lines<BufReader<ChildStdout>>,
    processes: Vec<Process>,
    url: String,
    _registry: Server,
    _folder: TempDir,
}

impl WorkerProcess {
    async fn start(properties: &[&str]) -> Self {
        let mut config = Config::in_memory();
        config.min_session_timeout = Duration::from_secs(1);
        let registry = Server::start(config).await.unwrap();
        let url = format!("zookeeper://{}/shop?sessionTimeout={SESSION}", registry.address());
        let folder = TempDir::new().unwrap();
        let (script, fifo) = (folder.path().join("script.sh"), folder.path().join("pids"));
        // The script prints the pids to the test, not to the worker.
        fs::write(&script, format!("exec > \"$1\"\necho $PPID\n{FAMILY}")).unwrap();
        assert!(Command::new("mkfifo").arg(&fifo).status().await.unwrap().success());
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&fifo).unwrap();

        let mut child = Command::new(env!("CARGO_BIN_EXE_script-worker"))
            .args([&url, &format!("sh {} {}", script.display(), fifo.display())])
            .args(properties)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let outcomes = BufReader::new(child.stdout.take().unwrap()).lines();
        let (mut pipe, mut processes) = (BufReader::new(pipe).lines(), Vec::new());
        while processes.len() < 6 {
            processes.push(Process::numbered(&line(&mut pipe).await));
        }
        Self { child, outcomes, processes, url, _registry: registry, _folder: folder }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().unwrap().cast_signed()).unwrap()
    }

    fn is_frozen(&self) -> bool {
        let path = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        fs::read_to_string(path).unwrap().contains(") T ")
    }
}

async fn line(lines: &mut Lines<BufReader<impl AsyncRead + Unpin>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line());
    line.await.expect("a line in time").unwrap().expect("the pipe is open")
}

#[tokio::test]
async fn script_does_not_survive_a_killed_worker() {
    let mut worker = WorkerProcess::start(&[]).await;

    worker.child.kill().await.unwrap();

    assert_eq!(survivors(&worker.processes), []);
}

#[tokio::test]
async fn script_does_not_survive_a_worker_frozen_longer_than_its_lease() {
    let mut worker = WorkerProcess::start(&[]).await;

    worker.signal(Signal::STOP);
    wait_until_instance_is_gone(&worker.url).await;
    let alive = worker.processes.iter().filter(|process| !process.ends_within(Duration::ZERO));

    assert_eq!(alive.count(), 0, "another instance may run the shard now");
    assert!(worker.is_frozen());
    worker.signal(Signal::CONT);
    assert_eq!(line(&mut worker.outcomes).await, Outcome::Fenced.to_string());
}

#[tokio::test]
async fn script_allowed_to_run_without_a_lease_ends_only_with_its_worker() {
    for policy in ["finish-fenced", "continue"] {
        let property = format!("elasticjob.on.lease.loss={policy}");
        let mut worker = WorkerProcess::start(&[&property]).await;

        worker.signal(Signal::STOP);
        wait_until_instance_is_gone(&worker.url).await;
        let ended = worker.processes.iter().filter(|process| process.ends_within(Duration::ZERO));

        assert_eq!(ended.count(), 0, "{policy}");
        worker.child.kill().await.unwrap();
        assert_eq!(survivors(&worker.processes), [], "{policy}");
    }
}

/// Waits until the session of the worker has expired.
async fn wait_until_instance_is_gone(url: &str) {
    let registry = registry::connect(&url.parse().unwrap()).await.unwrap();
    let path = registry.namespace().path().join("script/instances").unwrap();
    let gone = async {
        let mut watch = registry.watch(&path).await.unwrap();
        while !registry.children(&path).await.unwrap().unwrap().is_empty() {
            watch.next().await.expect("the registry is up");
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the session expires");
}
