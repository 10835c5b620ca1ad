//! Many sessions that come, each create an ephemeral node, and go.

use std::net::SocketAddr;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tinykeeper::{
    client::{Client, Config},
    wire::{Acl, CreateMode},
};

use super::{
    pipeline::{DATA, check_children, paths},
    row::{config, connect},
};
use crate::{BoxError, stopwatch::Stopwatch};

pub(super) const SESSIONS: usize = 1_000;
/// How many are opened or closed at a time: fewer than the 50 connections that ZooKeeper lets wait to be accepted. Beyond that
/// the kernel drops what comes and tries again a second later, which would be all we measure.
const AT_ONCE: usize = 32;

pub(super) async fn with_ephemerals(server: SocketAddr, place: &str) -> Result<f64, BoxError> {
    let observer = connect(server).await?;
    let paths = paths(&observer, place, SESSIONS).await?;

    let stopwatch = Stopwatch::start();
    let clients = open(config(server), paths, |client, path| async move {
        let data = Bytes::from_static(&DATA);
        client.create(&path, data, CreateMode::Ephemeral, Acl::open()).await?;
        Ok(client)
    })
    .await?;
    check_children(&observer, place, SESSIONS).await?;
    close(clients).await;
    check_children(&observer, place, 0).await?;
    let rate = stopwatch.rate(SESSIONS);

    observer.close().await;
    Ok(rate)
}

/// Opens a session for each of `items` and does something in it.
pub(super) async fn open<I, T, F>(
    config: Config,
    items: Vec<I>,
    then: impl Fn(Client, I) -> F,
) -> Result<Vec<T>, BoxError>
where
    F: Future<Output = Result<T, BoxError>>,
{
    let openings = items.into_iter().map(|item| {
        let (connecting, then) = (Client::connect(config.clone()), &then);
        async move { then(connecting.await?, item).await }
    });
    stream::iter(openings).buffer_unordered(AT_ONCE).try_collect().await
}

pub(super) async fn close(clients: Vec<Client>) {
    let closings = clients.into_iter().map(|client| async move { client.close().await });
    stream::iter(closings).buffer_unordered(AT_ONCE).collect::<()>().await;
}
