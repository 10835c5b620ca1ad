//! `elasticjob dev`: a registry in one process, and what a person wants to see of it.
//!
//! ```text
//!   dev ── registry (tinykeeper) ◀── watches ── commentary ──▶ what is said
//!    │         ▲
//!    │         └── members: with --demo three child processes, and whoever else comes
//!    └── worker of -f, endpoint of the HTTP job
//! ```
//!
//! The commentary knows only what stands in the registry, so it tells of everybody alike. The children are processes so that they can be killed;
//! nobody starts them again, but it is said how. They end with this process, however it ends.

mod children;
mod commentary;
#[cfg(feature = "console")]
mod console;
mod endpoint;
mod jobs;
mod member;
mod story;
mod voice;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use elasticjob::{registry, runtime::Tasks};
use tinykeeper::server::{Config, Server, ServerError};

pub(crate) use self::member::Member;
use self::{children::Children, commentary::Commentary};
use crate::{
    error::{Code, Error},
    output::say,
    worker::{Stop, Worker},
};

/// Short enough that a take-over can be watched.
const DEMO_SESSION: Duration = Duration::from_secs(3);

/// A registry on this machine, and what is to be seen there.
pub(crate) struct Dev {
    /// Where the registry listens.
    pub(crate) listen: SocketAddr,
    /// Where it keeps what must survive a restart.
    pub(crate) data: Option<PathBuf>,
    /// With workers and jobs to watch.
    pub(crate) demo: bool,
    /// Where the console listens; without, where it usually does, or on a free port if that is taken.
    #[cfg(feature = "console")]
    pub(crate) console: Option<SocketAddr>,
    /// What this process runs itself; where the registry is it learns here.
    pub(crate) worker: Option<Worker>,
    /// Where history is kept, as it may be shown and as it is.
    pub(crate) history: Option<(String, String)>,
    /// How much of it, in the words of the environment.
    pub(crate) retention: Vec<(&'static str, String)>,
}

impl Dev {
    /// Runs until the process is asked to stop.
    pub(crate) async fn run(self) -> Result<(), Error> {
        let mut stop = Stop::new()?;
        let place = self
            .data
            .as_ref()
            .map_or("in memory".to_owned(), |folder| format!("kept in {}", folder.display()));
        #[cfg(feature = "console")]
        let kept = self.data.as_ref().map(|folder| folder.join("console"));
        let mut server = start(self.listen, self.data).await?;
        let url = url(server.address(), self.demo);
        say(&format!("registry  {url}  ({place})"));
        if let Some((shown, _)) = &self.history {
            say(&format!("history   {shown}"));
        }

        let registry = registry::connect(&url.parse()?).await?;
        let mut tasks = Tasks::new();
        #[cfg(feature = "console")]
        let changes = {
            let history = self.history.as_ref().map(|(_, url)| url.as_str());
            console::start(self.console, &url, history, kept, &mut tasks).await?
        };
        Commentary::new(registry.clone()).start(&mut tasks).await?;
        let children = if self.demo {
            let endpoint = endpoint::serve(&mut tasks).await?;
            say(&format!("endpoint  {endpoint}  (what the job ping asks)"));
            let children =
                Children::start(&url, &endpoint, self.history.as_ref(), &self.retention)?;
            say("Kill one of the workers (kill -9 PID) and watch; ctrl-C stops everything.");
            Some(children)
        } else {
            say("Start a worker there: elasticjob run -f FILE; ctrl-C stops the registry.");
            None
        };

        let worker = self.worker.map(|worker| Worker { registry: url, ..worker });
        let work = async {
            if let Some(worker) = worker {
                // It hears the same signals, and comes back when it has drained.
                return worker.run().await;
            }
            stop.asked().await;
            Ok(())
        };
        let ended = tokio::select! {
            ended = work => ended,
            ended = server.wait() => ended.map_err(|error| refused(&error)),
        };
        say("stopping");
        // Those who leave are not dead: nothing is left to be told.
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

/// Where members reach it.
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
    match error {
        ServerError::Listen { address, source } => Error::bad_input(format!(
            "cannot listen on {address}: {source}; hint: --registry-listen takes another address, or port 0 for a free one"
        )),
        ServerError::Internal(_) => Error::of(Code::Internal, error),
        _ => Error::of(Code::BadInput, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_that_listens_everywhere_is_reached_on_this_machine() {
        assert_eq!(
            url("0.0.0.0:2182".parse().unwrap(), true),
            "zookeeper://127.0.0.1:2182/elasticjob?sessionTimeout=3s"
        );
    }
}
