//! The workloads, independent of the server.

use std::{fmt, net::SocketAddr, time::Duration};

use tinykeeper::client::{Client, Config};

use super::{fan_out, pipeline, sessions};
use crate::BoxError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    Creates,
    Sets,
    Reads,
    Sessions,
    FanOut,
}

/// The result of one run of a workload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) per_second: f64,
    /// Time from a write to the notification of the last watcher, if there are watchers.
    pub(super) notified_within: Option<Duration>,
}

impl Workload {
    /// Runs below the node `parent`, which does not exist yet.
    pub(super) async fn run(self, server: SocketAddr, parent: &str) -> Result<Sample, BoxError> {
        match self {
            Workload::Creates => pipeline::creates(server, parent).await.map(Sample::rate),
            Workload::Sets => pipeline::sets(server, parent).await.map(Sample::rate),
            Workload::Reads => pipeline::reads(server, parent).await.map(Sample::rate),
            Workload::Sessions => sessions::with_ephemerals(server, parent).await.map(Sample::rate),
            Workload::FanOut => fan_out::to_watchers(server, parent).await,
        }
    }
}

impl Sample {
    fn rate(per_second: f64) -> Self {
        Self { per_second, notified_within: None }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Workload::Creates => "pipelined creates",
            Workload::Sets => "pipelined sets",
            Workload::Reads => "pipelined reads",
            Workload::Sessions => "sessions with ephemerals",
            Workload::FanOut => "notifications by fan-out",
        })
    }
}

/// Our client with default settings.
pub(super) async fn connect(server: SocketAddr) -> Result<Client, BoxError> {
    Ok(Client::connect(config(server)).await?)
}

pub(super) fn config(server: SocketAddr) -> Config {
    let mut config = Config::new([server.to_string()]);
    config.session_timeout = Duration::from_secs(30);
    config
}
