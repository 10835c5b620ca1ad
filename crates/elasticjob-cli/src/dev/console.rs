//! The console of `elasticjob dev`: only for its own registry, reachable only from this machine.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use elasticjob::{
    history::{HistoryUrl, Store},
    job::ShardLimit,
    runtime::Tasks,
};
use elasticjob_console::{
    AdditionPolicy, Console, ConsoleServer, DetachedChanges, FirstAccount, Limits, TrustedProxies,
};

use crate::{error::Error, file_limit, output::print_message};
use elasticjob::problem::Problem;

const DEFAULT_PORT: u16 = 8899;
/// Long enough for a day's work.
const SESSION_IDLE: Duration = Duration::from_hours(12);

/// How long a shutdown waits for running changes.
pub(super) const CHANGES: Duration = Duration::from_secs(3);

/// Serves the console until `tasks` end. Returns its running changes, which the shutdown should wait for.
pub(super) async fn start(
    given: Option<SocketAddr>,
    url: &str,
    history: Option<&str>,
    data_dir: Option<PathBuf>,
    max_shards: ShardLimit,
    tasks: &mut Tasks,
) -> Result<DetachedChanges, Error> {
    let console = listen(given, url, history, data_dir, max_shards).await?;
    print_message(&format!("console   {}  (root / root: for this machine alone)", console.url()));
    let changes = console.detached_changes.clone();
    tasks.spawn(console.serve());
    Ok(changes)
}

async fn listen(
    given: Option<SocketAddr>,
    url: &str,
    history: Option<&str>,
    data_dir: Option<PathBuf>,
    max_shards: ShardLimit,
) -> Result<ConsoleServer, Error> {
    let named = |url: &str| ("dev".to_owned(), url.to_owned());
    if let Some(url) = history.and_then(|url| url.parse::<HistoryUrl>().ok())
        && url.file().is_some()
    {
        // Creates the file, so that the history is empty and not missing until the first run is recorded.
        match Store::open(&url).await {
            Ok(store) => store.close().await,
            Err(error) => tracing::warn!(error = %Problem::of(&error), "cannot open history store"),
        }
    }
    let limits = Limits::default();
    let limits = limits.fit_into(file_limit::raise_to(limits.files()));
    let at = |listen| Console {
        registries: vec![named(url)],
        histories: history.map(named).into_iter().collect(),
        listen,
        data_dir: data_dir.clone(),
        hosts: Vec::new(),
        proxies: TrustedProxies::default(),
        is_https: false,
        tls: None,
        session_idle: SESSION_IDLE,
        limits,
        registry_additions: AdditionPolicy::default(),
        history_additions: AdditionPolicy::default(),
        oidc: None,
        first_account: FirstAccount::Root,
        max_shards,
    };
    let default_address = SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT));
    Ok(match at(given.unwrap_or(default_address)).listen().await {
        Err(_) if given.is_none() => at((Ipv4Addr::LOCALHOST, 0).into()).listen().await,
        server => server,
    }?)
}
