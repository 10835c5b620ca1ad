//! A cluster of worker processes, each with its own proxied connection to every server.

use std::{
    error::Error, io, net::SocketAddr, path::PathBuf, process::ExitStatus, sync::Arc,
    time::Duration,
};

use elasticjob::registry::{Registry, ZooKeeperSettings, zookeeper::ZooKeeper};
use testbed::Proxy;

use crate::{event_log::EventLog, process::Process, step_job::StepJob, worker::WorkerConfig};

#[derive(Debug, Clone)]
pub struct ClusterConfig {
    /// The executable of the workers.
    pub program: PathBuf,
    /// The folder of the workers' logs.
    pub logs: PathBuf,
    /// The ZooKeeper servers.
    pub servers: Vec<SocketAddr>,
    pub namespace: String,
    /// The session timeout.
    pub session: Duration,
    /// URL of the database that the jobs write to, if they do.
    pub database: Option<String>,
    pub jobs: Vec<StepJob>,
    /// Whether all workers register with the same address.
    pub on_one_host: bool,
}

/// Workers that can be killed, frozen and disconnected. Dropping the cluster kills them.
pub struct Cluster {
    config: ClusterConfig,
    events: EventLog,
    workers: Vec<Worker>,
}

/// One worker. Its proxies survive a restart of its process.
struct Worker {
    proxies: Vec<Proxy>,
    process: Option<Process>,
}

impl Cluster {
    /// Creates the log folder; the cluster has no workers yet.
    pub fn new(config: ClusterConfig) -> io::Result<Self> {
        std::fs::create_dir_all(&config.logs)?;
        Ok(Self { config, events: EventLog::default(), workers: Vec::new() })
    }

    /// The events of all workers.
    pub fn events(&self) -> &EventLog {
        &self.events
    }

    pub fn config(&self) -> &ClusterConfig {
        &self.config
    }

    /// The number of workers, including stopped ones.
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Starts another worker and returns its number.
    pub async fn start(&mut self) -> io::Result<usize> {
        let mut proxies = Vec::new();
        for server in &self.config.servers {
            proxies.push(Proxy::start(*server).await);
        }
        self.workers.push(Worker { proxies, process: None });
        self.restart(self.workers.len() - 1)?;
        Ok(self.workers.len() - 1)
    }

    /// Starts a stopped or killed worker again.
    pub fn restart(&mut self, worker: usize) -> io::Result<()> {
        let ClusterConfig {
            program, logs, namespace, session, database, jobs, on_one_host, ..
        } = &self.config;
        let proxies = &self.workers[worker].proxies;
        let servers: Vec<String> =
            proxies.iter().map(|proxy| proxy.address().to_string()).collect();
        let config = WorkerConfig {
            registry: format!(
                "zookeeper://{}/{namespace}?sessionTimeout={}ms&connectionTimeout=1s&baseSleepTime=50ms&maxSleepTime=300ms",
                servers.join(","),
                session.as_millis()
            ),
            database: database.clone(),
            address: format!("10.0.0.{}", if *on_one_host { 1 } else { worker + 1 }),
            jobs: jobs.clone(),
        };
        let log = logs.join(format!("worker-{worker}.log"));
        let process = Process::start(program, &config, worker, &self.events, &log)?;
        self.workers[worker].process = Some(process);
        Ok(())
    }

    /// Kills a worker. Returns `false` if it was not running.
    pub async fn kill(&mut self, worker: usize) -> io::Result<bool> {
        match self.workers[worker].process.take() {
            Some(process) => process.kill().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Stops a worker gracefully.
    pub async fn stop(&mut self, worker: usize) -> io::Result<ExitStatus> {
        let process = self.workers[worker].process.take().ok_or(io::ErrorKind::NotFound)?;
        process.stop().await
    }

    /// The process of a worker, if it runs.
    pub fn process(&mut self, worker: usize) -> Option<&mut Process> {
        self.workers[worker].process.as_mut()
    }

    /// The proxies of a worker, one for each server.
    pub fn proxies(&self, worker: usize) -> &[Proxy] {
        &self.workers[worker].proxies
    }

    /// A direct connection to the registry, with its own session.
    pub async fn observer(&self) -> Result<Arc<dyn Registry>, Box<dyn Error>> {
        let servers = self.config.servers.iter().map(|server| (*server).into());
        let settings = ZooKeeperSettings::new(servers, self.config.namespace.parse()?)
            .session_timeout(Duration::from_secs(10));
        Ok(Arc::new(ZooKeeper::connect(&settings).await?))
    }
}
