//! One session that sends requests without waiting for each answer.

use std::{collections::VecDeque, net::SocketAddr};

use bytes::Bytes;
use tinykeeper::{
    client::Client,
    wire::{Acl, Create, CreateMode, Op, Request, Response},
};

use super::workload::connect;
use crate::{BoxError, stopwatch::Stopwatch};

/// Requests per measurement.
const REQUESTS: usize = 20_000;
/// Maximum number of requests in flight.
const WINDOW: usize = 256;
/// Number of nodes that are written and read.
const NODES: usize = 1_000;
/// The data of a node.
pub(super) const DATA: [u8; 100] = [b'x'; 100];

pub(super) async fn creates(server: SocketAddr, parent: &str) -> Result<f64, BoxError> {
    let client = connect(server).await?;
    let paths = paths(&client, parent, REQUESTS).await?;

    let stopwatch = Stopwatch::start();
    windowed(&paths, WINDOW, |path| client.submit(create(path))).await?;
    let rate = stopwatch.rate(REQUESTS);

    check_children(&client, parent, REQUESTS).await?;
    remove(&client, &paths).await?;
    client.close().await;
    Ok(rate)
}

pub(super) async fn sets(server: SocketAddr, parent: &str) -> Result<f64, BoxError> {
    let client = connect(server).await?;
    let paths = create_nodes(&client, parent).await?;
    let targets: Vec<&String> = paths.iter().cycle().take(REQUESTS).collect();
    let data = Bytes::from_static(&DATA);
    let set = |path: &&String| {
        let (path, data) = (String::clone(path), Some(data.clone()));
        Request::Write(Op::SetData { path, data, version: -1 })
    };

    let stopwatch = Stopwatch::start();
    windowed(&targets, WINDOW, |path| client.submit(set(path))).await?;
    let rate = stopwatch.rate(REQUESTS);

    remove(&client, &paths).await?;
    client.close().await;
    Ok(rate)
}

/// The write rate of a server after a warm-up: sets per second, and transactions of eight sets per second.
pub(crate) async fn write_limit(server: SocketAddr, parent: &str) -> Result<(f64, f64), BoxError> {
    const BATCH: usize = 8;
    sets(server, &format!("{parent}-warm-up")).await?;
    let single = sets(server, &format!("{parent}-sets")).await?;
    let client = connect(server).await?;
    let paths = create_nodes(&client, &format!("{parent}-transactions")).await?;
    let data = Bytes::from_static(&DATA);
    let set =
        |path: &String| Op::SetData { path: path.clone(), data: Some(data.clone()), version: -1 };
    let batches: Vec<&[String]> =
        paths.chunks_exact(BATCH).cycle().take(REQUESTS / BATCH).collect();

    let stopwatch = Stopwatch::start();
    windowed(&batches, WINDOW, |batch| {
        client.submit(Request::Multi(batch.iter().map(set).collect()))
    })
    .await?;
    let rate = stopwatch.rate(batches.len());

    remove(&client, &paths).await?;
    client.close().await;
    Ok((single, rate))
}

pub(super) async fn reads(server: SocketAddr, parent: &str) -> Result<f64, BoxError> {
    let client = connect(server).await?;
    let paths = create_nodes(&client, parent).await?;
    let targets: Vec<&String> = paths.iter().cycle().take(REQUESTS).collect();
    let read = |path: &&String| {
        let answer = client.submit(Request::GetData { path: String::clone(path), watch: false });
        async {
            match answer.await?.response {
                Response::Data { data: Some(data), .. } if data.len() == DATA.len() => Ok(()),
                other => Err(BoxError::from(format!("read {other:?}"))),
            }
        }
    };

    let stopwatch = Stopwatch::start();
    windowed(&targets, WINDOW, read).await?;
    let rate = stopwatch.rate(REQUESTS);

    remove(&client, &paths).await?;
    client.close().await;
    Ok(rate)
}

/// Calls `begin` for each of `items`, with at most `window` futures in flight, and waits for all of them.
pub(super) async fn windowed<I, F, T, E>(
    items: &[I],
    window: usize,
    mut begin: impl FnMut(&I) -> F,
) -> Result<(), E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut in_flight = VecDeque::with_capacity(window);
    for item in items {
        if in_flight.len() == window
            && let Some(oldest) = in_flight.pop_front()
        {
            oldest.await?;
        }
        in_flight.push_back(begin(item));
    }
    for rest in in_flight {
        rest.await?;
    }
    Ok(())
}

/// Creates the node `parent` and returns the paths of `count` children, which do not exist yet.
pub(super) async fn paths(
    client: &Client,
    parent: &str,
    count: usize,
) -> Result<Vec<String>, BoxError> {
    client.create(parent, "", CreateMode::Persistent, Acl::open()).await?;
    Ok((0..count).map(|index| format!("{parent}/node-{index:06}")).collect())
}

pub(super) fn create(path: &str) -> Request {
    Request::Write(Op::Create(Create {
        path: path.to_owned(),
        data: Some(Bytes::from_static(&DATA)),
        acl: Acl::open(),
        mode: CreateMode::Persistent,
        with_stat: true,
    }))
}

/// Fails if the server did not really do the work.
pub(super) async fn check_children(
    client: &Client,
    parent: &str,
    expected: usize,
) -> Result<(), BoxError> {
    let stat = client.exists(parent).await?.ok_or_else(|| format!("{parent} is gone"))?;
    if usize::try_from(stat.num_children) == Ok(expected) {
        Ok(())
    } else {
        Err(format!("{parent} has {} children, not {expected}", stat.num_children).into())
    }
}

/// Deletes the nodes of a measurement, a thousand at a time, so that every measurement finds the same number of nodes.
pub(super) async fn remove(client: &Client, paths: &[String]) -> Result<(), BoxError> {
    for chunk in paths.chunks(1_000) {
        let delete = |path: &String| Op::Delete { path: path.clone(), version: -1 };
        client.multi(chunk.iter().map(delete).collect()).await?;
    }
    Ok(())
}

async fn create_nodes(client: &Client, parent: &str) -> Result<Vec<String>, BoxError> {
    let paths = paths(client, parent, NODES).await?;
    windowed(&paths, WINDOW, |path| client.submit(create(path))).await?;
    Ok(paths)
}
