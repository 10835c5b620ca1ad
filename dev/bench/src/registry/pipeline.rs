//! One session that asks without waiting for each answer.

use std::{collections::VecDeque, net::SocketAddr};

use bytes::Bytes;
use tinykeeper::{
    client::Client,
    wire::{Acl, Create, CreateMode, Op, Request, Response},
};

use super::row::connect;
use crate::{BoxError, stopwatch::Stopwatch};

/// How many requests one go has.
const REQUESTS: usize = 20_000;
/// How many are in flight at most.
const WINDOW: usize = 256;
/// How many nodes are written to and read from.
const NODES: usize = 1_000;
/// What a node holds.
pub(super) const DATA: [u8; 100] = [b'x'; 100];

pub(super) async fn creates(server: SocketAddr, place: &str) -> Result<f64, BoxError> {
    let client = connect(server).await?;
    let paths = paths(&client, place, REQUESTS).await?;

    let stopwatch = Stopwatch::start();
    windowed(&paths, WINDOW, |path| client.submit(create(path))).await?;
    let rate = stopwatch.rate(REQUESTS);

    check_children(&client, place, REQUESTS).await?;
    remove(&client, &paths).await?;
    client.close().await;
    Ok(rate)
}

pub(super) async fn sets(server: SocketAddr, place: &str) -> Result<f64, BoxError> {
    let client = connect(server).await?;
    let paths = filled(&client, place).await?;
    let asked: Vec<&String> = paths.iter().cycle().take(REQUESTS).collect();
    let data = Bytes::from_static(&DATA);
    let set = |path: &&String| {
        let (path, data) = (String::clone(path), Some(data.clone()));
        Request::Write(Op::SetData { path, data, version: -1 })
    };

    let stopwatch = Stopwatch::start();
    windowed(&asked, WINDOW, |path| client.submit(set(path))).await?;
    let rate = stopwatch.rate(REQUESTS);

    remove(&client, &paths).await?;
    client.close().await;
    Ok(rate)
}

/// What a server can write: sets a second, and transactions of eight sets a second, once it has compiled.
pub(crate) async fn write_limit(server: SocketAddr, place: &str) -> Result<(f64, f64), BoxError> {
    const EIGHT: usize = 8;
    sets(server, &format!("{place}-warm-up")).await?;
    let single = sets(server, &format!("{place}-sets")).await?;
    let client = connect(server).await?;
    let paths = filled(&client, &format!("{place}-transactions")).await?;
    let data = Bytes::from_static(&DATA);
    let set =
        |path: &String| Op::SetData { path: path.clone(), data: Some(data.clone()), version: -1 };
    let all: Vec<&[String]> = paths.chunks_exact(EIGHT).cycle().take(REQUESTS / EIGHT).collect();

    let stopwatch = Stopwatch::start();
    windowed(&all, WINDOW, |eight| client.submit(Request::Multi(eight.iter().map(set).collect())))
        .await?;
    let rate = stopwatch.rate(all.len());

    remove(&client, &paths).await?;
    client.close().await;
    Ok((single, rate))
}

pub(super) async fn reads(server: SocketAddr, place: &str) -> Result<f64, BoxError> {
    let client = connect(server).await?;
    let paths = filled(&client, place).await?;
    let asked: Vec<&String> = paths.iter().cycle().take(REQUESTS).collect();
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
    windowed(&asked, WINDOW, read).await?;
    let rate = stopwatch.rate(REQUESTS);

    remove(&client, &paths).await?;
    client.close().await;
    Ok(rate)
}

/// Begins something for each of `items`, at most `window` of them at a time, and waits for all.
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

/// Makes the node `place`, and names `count` children of it.
pub(super) async fn paths(
    client: &Client,
    place: &str,
    count: usize,
) -> Result<Vec<String>, BoxError> {
    client.create(place, "", CreateMode::Persistent, Acl::open()).await?;
    Ok((0..count).map(|index| format!("{place}/node-{index:06}")).collect())
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

/// Whoever is fast because he did not do it has lost.
pub(super) async fn check_children(
    client: &Client,
    place: &str,
    expected: usize,
) -> Result<(), BoxError> {
    let stat = client.exists(place).await?.ok_or_else(|| format!("{place} is gone"))?;
    if usize::try_from(stat.num_children) == Ok(expected) {
        Ok(())
    } else {
        Err(format!("{place} has {} children, not {expected}", stat.num_children).into())
    }
}

/// Removes what a go has created, a thousand at a time: a server that holds the nodes of all goes before is not the one of
/// the first go.
pub(super) async fn remove(client: &Client, paths: &[String]) -> Result<(), BoxError> {
    for some in paths.chunks(1_000) {
        let delete = |path: &String| Op::Delete { path: path.clone(), version: -1 };
        client.multi(some.iter().map(delete).collect()).await?;
    }
    Ok(())
}

async fn filled(client: &Client, place: &str) -> Result<Vec<String>, BoxError> {
    let paths = paths(client, place, NODES).await?;
    windowed(&paths, WINDOW, |path| client.submit(create(path))).await?;
    Ok(paths)
}
