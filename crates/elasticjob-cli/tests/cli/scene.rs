//! A registry in this process, and commands and nodes that use it.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use elasticjob::{
    Node,
    job::{Job, Shard},
    node::RunningNode,
    registry::{self, ExpectedVersion, Registry, ensure_path},
    runtime::{Clock, SystemClock},
};
use serde_json::Value;
use tempfile::TempDir;
use tinykeeper::server::{Config, Server};

use crate::process::{CommandOutput, PATIENCE, Process, elasticjob};

/// Server address of the nodes in this process.
pub(crate) const ADDRESS: &str = "10.0.0.7";

/// A registry, a temporary folder, and a job file in it.
pub(crate) struct Scene {
    pub(crate) url: String,
    pub(crate) folder: TempDir,
    pub(crate) registry: Option<Server>,
}

impl Scene {
    /// Starts a registry; `jobs` is the content of the job file below `jobs`.
    pub(crate) async fn with(jobs: &str) -> Self {
        let mut config = Config::in_memory();
        config.min_session_timeout = Duration::from_secs(1);
        let registry = Server::start(config).await.unwrap();
        let scene = Self::at(registry.address());
        let scene = Self { registry: Some(registry), ..scene };
        scene.write_jobs(jobs);
        scene
    }

    /// Uses a registry that is already running.
    pub(crate) fn at(registry: SocketAddr) -> Self {
        let url = format!("zookeeper://{registry}/shop?sessionTimeout=4s");
        Self { url, folder: TempDir::new().unwrap(), registry: None }
    }

    /// Rewrites the job file.
    pub(crate) fn write_jobs(&self, jobs: &str) {
        let jobs = jobs.replace("FOLDER", self.folder.path().to_str().unwrap());
        self.write("jobs.yml", &format!("elasticjob:\n  jobs:\n{jobs}"));
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn file(&self) -> String {
        self.folder.path().join("jobs.yml").to_str().unwrap().to_owned()
    }

    /// Starts `elasticjob run` with the job file.
    pub(crate) fn start_worker(&self, more: &[&str]) -> Process {
        let file = self.file();
        let arguments = ["run", "-f", &file, "--registry", &self.url, "--log-format", "json"];
        Process::start(&[&arguments[..], more].concat())
    }

    /// The same, with a limit on the size of files.
    pub(crate) fn start_worker_with_file_limit(&self, more: &[&str], kilobytes: u32) -> Process {
        let file = self.file();
        let arguments = ["run", "-f", &file, "--registry", &self.url, "--log-format", "json"];
        Process::start_with_file_limit(&[&arguments[..], more].concat(), kilobytes)
    }

    /// Runs a command on this registry and waits for it.
    pub(crate) fn run(&self, arguments: &[&str]) -> CommandOutput {
        elasticjob(&[arguments, &["--registry", &self.url]].concat())
    }

    /// Runs a command that must succeed; returns its JSON.
    pub(crate) fn data(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["-o", "json"]].concat());
        assert_eq!((output.code, &*output.stderr), (Some(0), ""), "{arguments:?}");
        serde_json::from_str(&output.stdout).unwrap()
    }

    pub(crate) async fn connect(&self) -> Arc<dyn Registry> {
        registry::connect(&self.url.parse().unwrap()).await.unwrap()
    }

    /// Writes a node of the namespace.
    pub(crate) async fn put(&self, path: &str, data: &str) {
        let registry = self.connect().await;
        let path = registry.namespace().path().join(path).unwrap();
        ensure_path(&*registry, &path).await.unwrap();
        registry.set(&path, data.to_owned().into(), ExpectedVersion::Any).await.unwrap();
    }

    /// Reads a node of the namespace.
    pub(crate) async fn get(&self, path: &str) -> Option<String> {
        let registry = self.connect().await;
        let path = registry.namespace().path().join(path).unwrap();
        let node = registry.get(&path).await.unwrap()?;
        Some(String::from_utf8(node.data.to_vec()).unwrap())
    }

    /// Starts a node that runs `job`, and waits until its shards are assigned. The job parameter controls what a shard does: see [`handle`].
    pub(crate) async fn node(&self, job: Job) -> RunningNode {
        let name = job.name.to_string();
        let node = Node::join(&self.url).address(ADDRESS.parse::<Ipv4Addr>().unwrap());
        let running = node.job(job, handle).start().await.unwrap();
        self.wait_until(&["shard", "list", &name], |shards| {
            shards
                .as_array()
                .is_some_and(|shards| shards.iter().all(|shard| shard["status"] != "SHARDING_FLAG"))
        });
        running
    }

    /// Runs a command until its JSON fulfils the condition.
    pub(crate) fn wait_until(
        &self,
        arguments: &[&str],
        condition: impl Fn(&Value) -> bool,
    ) -> Value {
        let deadline = SystemClock.monotonic() + PATIENCE;
        loop {
            let data = self.data(arguments);
            if condition(&data) {
                return data;
            }
            assert!(SystemClock.monotonic() < deadline, "{arguments:?} still returns {data:#}");
        }
    }
}

/// `fail=1` fails shard 1; `hang` runs until it is cancelled.
async fn handle(shard: Shard) -> Result<(), String> {
    if shard.job_parameter == format!("fail={}", shard.item) {
        return Err("as requested".to_owned());
    }
    if shard.job_parameter == "hang" {
        shard.cancel().cancelled().await;
    }
    Ok(())
}

/// A job that runs only when it is triggered.
pub(crate) fn settle() -> Job {
    let job = Job::named("settle").unwrap().shards(3).description("settles orders");
    job.items("0=Beijing,1=Shanghai,2=Guangzhou").unwrap()
}

/// Waits until the condition holds.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let deadline = SystemClock.monotonic() + PATIENCE;
    while !condition() {
        assert!(SystemClock.monotonic() < deadline, "the condition was never met");
        std::thread::yield_now();
    }
}
