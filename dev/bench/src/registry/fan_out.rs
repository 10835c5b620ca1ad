//! A change that many sessions watch: each is told of it.

use std::{net::SocketAddr, time::Duration};

use tinykeeper::wire::{Acl, AddWatchMode, CreateMode};
use tokio::{sync::mpsc, time::timeout};

use super::{
    row::{Sample, config, connect},
    sessions::{SESSIONS, close, open},
};
use crate::{BoxError, statistics::median, stopwatch::Stopwatch};

/// How many changes, each made when everybody was told of the one before.
const CHANGES: usize = 30;
/// How long everybody may take to be told of one.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn to_watchers(server: SocketAddr, place: &str) -> Result<Sample, BoxError> {
    let writer = connect(server).await?;
    writer.create(place, "", CreateMode::Persistent, Acl::open()).await?;
    let (notify, mut notifications) = mpsc::unbounded_channel();
    let mut config = config(server);
    // All sessions tell one place, so that little of what is measured is counting.
    config.notifications = Some(notify);
    let watching = open(config, vec![place.to_owned(); SESSIONS], |client, place| async move {
        let watch = client.watch(&place, AddWatchMode::Persistent).await?;
        Ok((client, watch))
    })
    .await?;

    let stopwatch = Stopwatch::start();
    let mut told_within = Vec::with_capacity(CHANGES);
    let mut told = Vec::with_capacity(SESSIONS);
    for _ in 0..CHANGES {
        let change = Stopwatch::start();
        writer.set(place, "changed", -1).await?;
        while told.len() < SESSIONS {
            let wanted = SESSIONS - told.len();
            let more = timeout(PATIENCE, notifications.recv_many(&mut told, wanted)).await;
            more.map_err(|_| format!("{} of {SESSIONS} watchers were told", told.len()))?;
        }
        told_within.push(change.elapsed());
        told.clear();
    }
    let per_second = stopwatch.rate(SESSIONS * CHANGES);

    let (clients, watches): (Vec<_>, Vec<_>) = watching.into_iter().unzip();
    close(clients).await;
    drop(watches);
    writer.close().await;
    let typical = median(told_within.iter().map(Duration::as_secs_f64));
    Ok(Sample { per_second, told_within: Some(Duration::from_secs_f64(typical)) })
}
