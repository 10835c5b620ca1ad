//! The console of `elasticjob dev`: of its registry alone, for this machine alone.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use elasticjob::{
    history::{HistoryUrl, Store},
    runtime::Tasks,
};
use elasticjob_console::{Adding, Console, Errands, First, Listening, Proxies};

use crate::{error::Error, output::say};

/// Where the console usually is.
const CONSOLE: u16 = 8899;
/// Nobody wants to log in again all day on a machine of their own.
const SESSION: Duration = Duration::from_hours(12);

/// How long changes that are under way may take when it is to stop.
pub(super) const CHANGES: Duration = Duration::from_secs(3);

/// Serves the console until `tasks` end. The changes it has under way are for whoever stops it to wait for.
pub(super) async fn start(
    given: Option<SocketAddr>,
    url: &str,
    history: Option<&str>,
    data: Option<PathBuf>,
    tasks: &mut Tasks,
) -> Result<Errands, Error> {
    let console = listen(given, url, history, data).await?;
    say(&format!("console   {}  (root / root: for this machine alone)", console.url()));
    let changes = console.errands.clone();
    tasks.spawn(console.serve());
    Ok(changes)
}

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
    Ok(match at(given.unwrap_or(usual)).listen().await {
        Err(_) if given.is_none() => at((Ipv4Addr::LOCALHOST, 0).into()).listen().await,
        listening => listening,
    }?)
}
