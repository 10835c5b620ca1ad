//! `elasticjob dev`: a registry in this process, a commentary on what happens there and, with `--demo`, workers to watch.
//!
//! ```text
//!   dev ── registry (tinykeeper) ◀── watches ── commentary ──▶ standard error
//!    │         ▲
//!    │         └── instances: with --demo three child processes, and any other worker
//!    └── worker of -f, endpoint of the HTTP job
//! ```
//!
//! The commentary knows only the content of the registry, so it covers every instance alike. The children are processes so that they can be
//! killed; they are not restarted, but the command line to restart one is printed. They end with this process, however it ends.

mod children;
mod commentary;
#[cfg(feature = "console")]
mod console;
mod demo_endpoint;
mod demo_jobs;
mod demo_worker;
mod print;
mod state_tracker;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use elasticjob::{job::ShardLimit, registry, runtime::Tasks};
use tinykeeper::server::{Config, Server, ServerError};

pub(crate) use self::demo_worker::DemoWorker;
use self::{children::Children, commentary::Commentary};
use crate::{
    error::{Code, Error},
    output::print_message,
    stop_signals::StopSignals,
    worker::Worker,
};
use elasticjob::problem::Problem;

/// Session timeout of the demo, short enough that a failover can be watched.
const DEMO_SESSION: Duration = Duration::from_secs(3);

pub(crate) struct Dev {
    /// Address of the registry.
    pub(crate) listen: SocketAddr,
    /// Data folder of the registry; in memory if `None`.
    pub(crate) data: Option<PathBuf>,
    /// Start demo workers.
    pub(crate) demo: bool,
    /// Address of the console; if `None` its default address, or a free port if that is taken.
    #[cfg(feature = "console")]
    pub(crate) console: Option<SocketAddr>,
    /// Worker of `-f` in this process. Its registry URL is set once the registry has started.
    pub(crate) worker: Option<Worker>,
    /// How many shards a job may have.
    pub(crate) max_shards: ShardLimit,
    /// History URL, without and with its password.
    pub(crate) history: Option<(String, String)>,
    /// Retention of the history, as environment variables.
    pub(crate) retention: Vec<(&'static str, String)>,
}

impl Dev {
    /// Runs until SIGINT or SIGTERM.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let mut stop = StopSignals::new()?;
        let storage = self
            .data
            .as_ref()
            .map_or("in memory".to_owned(), |folder| format!("data in {}", folder.display()));
        #[cfg(feature = "console")]
        let console_data = self.data.as_ref().map(|folder| folder.join("console"));
        let mut server = start(self.listen, self.data).await?;
        let url = url(server.address(), self.demo);
        print_message(&format!("registry  {url}  ({storage})"));
        if let Some((display_url, _)) = &self.history {
            print_message(&format!("history   {display_url}"));
        }

        let registry = registry::connect(&url.parse()?).await?;
        let mut tasks = Tasks::new();
        #[cfg(feature = "console")]
        let changes = {
            let history = self.history.as_ref().map(|(_, url)| url.as_str());
            let max_shards = self.max_shards;
            console::start(self.console, &url, history, console_data, max_shards, &mut tasks)
                .await?
        };
        Commentary::new(registry.clone(), self.max_shards).start(&mut tasks).await?;
        let children = if self.demo {
            let endpoint = demo_endpoint::serve(&mut tasks).await?;
            print_message(&format!("endpoint  {endpoint}  (called by the job ping)"));
            let children =
                Children::start(&url, &endpoint, self.history.as_ref(), &self.retention)?;
            print_message(
                "Kill one of the workers (kill -9 PID) and watch; ctrl-C stops everything.",
            );
            Some(children)
        } else {
            print_message(
                "Start a worker there: elasticjob run -f FILE; ctrl-C stops the registry.",
            );
            None
        };

        let worker = self.worker.map(|worker| Worker { registry: url, ..worker });
        let work = async {
            if let Some(worker) = worker {
                // The worker receives the same signals and returns after draining.
                return worker.run().await;
            }
            stop.next().await;
            Ok(())
        };
        let ended = tokio::select! {
            ended = work => ended,
            ended = server.wait() => ended.map_err(|error| refused(&error)),
        };
        print_message("stopping");
        // Stop the commentary first: instances that leave now are not worth a line.
        drop(tasks);
        #[cfg(feature = "console")]
        changes.finish(console::CHANGES).await;
        if let Some(children) = children {
            children.stop().await;
        }
        registry.close().await;
        server.shutdown().await.map_err(|error| refused(&error))?;
        ended
    }
}

async fn start(listen: SocketAddr, data: Option<PathBuf>) -> Result<Server, Error> {
    let mut config = Config::default();
    config.listen = listen;
    config.data = data;
    config.min_session_timeout = Duration::from_secs(1);
    Server::start(config).await.map_err(|error| refused(&error))
}

/// Registry URL for instances.
fn url(address: SocketAddr, demo: bool) -> String {
    let host = match address.ip() {
        any if any.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        host => host,
    };
    let address = SocketAddr::new(host, address.port());
    let session =
        if demo { format!("?sessionTimeout={}s", DEMO_SESSION.as_secs()) } else { String::new() };
    format!("zookeeper://{address}/elasticjob{session}")
}

fn refused(error: &ServerError) -> Error {
    let problem = Problem { hint: error.hint(), ..Problem::of_foreign(error) };
    match error {
        ServerError::Listen { .. } => Error::bad_input(problem)
            .with_hint("--registry-listen takes another address, or port 0 for a free one"),
        ServerError::Internal(_) => Error::new(Code::Internal, problem),
        _ => Error::bad_input(problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_address_becomes_loopback_in_the_url() {
        assert_eq!(
            url("0.0.0.0:2182".parse().unwrap(), true),
            "zookeeper://127.0.0.1:2182/elasticjob?sessionTimeout=3s"
        );
    }
}
