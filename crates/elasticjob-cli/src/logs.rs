//! Logs on standard error, as text or JSON.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::{
    EnvFilter, Layer, filter::LevelFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable lines
    Text,
    /// One JSON object per line
    Json,
}

/// Starts logging, filtered by `RUST_LOG` or else from `level` up. Logs of job code also go to the history.
pub(crate) fn start(format: LogFormat, no_color: bool, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    let logs = fmt::layer().with_writer(io::stderr);
    let logs = match format {
        LogFormat::Text => {
            let plain = no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
            logs.with_ansi(!plain && io::stderr().is_terminal()).boxed()
        }
        LogFormat::Json => logs.json().flatten_event(true).boxed(),
    };
    let history = elasticjob::history::layer().with_filter(LevelFilter::INFO);
    tracing_subscriber::registry().with(logs.with_filter(filter)).with(history).init();
}
