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

use elasticjob::{
    history::{HistoryUrl, Store},
    registry,
    runtime::Tasks,
};
use tinykeeper::server::{Config, Server, ServerError};

pub(crate) use self::member::Member;
use self::{children::Children, commentary::Commentary};
use crate::{
    api::{Adding, Console, First, Listening, Proxies},
    error::{Code, Error},
    output::say,
    worker::{Stop, Worker},
};

/// Short enough that a take-over can be watched.
const DEMO_SESSION: Duration = Duration::from_secs(3);

/// Where the console usually is.
const CONSOLE: u16 = 8899;
/// Nobody wants to log in again all day on a machine of their own.
const SESSION: Duration = Duration::from_hours(12);

/// How long changes that are under way may take when it is to stop.
const CHANGES: Duration = Duration::from_secs(3);

/// A registry on this machine, and what is to be seen there.
pub(crate) struct Dev {
    /// Where the registry listens.
    pub(crate) listen: SocketAddr,
    /// Where it keeps what must survive a restart.
    pub(crate) data: Option<PathBuf>,
    /// With workers and jobs to watch.
    pub(crate) demo: bool,
    /// Where the console listens; without, where it usually does, or on a free port if that is taken.
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
        let kept = self.data.as_ref().map(|folder| folder.join("console"));
        let mut server = start(self.listen, self.data).await?;
        let url = url(server.address(), self.demo);
        say(&format!("registry  {url}  ({place})"));
        if let Some((shown, _)) = &self.history {
            say(&format!("history   {shown}"));
        }

        let registry = registry::connect(&url.parse()?).await?;
        let mut tasks = Tasks::new();
        let history = self.history.as_ref().map(|(_, url)| url.as_str());
        let console = listen(self.console, &url, history, kept).await?;
        say(&format!("console   {}  (root / root: for this machine alone)", console.url()));
        let errands = console.errands.clone();
        tasks.spawn(console.serve());
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
            ended = server.ended() => ended.map_err(|error| refused(&error)),
        };
        say("stopping");
        // Those who leave are not dead: nothing is left to be told.
        drop(tasks);
        errands.finish(CHANGES).await;
        if let Some(children) = children {
            children.stop().await;
        }
        registry.close().await;
        server.shutdown().await.map_err(|error| refused(&error))?;
        ended
    }
}

/// The console, of this registry alone.
async fn listen(
    given: Option<SocketAddr>,
    url: &str,
    history: Option<&str>,
    data: Option<PathBuf>,
) -> Result<Listening, Error> {
    let named = |url: &str| ("dev".to_owned(), url.to_owned());
    if let Some(url) = history.and_then(|url| url.parse::<HistoryUrl>().ok())
        && url.file().is_some()
    {
        // Until somebody writes it, it is an empty book and not a missing one.
        match Store::open(&url).await {
            Ok(store) => store.close().await,
            Err(error) => tracing::warn!(%error, "history cannot be looked at"),
        }
    }
    let at = |listen| Console {
        registries: vec![named(url)],
        histories: history.map(named).into_iter().collect(),
        listen,
        data: data.clone(),
        hosts: Vec::new(),
        proxies: Proxies::default(),
        is_secure: false,
        identity: None,
        idle: SESSION,
        adding: Adding::default(),
        adding_histories: Adding::default(),
        oidc: None,
        first: First::Root,
    };
    let usual = SocketAddr::from((Ipv4Addr::LOCALHOST, CONSOLE));
    match at(given.unwrap_or(usual)).listen().await {
        Err(_) if given.is_none() => at((Ipv4Addr::LOCALHOST, 0).into()).listen().await,
        listening => listening,
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
        ServerError::Broken(_) => Error::of(Code::Internal, error),
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
