//! Workers as processes, killed and frozen.

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

/// How long the registry waits for a worker it does not hear of.
const SESSION: &str = "2s";

/// A worker that runs a script, and everybody who came of it: the supervisor first.
struct Scene {
    worker: Child,
    outcomes: Lines<BufReader<ChildStdout>>,
    family: Vec<Process>,
    url: String,
    _registry: Server,
    _folder: TempDir,
}

impl Scene {
    async fn begin(properties: &[&str]) -> Self {
        let mut config = Config::ephemeral();
        config.min_session_timeout = Duration::from_secs(1);
        let registry = Server::start(config).await.unwrap();
        let url = format!("zookeeper://{}/shop?sessionTimeout={SESSION}", registry.address());
        let folder = TempDir::new().unwrap();
        let (script, told) = (folder.path().join("script.sh"), folder.path().join("told"));
        // Its number goes to the test, not to the worker.
        fs::write(&script, format!("exec > \"$1\"\necho $PPID\n{FAMILY}")).unwrap();
        assert!(Command::new("mkfifo").arg(&told).status().await.unwrap().success());
        let pipe = pipe::OpenOptions::new().read_write(true).open_receiver(&told).unwrap();

        let mut worker = Command::new(env!("CARGO_BIN_EXE_script-worker"))
            .args([&url, &format!("sh {} {}", script.display(), told.display())])
            .args(properties)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let outcomes = BufReader::new(worker.stdout.take().unwrap()).lines();
        let (mut pipe, mut family) = (BufReader::new(pipe).lines(), Vec::new());
        while family.len() < 6 {
            family.push(Process::numbered(&line(&mut pipe).await));
        }
        Self { worker, outcomes, family, url, _registry: registry, _folder: folder }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.worker.id().unwrap().cast_signed()).unwrap()
    }

    fn is_frozen(&self) -> bool {
        let path = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        fs::read_to_string(path).unwrap().contains(") T ")
    }
}

async fn line(lines: &mut Lines<BufReader<impl AsyncRead + Unpin>>) -> String {
    let line = tokio::time::timeout(PATIENCE, lines.next_line());
    line.await.expect("it prints").unwrap().expect("it is open")
}

#[tokio::test]
async fn nobody_survives_a_worker_that_is_killed() {
    let mut scene = Scene::begin(&[]).await;

    scene.worker.kill().await.unwrap();

    assert_eq!(survivors(&scene.family), []);
}

#[tokio::test]
async fn nobody_survives_a_worker_that_is_frozen_for_longer_than_its_lease() {
    let mut scene = Scene::begin(&[]).await;

    scene.signal(Signal::STOP);
    instance_is_gone(&scene.url).await;
    let alive = scene.family.iter().filter(|process| !process.ends_within(Duration::ZERO));

    assert_eq!(alive.count(), 0, "somebody else may run the shard now");
    assert!(scene.is_frozen());
    scene.signal(Signal::CONT);
    assert_eq!(line(&mut scene.outcomes).await, Outcome::Fenced.to_string());
}

#[tokio::test]
async fn a_script_that_may_go_on_without_a_lease_ends_only_with_its_worker() {
    for policy in ["finish-fenced", "continue"] {
        let property = format!("elasticjob.on.lease.loss={policy}");
        let mut scene = Scene::begin(&[&property]).await;

        scene.signal(Signal::STOP);
        instance_is_gone(&scene.url).await;
        let ended = scene.family.iter().filter(|process| process.ends_within(Duration::ZERO));

        assert_eq!(ended.count(), 0, "{policy}");
        scene.worker.kill().await.unwrap();
        assert_eq!(survivors(&scene.family), [], "{policy}");
    }
}

/// Waits until the registry has given up the worker.
async fn instance_is_gone(url: &str) {
    let registry = registry::connect(&url.parse().unwrap()).await.unwrap();
    let path = registry.namespace().path().join("script/instances").unwrap();
    let gone = async {
        let mut watch = registry.watch(&path).await.unwrap();
        while !registry.children(&path).await.unwrap().unwrap().is_empty() {
            watch.next().await.expect("the registry is there");
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the session expires");
}
