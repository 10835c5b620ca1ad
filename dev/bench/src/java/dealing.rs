//! How long it takes until a thousand shards are dealt anew when somebody comes or goes.

use std::{collections::BTreeSet, net::SocketAddr, sync::Arc, time::Duration};

use elasticjob::{
    coordination::tree::{JobTree, Part},
    registry::{Registry, ZooKeeperSettings, zookeeper},
};
use futures_util::future::try_join_all;
use tokio::time::sleep;

use super::{
    Scale,
    page::{Page, long},
    worker::{Pattern, SESSION, Side, Worker},
};
use crate::{BoxError, stopwatch::Stopwatch};

const SHARDS: u32 = 1_000;
const JOB: &str = "settle";
/// How long it may take.
const PATIENCE: Duration = Duration::from_mins(2);

pub(super) async fn measure(
    server: SocketAddr,
    scale: &Scale,
    page: &mut Page,
) -> Result<(), BoxError> {
    page.block(
        "## Dealing\n\nOne job of 1,000 shards, due every ten seconds: from the moment one more process joins, or leaves in peace, until every shard has its owner among those who are there. \
         ElasticJob deals when the job is next due, and when nothing of it runs any more; ours deals at once, but for what runs. \
         An instance of ElasticJob is a process: its id is the address and the process id. Fifty JVMs do not fit here, so ElasticJob has fewer.",
    );
    page.table(&["", "instances", "one joins", "one leaves"]);
    for (side, instances) in scale.dealings {
        let [joined, left] = dealt(server, *side, *instances).await?;
        page.row(&[
            side.name().to_owned(),
            instances.to_string(),
            joined.map_or_else(|| format!("not in {PATIENCE:?}"), long),
            left.map_or_else(|| format!("not in {PATIENCE:?}"), long),
        ]);
    }
    Ok(())
}

async fn dealt(
    server: SocketAddr,
    side: Side,
    instances: usize,
) -> Result<[Option<f64>; 2], BoxError> {
    let namespace = format!("dealing-{side:?}-{instances}");
    let settings = ZooKeeperSettings::new([server.into()], namespace.parse()?);
    let looking = Looking {
        registry: Arc::new(zookeeper::ZooKeeper::connect(&settings).await?),
        tree: JobTree::new(&namespace.parse()?, &JOB.parse()?)?,
    };
    let pattern = Pattern::new("0/10 * * * * ?", SHARDS);
    let mut workers = Vec::new();
    for number in 0..instances {
        workers.push(Worker::start(side, server, &namespace, number, SESSION).await?);
    }
    let Some((last, others)) = workers.split_last_mut() else { return Ok([None; 2]) };
    for worker in others {
        worker.join(JOB, pattern).await?;
    }
    if looking.until_dealt_to(instances - 1).await?.is_none() {
        return Err(format!("{namespace}: the shards are never dealt").into());
    }
    last.join(JOB, pattern).await?;
    let joined = looking.until_dealt_to(instances).await?;
    last.leave().await?;
    Ok([joined, looking.until_dealt_to(instances - 1).await?])
}

/// Somebody who looks on.
struct Looking {
    registry: Arc<dyn Registry>,
    tree: JobTree,
}

impl Looking {
    /// Waits until the shards are dealt to so many; how many milliseconds later.
    async fn until_dealt_to(&self, instances: usize) -> Result<Option<f64>, BoxError> {
        let stopwatch = Stopwatch::start();
        while stopwatch.elapsed() < PATIENCE {
            if self.owners().await?.is_some_and(|owners| owners.len() == instances) {
                return Ok(Some(stopwatch.elapsed().as_secs_f64() * 1e3));
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(None)
    }

    /// Who has a shard, if all are dealt and no dealing is under way.
    async fn owners(&self) -> Result<Option<BTreeSet<Vec<u8>>>, BoxError> {
        for path in [self.tree.necessary(), self.tree.processing()] {
            if self.registry.exists(&path).await?.is_some() {
                return Ok(None);
            }
        }
        let paths: Vec<_> = (0..SHARDS).map(|item| self.tree.shard(item, Part::Owner)).collect();
        let owners = try_join_all(paths.iter().map(|path| self.registry.get(path))).await?;
        let is_whole = owners.iter().all(Option::is_some);
        let owners = owners.into_iter().flatten().map(|owner| owner.data.to_vec()).collect();
        Ok(is_whole.then_some(owners))
    }
}
