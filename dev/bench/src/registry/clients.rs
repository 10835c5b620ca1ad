//! Our client against zookeeper-client, both against the same ZooKeeper.
//!
//! One session asks a ZooKeeper for about as much as it can do for one session, so the rates of two good clients differ by the
//! processor time they leave to the server. That time is measured too.

use std::time::Duration;

use zookeeper_client::{Acls, CreateMode};

use super::{
    contestant::Contestant,
    pipeline::{DATA, check_children, create, paths, remove, windowed},
    rounds::turn,
    row::connect,
};
use crate::{BoxError, stopwatch::Stopwatch};

/// How many requests one go has. Fewer than in a row, in more goes: how its threads come to lie on the processors makes the
/// same ZooKeeper faster or slower by half for a whole go.
const REQUESTS: usize = 10_000;
const GOES_IN_A_ROUND: u32 = 2;
/// How many requests in flight: one client may be best with few, another with many.
const WINDOWS: [usize; 3] = [64, 256, 1024];

/// Creates with so many in flight, in each round.
#[derive(Debug)]
pub(super) struct ClientRow {
    pub(super) window: usize,
    pub(super) theirs: Vec<Go>,
    pub(super) ours: Vec<Go>,
}

/// One go of one client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Go {
    pub(super) per_second: f64,
    /// Processor time for one create.
    pub(super) busy: Duration,
}

impl Go {
    fn end(stopwatch: Stopwatch) -> Self {
        let busy = stopwatch.busy() / u32::try_from(REQUESTS).unwrap_or(u32::MAX);
        Self { per_second: stopwatch.rate(REQUESTS), busy }
    }
}

/// After a first time for the JVM to compile in, `rounds` that count.
pub(super) async fn measure(server: &Contestant, rounds: u32) -> Result<Vec<ClientRow>, BoxError> {
    let mut samples = WINDOWS.map(|window| (window, [Vec::new(), Vec::new()]));
    for round in 0..=rounds * GOES_IN_A_ROUND {
        for (window, samples) in &mut samples {
            for index in turn(round, samples.len()) {
                let which = Which::ALL[index];
                let place = format!("/{which:?}-{window}-{round}");
                let go = which.creates(server, &place, *window).await;
                let go = go.map_err(|error| format!("creates by {which:?}: {error}"))?;
                if round > 0 {
                    samples[index].push(go);
                }
            }
        }
    }
    let rows = samples.map(|(window, [theirs, ours])| ClientRow { window, theirs, ours });
    Ok(rows.into())
}

#[derive(Debug, Clone, Copy)]
enum Which {
    Theirs,
    Ours,
}

impl Which {
    const ALL: [Self; 2] = [Self::Theirs, Self::Ours];

    async fn creates(
        self,
        server: &Contestant,
        place: &str,
        window: usize,
    ) -> Result<Go, BoxError> {
        let observer = connect(server.address()).await?;
        let paths = paths(&observer, place, REQUESTS).await?;
        let go = match self {
            Which::Ours => {
                let client = connect(server.address()).await?;
                let stopwatch = Stopwatch::start();
                windowed(&paths, window, |path| client.submit(create(path))).await?;
                let go = Go::end(stopwatch);
                client.close().await;
                go
            }
            Which::Theirs => {
                let server = server.address().to_string();
                let client = zookeeper_client::Client::connect(&server).await?;
                let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
                let items: Vec<&str> = paths.iter().map(String::as_str).collect();
                let stopwatch = Stopwatch::start();
                windowed(&items, window, |path| client.create(path, &DATA, &options)).await?;
                Go::end(stopwatch)
            }
        };
        check_children(&observer, place, REQUESTS).await?;
        remove(&observer, &paths).await?;
        observer.close().await;
        Ok(go)
    }
}
