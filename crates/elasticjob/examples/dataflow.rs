//! A job that fetches and processes, batch by batch, until there is nothing left: a `DataflowJob` that streams.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example dataflow        # in another; ctrl-C drains and leaves
//! ```
//!
//! Set `ELASTICJOB_REGISTRY` to use another registry than `zookeeper://127.0.0.1:2181/elasticjob`.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use elasticjob::{Job, Node, Shard, execution::DataflowJob};

const BATCH: usize = 10;

/// The orders that are not settled yet; in practice a database table.
struct Orders {
    open: Mutex<BTreeSet<u32>>,
}

impl DataflowJob for Orders {
    type Item = u32;
    type Error = std::io::Error;

    /// `select id from orders where open and mod(id, {total}) = {item} limit 10`
    async fn fetch(&self, shard: &Shard) -> Result<Vec<u32>, Self::Error> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let of_shard = open.iter().filter(|id| **id % shard.total.get() == shard.item);
        Ok(of_shard.copied().take(BATCH).collect())
    }

    /// Processed items must not be fetched again: otherwise the stream never ends.
    async fn process(&self, shard: &Shard, orders: Vec<u32>) -> Result<(), Self::Error> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        for id in &orders {
            open.remove(id);
        }
        eprintln!(
            "{}  shard {}: {} orders settled, {} are open",
            shard.due_at,
            shard.item,
            orders.len(),
            open.len()
        );
        Ok(())
    }
}

#[tokio::main]
async fn main() -> elasticjob::Result<()> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    let job = Job::named("dataflow")?
        .cron("0/2 * * * * ?")?
        .shards(2)
        .prop("streaming.process", "true")?;
    let orders = Orders { open: Mutex::new((0..50).collect()) };
    Node::join(&url).job(job, orders).run().await?;
    Ok(())
}
