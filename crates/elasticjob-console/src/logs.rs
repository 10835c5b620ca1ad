//! Logs: on standard error, for people or for programs.

use std::io::{self, IsTerminal};

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// In which form logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// One JSON object in each line
    Json,
}

/// Logs from here on; what is logged is `RUST_LOG`'s word, else everything from `level`.
pub(crate) fn start(format: LogFormat, no_color: bool, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| level.into());
    let logs = tracing_subscriber::fmt().with_writer(io::stderr).with_env_filter(filter);
    match format {
        LogFormat::Text => {
            let plain = no_color || std::env::var_os("NO_COLOR").is_some_and(|set| !set.is_empty());
            logs.with_ansi(!plain && io::stderr().is_terminal()).init();
        }
        LogFormat::Json => logs.json().flatten_event(true).init(),
    }
}
