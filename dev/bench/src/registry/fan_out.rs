//! Changes of a node that many sessions watch.

use std::{net::SocketAddr, time::Duration};

use tinykeeper::wire::{Acl, AddWatchMode, CreateMode};
use tokio::{sync::mpsc, time::timeout};

use super::{
    sessions::{SESSIONS, close, open},
    workload::{Sample, config, connect},
};
use crate::{BoxError, statistics::median, stopwatch::Stopwatch};

/// Number of changes; each is made when every session was notified of the one before.
const CHANGES: usize = 30;
/// How long it may take to notify all sessions of a change.
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn to_watchers(server: SocketAddr, parent: &str) -> Result<Sample, BoxError> {
    let writer = connect(server).await?;
    writer.create(parent, "", CreateMode::Persistent, Acl::open()).await?;
    let (notify, mut notifications) = mpsc::unbounded_channel();
    let mut config = config(server);
    // All sessions share one channel, so that counting takes little of the measured time.
    config.notifications = Some(notify);
    let watching = open(config, vec![parent.to_owned(); SESSIONS], |client, parent| async move {
        let watch = client.watch(&parent, AddWatchMode::Persistent).await?;
        Ok((client, watch))
    })
    .await?;

    let stopwatch = Stopwatch::start();
    let mut durations = Vec::with_capacity(CHANGES);
    let mut received = Vec::with_capacity(SESSIONS);
    for _ in 0..CHANGES {
        let change = Stopwatch::start();
        writer.set(parent, "changed", -1).await?;
        while received.len() < SESSIONS {
            let wanted = SESSIONS - received.len();
            let more = timeout(TIMEOUT, notifications.recv_many(&mut received, wanted)).await;
            more.map_err(|_| format!("{} of {SESSIONS} watchers were notified", received.len()))?;
        }
        durations.push(change.elapsed());
        received.clear();
    }
    let per_second = stopwatch.rate(SESSIONS * CHANGES);

    let (clients, watches): (Vec<_>, Vec<_>) = watching.into_iter().unzip();
    close(clients).await;
    drop(watches);
    writer.close().await;
    let typical = median(durations.iter().map(Duration::as_secs_f64));
    Ok(Sample { per_second, notified_within: Some(Duration::from_secs_f64(typical)) })
}
