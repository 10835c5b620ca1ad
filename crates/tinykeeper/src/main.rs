//! `tinykeeper`: a ZooKeeper server in one process.

use std::{
    io::IsTerminal, net::SocketAddr, ops::RangeBounds, path::PathBuf, process::ExitCode,
    time::Duration,
};

use clap::{Parser, builder::RangedU64ValueParser};
use rustix::process::{Resource, getrlimit, setrlimit};
use tinykeeper::server::{Config, FourLetterWords, Server, ServerError};
use tokio::signal::unix::{SignalKind, signal};

/// A ZooKeeper server in one process, for development, tests and small installations.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Listen address; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:2181")]
    listen: SocketAddr,
    /// Data directory; without it everything is in memory
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Reply before a change is on disk: faster, but a power loss loses the last changes
    #[arg(long, requires = "data")]
    no_fsync: bool,
    /// Shortest session timeout granted, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..))]
    min_session_timeout: u32,
    /// Longest session timeout granted, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 40_000, value_parser = clap::value_parser!(u32).range(1..))]
    max_session_timeout: u32,
    /// Largest request accepted, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().max_frame, value_parser = number(4096..=i32::MAX as u64))]
    max_frame: usize,
    /// Maximum number of connections
    #[arg(long, value_name = "N", default_value_t = Config::default().max_connections, value_parser = number(1..))]
    max_connections: usize,
    /// Maximum number of connections of one IPv4 address or one IPv6 network of 64 bits
    #[arg(long, value_name = "N", default_value_t = Config::default().max_connections_per_address, value_parser = number(1..))]
    max_connections_per_address: usize,
    /// Maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = Config::default().max_sessions, value_parser = number(1..))]
    max_sessions: usize,
    /// Maximum number of sessions opened from one IPv4 address or one IPv6 network of 64 bits
    #[arg(long, value_name = "N", default_value_t = Config::default().max_sessions_per_address, value_parser = number(1..))]
    max_sessions_per_address: usize,
    /// Maximum memory of all watches, in bytes; one connection may use an eighth of it
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().max_watch_bytes, value_parser = number(65_536..))]
    max_watch_bytes: usize,
    /// Four-letter words to execute, separated by commas; * for all, none for none. stat, cons, dump and conf tell everyone who
    /// reaches the port addresses of clients, session ids and the data directory
    #[arg(long, value_name = "LIST", default_value = "ruok,srvr,mntr,isro")]
    four_letter_words: FourLetterWords,
    /// Number of transactions between snapshots
    #[arg(long, value_name = "N", requires = "data", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    snapshot_every: u64,
}

fn number(bounds: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(bounds)
}

#[tokio::main]
async fn main() -> ExitCode {
    let options = Options::parse();
    raise_open_file_limit();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn".into()),
        )
        .init();
    match serve(options).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let hint = error.hint().map(|hint| format!("; hint: {hint}")).unwrap_or_default();
            eprintln!("tinykeeper: {}{hint}", with_causes(&error));
            ExitCode::FAILURE
        }
    }
}

async fn serve(options: Options) -> Result<(), ServerError> {
    let mut config = Config::default();
    config.listen = options.listen;
    config.data = options.data;
    config.fsync = !options.no_fsync;
    config.min_session_timeout = Duration::from_millis(options.min_session_timeout.into());
    config.max_session_timeout =
        Duration::from_millis(options.max_session_timeout.max(options.min_session_timeout).into());
    config.max_frame = options.max_frame;
    config.max_connections = options.max_connections;
    config.max_connections_per_address = options.max_connections_per_address;
    config.max_sessions = options.max_sessions;
    config.max_sessions_per_address = options.max_sessions_per_address;
    config.max_watch_bytes = options.max_watch_bytes;
    config.four_letter_words = options.four_letter_words;
    config.snapshot_every = options.snapshot_every;
    let storage =
        config.data.as_ref().map_or("in memory".into(), |dir| format!("in {}", dir.display()));

    let mut interrupted = signal(SignalKind::interrupt()).map_err(ServerError::Internal)?;
    let mut terminated = signal(SignalKind::terminate()).map_err(ServerError::Internal)?;
    let mut server = Server::start(config).await?;
    print_ready(&format!("tinykeeper is ready on {}, {storage}", server.address()));
    tokio::select! {
        result = server.wait() => result,
        _ = interrupted.recv() => server.shutdown().await,
        _ = terminated.recv() => server.shutdown().await,
    }
}

/// Raises the soft limit for open files to the hard limit. Every connection is an open file, and the usual soft limit is low.
fn raise_open_file_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If this fails, connections over the limit are refused later, with a log message.
    let _ = setrlimit(Resource::Nofile, limit);
}

#[expect(clippy::print_stdout, reason = "scripts wait for this line")]
fn print_ready(line: &str) {
    println!("{line}");
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.contains(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}
