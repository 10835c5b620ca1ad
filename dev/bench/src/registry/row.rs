//! The rows: what is measured, whoever serves it.

use std::{fmt, net::SocketAddr, time::Duration};

use tinykeeper::client::{Client, Config};

use super::{fan_out, pipeline, sessions};
use crate::BoxError;

/// One kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Row {
    Creates,
    Sets,
    Reads,
    Sessions,
    FanOut,
}

/// What one go at a row came to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) per_second: f64,
    /// From a write to the last watcher told, where there are watchers.
    pub(super) told_within: Option<Duration>,
}

impl Row {
    /// Does the work below a node of the name `place`, which is new.
    pub(super) async fn run(self, server: SocketAddr, place: &str) -> Result<Sample, BoxError> {
        match self {
            Row::Creates => pipeline::creates(server, place).await.map(Sample::rate),
            Row::Sets => pipeline::sets(server, place).await.map(Sample::rate),
            Row::Reads => pipeline::reads(server, place).await.map(Sample::rate),
            Row::Sessions => sessions::with_ephemerals(server, place).await.map(Sample::rate),
            Row::FanOut => fan_out::to_watchers(server, place).await,
        }
    }
}

impl Sample {
    fn rate(per_second: f64) -> Self {
        Self { per_second, told_within: None }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Row::Creates => "pipelined creates",
            Row::Sets => "pipelined sets",
            Row::Reads => "pipelined reads",
            Row::Sessions => "sessions with ephemerals",
            Row::FanOut => "notifications by fan-out",
        })
    }
}

/// Our client, as anybody would have it.
pub(super) async fn connect(server: SocketAddr) -> Result<Client, BoxError> {
    Ok(Client::connect(config(server)).await?)
}

pub(super) fn config(server: SocketAddr) -> Config {
    let mut config = Config::new([server.to_string()]);
    config.session_timeout = Duration::from_secs(30);
    config
}
