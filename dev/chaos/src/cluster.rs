//! Workers, each with lines of its own to every server.

use std::{
    error::Error, io, net::SocketAddr, path::PathBuf, process::ExitStatus, sync::Arc,
    time::Duration,
};

use elasticjob::registry::{Registry, ZooKeeperSettings, zookeeper::ZooKeeper};
use testbed::Proxy;

use crate::{heard::Heard, process::Process, task::Task, worker::Orders};

/// What a cluster is made of.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program its workers are.
    pub program: PathBuf,
    /// Where they log.
    pub logs: PathBuf,
    /// The servers they meet at.
    pub servers: Vec<SocketAddr>,
    /// In which namespace.
    pub namespace: String,
    /// How long their sessions last.
    pub session: Duration,
    /// Where their jobs write, if they do.
    pub database: Option<String>,
    /// Their jobs.
    pub tasks: Vec<Task>,
    /// Whether they all have one address.
    pub on_one_host: bool,
}

/// Workers that can be killed, frozen and cut off. They end when this is dropped.
pub struct Cluster {
    plan: Plan,
    heard: Heard,
    places: Vec<Place>,
}

/// One worker: its lines outlast its process.
struct Place {
    lines: Vec<Proxy>,
    process: Option<Process>,
}

impl Cluster {
    /// Nobody yet.
    pub fn new(plan: Plan) -> io::Result<Self> {
        std::fs::create_dir_all(&plan.logs)?;
        Ok(Self { plan, heard: Heard::default(), places: Vec::new() })
    }

    /// Everything any worker said.
    pub fn heard(&self) -> &Heard {
        &self.heard
    }

    /// What it is made of.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many workers there are or were.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there never was one.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// One more worker; its number.
    pub async fn start(&mut self) -> io::Result<usize> {
        let mut lines = Vec::new();
        for server in &self.plan.servers {
            lines.push(Proxy::start(*server).await);
        }
        self.places.push(Place { lines, process: None });
        self.restart(self.places.len() - 1)?;
        Ok(self.places.len() - 1)
    }

    /// Starts a worker that has ended again.
    pub fn restart(&mut self, worker: usize) -> io::Result<()> {
        let Plan { program, logs, namespace, session, database, tasks, on_one_host, .. } =
            &self.plan;
        let lines = &self.places[worker].lines;
        let servers: Vec<String> = lines.iter().map(|line| line.address().to_string()).collect();
        let orders = Orders {
            registry: format!(
                "zookeeper://{}/{namespace}?sessionTimeout={}ms&connectionTimeout=1s&baseSleepTime=50ms&maxSleepTime=300ms",
                servers.join(","),
                session.as_millis()
            ),
            database: database.clone(),
            address: format!("10.0.0.{}", if *on_one_host { 1 } else { worker + 1 }),
            tasks: tasks.clone(),
        };
        let log = logs.join(format!("worker-{worker}.log"));
        let process = Process::start(program, &orders, worker, &self.heard, &log)?;
        self.places[worker].process = Some(process);
        Ok(())
    }

    /// Kills a worker; `false` if there was nobody to kill.
    pub async fn kill(&mut self, worker: usize) -> io::Result<bool> {
        match self.places[worker].process.take() {
            Some(process) => process.kill().await.map(|()| true),
            None => Ok(false),
        }
    }

    /// Asks a worker to stop.
    pub async fn stop(&mut self, worker: usize) -> io::Result<ExitStatus> {
        let process = self.places[worker].process.take().ok_or(io::ErrorKind::NotFound)?;
        process.stop().await
    }

    /// The process of a worker.
    pub fn process(&mut self, worker: usize) -> Option<&mut Process> {
        self.places[worker].process.as_mut()
    }

    /// The lines of a worker, one to each server.
    pub fn lines(&self, worker: usize) -> &[Proxy] {
        &self.places[worker].lines
    }

    /// Somebody who looks on, on a line of its own.
    pub async fn observer(&self) -> Result<Arc<dyn Registry>, Box<dyn Error>> {
        let servers = self.plan.servers.iter().map(|server| (*server).into());
        let settings = ZooKeeperSettings::new(servers, self.plan.namespace.parse()?)
            .session_timeout(Duration::from_secs(10));
        Ok(Arc::new(ZooKeeper::connect(&settings).await?))
    }
}
