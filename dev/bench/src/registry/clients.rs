//! Our client against zookeeper-client, both against the same ZooKeeper.
//!
//! One session already sends ZooKeeper about as many requests as it can handle for one session, so the rates of two good clients differ by the
//! processor time that they leave to the server. That time is measured too.

use std::time::Duration;

use zookeeper_client::{Acls, CreateMode};

use super::{
    pipeline::{DATA, check_children, create, paths, remove, windowed},
    rounds::turn,
    server_under_test::ServerUnderTest,
    workload::connect,
};
use crate::{BoxError, stopwatch::Stopwatch};

/// Requests per measurement. Fewer than in a workload, but in more measurements: the same ZooKeeper can be faster or slower by half for a whole
/// measurement, depending on how its threads are placed on the processors.
const REQUESTS: usize = 10_000;
const MEASUREMENTS_PER_ROUND: u32 = 2;
/// Numbers of requests in flight: one client may be best with few, another with many.
const WINDOWS: [usize; 3] = [64, 256, 1024];

/// The measurements of all rounds with `window` requests in flight.
#[derive(Debug)]
pub(super) struct ClientRow {
    pub(super) window: usize,
    pub(super) theirs: Vec<Measurement>,
    pub(super) ours: Vec<Measurement>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Measurement {
    pub(super) per_second: f64,
    /// Processor time per create.
    pub(super) busy: Duration,
}

impl Measurement {
    fn end(stopwatch: Stopwatch) -> Self {
        let busy = stopwatch.busy() / u32::try_from(REQUESTS).unwrap_or(u32::MAX);
        Self { per_second: stopwatch.rate(REQUESTS), busy }
    }
}

/// Measures `rounds` rounds, after a first one for the JVM to compile.
pub(super) async fn measure(
    server: &ServerUnderTest,
    rounds: u32,
) -> Result<Vec<ClientRow>, BoxError> {
    let mut samples = WINDOWS.map(|window| (window, [Vec::new(), Vec::new()]));
    for round in 0..=rounds * MEASUREMENTS_PER_ROUND {
        for (window, samples) in &mut samples {
            for index in turn(round, samples.len()) {
                let client = ClientKind::ALL[index];
                let parent = format!("/{client:?}-{window}-{round}");
                let measurement = client.measure_creates(server, &parent, *window).await;
                let measurement =
                    measurement.map_err(|error| format!("creates by {client:?}: {error}"))?;
                if round > 0 {
                    samples[index].push(measurement);
                }
            }
        }
    }
    let rows = samples.map(|(window, [theirs, ours])| ClientRow { window, theirs, ours });
    Ok(rows.into())
}

#[derive(Debug, Clone, Copy)]
enum ClientKind {
    Theirs,
    Ours,
}

impl ClientKind {
    const ALL: [Self; 2] = [Self::Theirs, Self::Ours];

    async fn measure_creates(
        self,
        server: &ServerUnderTest,
        parent: &str,
        window: usize,
    ) -> Result<Measurement, BoxError> {
        let observer = connect(server.address()).await?;
        let paths = paths(&observer, parent, REQUESTS).await?;
        let measurement = match self {
            ClientKind::Ours => {
                let client = connect(server.address()).await?;
                let stopwatch = Stopwatch::start();
                windowed(&paths, window, |path| client.submit(create(path))).await?;
                let measurement = Measurement::end(stopwatch);
                client.close().await;
                measurement
            }
            ClientKind::Theirs => {
                let server = server.address().to_string();
                let client = zookeeper_client::Client::connect(&server).await?;
                let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
                let items: Vec<&str> = paths.iter().map(String::as_str).collect();
                let stopwatch = Stopwatch::start();
                windowed(&items, window, |path| client.create(path, &DATA, &options)).await?;
                Measurement::end(stopwatch)
            }
        };
        check_children(&observer, parent, REQUESTS).await?;
        remove(&observer, &paths).await?;
        observer.close().await;
        Ok(measurement)
    }
}
