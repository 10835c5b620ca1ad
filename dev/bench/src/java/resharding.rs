//! Measures how long it takes to reassign a thousand shards when an instance joins or leaves.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use elasticjob::{
    coordination::tree::{JobTree, ShardNode},
    registry::{Registry, ZooKeeperSettings, zookeeper},
};
use futures_util::future::try_join_all;
use tokio::time::sleep;

use super::{
    Scale,
    page::{Page, format_ms},
    worker::{JobTemplate, SESSION, Side, Worker},
};
use crate::{BoxError, stopwatch::Stopwatch};

const SHARDS: u32 = 1_000;
const JOB: &str = "settle";
/// How long a resharding may take.
const TIMEOUT: Duration = Duration::from_mins(2);

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(
        "### Resharding\n\nOne job of 1,000 shards, due every ten seconds: the time from the moment one more process joins, or leaves gracefully, until every shard is assigned to a present instance. \
         Java reshards when the job is next due and none of its shards runs; Rust reassigns at once all shards that do not run. \
         A Java instance is a process: its id is the address and the process id. Fifty JVMs do not fit on this machine, so Java has fewer.",
    );
    page.table(2, &["", "instances", "one joins", "one leaves"]);
    for (side, instances) in scale.reshardings {
        let [joined, left] = reshard(server, *side, *instances).await?;
        page.row(&[
            side.name().to_owned(),
            instances.to_string(),
            joined.map_or_else(|| format!("not within {TIMEOUT:?}"), format_ms),
            left.map_or_else(|| format!("not within {TIMEOUT:?}"), format_ms),
        ]);
    }
    Ok(())
}

async fn reshard(
    server: SocketAddr,
    side: Side,
    instances: usize,
) -> Result<[Option<f64>; 2], BoxError> {
    let namespace = format!("resharding-{side:?}-{instances}");
    let settings = ZooKeeperSettings::new([server.into()], namespace.parse()?);
    let observer = Observer {
        registry: Arc::new(zookeeper::ZooKeeper::connect(&settings).await?),
        tree: JobTree::new(&namespace.parse()?, &JOB.parse()?)?,
    };
    let template = JobTemplate::new("0/10 * * * * ?", SHARDS);
    let mut workers = Vec::new();
    for number in 0..instances {
        workers.push(Worker::start(side, server, &namespace, number, SESSION).await?);
    }
    let Some((last, others)) = workers.split_last_mut() else { return Ok([None; 2]) };
    for worker in others {
        worker.join(JOB, template).await?;
    }
    if observer.wait_until_assigned(instances - 1).await?.is_none() {
        return Err(format!("{namespace}: the shards are never assigned").into());
    }
    last.join(JOB, template).await?;
    let joined = observer.wait_until_assigned(instances).await?;
    last.leave().await?;
    Ok([joined, observer.wait_until_assigned(instances - 1).await?])
}

/// Watches the assignment in the registry.
struct Observer {
    registry: Arc<dyn Registry>,
    tree: JobTree,
}

impl Observer {
    /// Waits until the shards are assigned to `instances` instances. Returns the time in milliseconds; `None` on timeout.
    async fn wait_until_assigned(&self, instances: usize) -> Result<Option<f64>, BoxError> {
        let stopwatch = Stopwatch::start();
        while stopwatch.elapsed() < TIMEOUT {
            if self.owners().await?.is_some_and(|owners| owners.len() == instances) {
                return Ok(Some(stopwatch.elapsed().as_secs_f64() * 1e3));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(None)
    }

    /// The owners, if all shards are assigned and no resharding is in progress.
    async fn owners(&self) -> Result<Option<BTreeSet<Vec<u8>>>, BoxError> {
        for path in [self.tree.necessary(), self.tree.processing()] {
            if self.registry.exists(&path).await?.is_some() {
                return Ok(None);
            }
        }
        let paths: Vec<_> =
            (0..SHARDS).map(|item| self.tree.shard(item, ShardNode::Owner)).collect();
        let owners = try_join_all(paths.iter().map(|path| self.registry.get(path))).await?;
        let is_complete = owners.iter().all(Option::is_some);
        let owners = owners.into_iter().flatten().map(|owner| owner.data.to_vec()).collect();
        Ok(is_complete.then_some(owners))
    }
}
