//! Many sessions that open, create an ephemeral node each, and close.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tinykeeper::{
    client::{Client, Config},
    wire::{Acl, CreateMode},
};

use super::{
    pipeline::{DATA, check_children, paths},
    workload::{config, connect},
};
use crate::{BoxError, stopwatch::Stopwatch};

pub(super) const SESSIONS: usize = 1_000;
/// How many sessions are opened or closed concurrently: fewer than the 50 connections of ZooKeeper's accept queue. Beyond that the kernel drops
/// connection attempts and retries a second later, which would dominate the measurement.
const CONCURRENCY: usize = 32;

pub(super) async fn with_ephemerals(server: SocketAddr, parent: &str) -> Result<f64, BoxError> {
    let observer = connect(server).await?;
    let paths = paths(&observer, parent, SESSIONS).await?;

    let stopwatch = Stopwatch::start();
    let clients = open(config(server), paths, |client, path| async move {
        let data = Bytes::from_static(&DATA);
        client.create(&path, data, CreateMode::Ephemeral, Acl::open()).await?;
        Ok(client)
    })
    .await?;
    check_children(&observer, parent, SESSIONS).await?;
    close(clients).await;
    check_children(&observer, parent, 0).await?;
    let rate = stopwatch.rate(SESSIONS);

    observer.close().await;
    Ok(rate)
}

/// Opens a session for each of `items` and calls `then` with it.
pub(super) async fn open<I, T, F>(
    config: Config,
    items: Vec<I>,
    then: impl Fn(Client, I) -> F,
) -> Result<Vec<T>, BoxError>
where
    F: Future<Output = Result<T, BoxError>>,
{
    let opening = items.into_iter().map(|item| {
        let (connecting, then) = (Client::connect(config.clone()), &then);
        async move { then(connecting.await?, item).await }
    });
    stream::iter(opening).buffer_unordered(CONCURRENCY).try_collect().await
}

pub(super) async fn close(clients: Vec<Client>) {
    let closing = clients.into_iter().map(|client| async move { client.close().await });
    stream::iter(closing).buffer_unordered(CONCURRENCY).collect::<()>().await;
}
