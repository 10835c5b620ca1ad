//! Measures the costs of one size.

use std::{process::Command, time::Duration};

use bytes::Bytes;
use elasticjob::{
    registry::{self, ExpectedVersion, RegistryUrl},
    runtime::{Clock, SystemClock},
};
use futures_util::future::try_join_all;
use testbed::ZooKeeper;
use tokio::time::sleep;

use super::model::Size;
use crate::{
    BoxError,
    node_process::{NEVER, NodePlan, NodeProcess},
    server_counters::ServerCounters,
};

/// Seconds between two fires.
const INTERVAL: u64 = 10;
/// Measured fires of every job.
const FIRES: u32 = 2;
/// How long nothing happens before something is counted: the last assignment has ended.
const SETTLE_TIME: Duration = Duration::from_secs(2);

pub(super) struct Measurement {
    pub(super) nodes: f64,
    pub(super) data_bytes: f64,
    pub(super) watches: f64,
    pub(super) heap_bytes: f64,
    pub(super) snapshot_bytes: f64,
    /// Of one process, in megabytes.
    pub(super) resident: f64,
    pub(super) first_join: ServerCounters,
    /// The average of all processes but the first.
    pub(super) further_join: ServerCounters,
    /// One fire of every job.
    pub(super) fire: ServerCounters,
}

pub(super) async fn take(size: Size) -> Result<Measurement, BoxError> {
    let server = ZooKeeper::builder().full_speed().start();
    forget_transactions(&server).await?;
    let empty_heap = live_heap(&server)?;
    let empty = ServerCounters::read(&server)?;
    let first = start(&server, size, "idle", NEVER, 1).await?;
    sleep(SETTLE_TIME).await;
    let first_joined = ServerCounters::read(&server)?;
    let first_join = first_joined.since(empty);
    let mut nodes = vec![first];
    for number in 2..=instances(size) {
        nodes.push(start(&server, size, "idle", NEVER, number).await?);
        sleep(SETTLE_TIME).await;
    }
    let joined = ServerCounters::read(&server)?;
    let further_join = share(joined.since(first_joined), size.instances - 1.0);
    let held = joined.since(empty);
    let resident = nodes[0].resident()?;
    forget_transactions(&server).await?;
    let heap_bytes = live_heap(&server)? - empty_heap;
    stop(nodes).await?;
    // A server writes a snapshot when it starts.
    server.restart();
    let snapshot_bytes = f64::from(u32::try_from(server.snapshot_bytes())?);
    let fire = fire(&server, size).await?;
    Ok(Measurement {
        nodes: held.nodes,
        data_bytes: held.data_bytes,
        watches: held.watches,
        heap_bytes,
        snapshot_bytes,
        resident,
        first_join,
        further_join,
        fire,
    })
}

/// What one fire of every job costs: counted between two fires, so that each has ended.
async fn fire(server: &ZooKeeper, size: Size) -> Result<ServerCounters, BoxError> {
    let mut nodes = Vec::new();
    let cron = format!("0/{INTERVAL} * * * * ?");
    for number in 1..=instances(size) {
        nodes.push(start(server, size, "firing", &cron, number).await?);
    }
    // The first fires may coincide with the last assignments.
    sleep(SETTLE_TIME).await;
    between_fires().await;
    sleep(Duration::from_secs(INTERVAL)).await;
    for node in &mut nodes {
        node.take_delays().await?;
    }
    let before = ServerCounters::read(server)?;
    sleep(Duration::from_secs(INTERVAL) * FIRES).await;
    let counters = ServerCounters::read(server)?.since(before);
    let mut ran = 0;
    for node in &mut nodes {
        ran += node.take_delays().await?.iter().map(|fire| fire.delays.len()).sum::<usize>();
    }
    stop(nodes).await?;
    let due = size.jobs as usize * size.shards as usize * FIRES as usize;
    if ran != due {
        return Err(format!("{ran} shards ran, {due} were due").into());
    }
    Ok(share(counters, f64::from(FIRES)))
}

/// Waits until the middle between two fires.
async fn between_fires() {
    let interval = INTERVAL * 1_000;
    let now = u64::try_from(SystemClock.now().as_millisecond()).unwrap_or_default();
    let passed = (now + interval / 2) % interval;
    sleep(Duration::from_millis(interval - passed)).await;
}

async fn start(
    server: &ZooKeeper,
    size: Size,
    namespace: &str,
    cron: &str,
    number: u8,
) -> Result<NodeProcess, BoxError> {
    let plan = NodePlan {
        registry: format!("zookeeper://{}/{namespace}?sessionTimeout=30s", server.address()),
        jobs: size.jobs as usize,
        shards: size.shards as u32,
        cron: cron.to_owned(),
        number,
        history: None,
    };
    Ok(NodeProcess::start(&plan).await?.0)
}

async fn stop(nodes: Vec<NodeProcess>) -> Result<(), BoxError> {
    for node in nodes {
        node.stop().await?;
    }
    Ok(())
}

fn instances(size: Size) -> u8 {
    size.instances as u8
}

fn share(counters: ServerCounters, of: f64) -> ServerCounters {
    ServerCounters {
        requests: counters.requests / of,
        received_bytes: counters.received_bytes / of,
        sent_bytes: counters.sent_bytes / of,
        transactions: counters.transactions / of,
        ..counters
    }
}

/// ZooKeeper keeps its last 500 transactions for servers that fall behind (`zookeeper.commitLogCount`), however large they are. Small ones take their
/// place, so that the heap tells what the nodes and watches need.
async fn forget_transactions(server: &ZooKeeper) -> Result<(), BoxError> {
    let url: RegistryUrl = format!("zookeeper://{}/small", server.address()).parse()?;
    let registry = registry::connect(&url).await?;
    let path = registry.namespace().path().clone();
    let small = (0..600).map(|_| registry.set(&path, Bytes::new(), ExpectedVersion::Any));
    try_join_all(small).await?;
    registry.close().await;
    Ok(())
}

/// The bytes of all objects of the server that are left after a garbage collection.
fn live_heap(server: &ZooKeeper) -> Result<f64, BoxError> {
    let output = Command::new("jcmd")
        .args([&server.pid().to_string(), "GC.class_histogram"])
        .output()
        .map_err(|error| format!("cannot run jcmd: {error}; hint: install a JDK"))?;
    let histogram = String::from_utf8_lossy(&output.stdout);
    let total = histogram.lines().find_map(|line| line.strip_prefix("Total"));
    let bytes = total.and_then(|total| total.split_whitespace().nth(1));
    Ok(bytes.ok_or_else(|| format!("jcmd answers {histogram:?}"))?.parse()?)
}
