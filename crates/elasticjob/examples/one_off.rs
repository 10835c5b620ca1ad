//! A job without a cron expression: it runs only when it is triggered. Here the program itself triggers it, as the console does, waits for its shards
//! and exits.
//!
//! ```sh
//! make run                                          # in one terminal: a registry
//! cargo run -p elasticjob --example one_off         # in another
//! ```
//!
//! Set `ELASTICJOB_REGISTRY` to use another registry than `zookeeper://127.0.0.1:2181/elasticjob`.

use std::{error::Error, time::Duration};

use elasticjob::{Job, Node, Shard, admin::Admin, coordination::trigger::TriggerRequest, registry};
use tokio::sync::mpsc;

const SHARDS: u32 = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("ELASTICJOB_REGISTRY")
        .unwrap_or_else(|_| "zookeeper://127.0.0.1:2181/elasticjob".into());
    let job = Job::named("one-off")?.shards(SHARDS).items("0=2024,1=2025,2=2026")?;
    let name = job.name.clone();
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let archive = move |shard: Shard| {
        let sender = sender.clone();
        async move {
            eprintln!("the orders of {} are archived", shard.parameter.unwrap_or_default());
            sender.send(shard.item)
        }
    };
    let node = Node::join(&url).job(job, archive).start().await?;
    let registry = registry::connect(&url.parse()?).await?;

    Admin::new(registry.clone()).trigger(&name, TriggerRequest::default()).await?;
    for _ in 0..SHARDS {
        // Other instances may run some of the shards; then this one gets fewer.
        if tokio::time::timeout(Duration::from_secs(30), receiver.recv()).await.is_err() {
            eprintln!("the rest ran elsewhere");
            break;
        }
    }

    registry.close().await;
    node.stop().await;
    eprintln!("done");
    Ok(())
}
