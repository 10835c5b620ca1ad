//! A job with state: a struct that implements `SimpleJob`, every two seconds, one shard per city.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example simple          # in another; ctrl-C drains and leaves
//! ```
//!
//! Set `ELASTICJOB_REGISTRY` to use another registry than `zookeeper://127.0.0.1:2181/elasticjob`.

use std::sync::atomic::{AtomicU64, Ordering};

use elasticjob::{Job, Node, Shard, execution::SimpleJob, job::Retry};

/// In a real program this would hold a connection pool.
struct SettleOrders {
    settled: AtomicU64,
}

impl SimpleJob for SettleOrders {
    type Error = std::io::Error;

    async fn execute(&self, shard: Shard) -> Result<(), Self::Error> {
        let city = shard.parameter.as_deref().unwrap_or("?");
        let settled = self.settled.fetch_add(1, Ordering::Relaxed) + 1;
        eprintln!(
            "{}  shard {} of {}: {city} settled, {settled} in all",
            shard.due_at, shard.item, shard.total
        );
        Ok(())
    }
}

#[tokio::main]
async fn main() -> elasticjob::Result<()> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    let job = Job::named("simple")?
        .cron("0/2 * * * * ?")?
        .shards(3)
        .items("0=Beijing,1=Shanghai,2=Guangzhou")?
        .retry(Retry::attempts(3));
    let handler = SettleOrders { settled: AtomicU64::new(0) };
    Node::join(&url).job(job, handler).run().await?;
    Ok(())
}
